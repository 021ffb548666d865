package io.coterie.messaging.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.NioEndpoint.NioSocketWrapper;
import org.apache.tomcat.util.net.SecureNioChannel;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.jspecify.annotations.Nullable;

/**
 * A TLS connection that is read for a bounded time at once. The container reads until there is
 * nothing more, which may never be so if the client sends faster than the service works.
 *
 * <p>Short frames of a WebSocket that are written one right after another leave together: in one
 * record, which costs either end as much as one frame alone. All but the last wait here, and have
 * been written as far as the container knows.
 *
 * <p>A turn is of the thread that reads, and not of the channel: the container gives the channel of
 * a connection that has ended to another one, maybe before the turn has ended.
 */
final class TurnChannel extends SecureNioChannel {
  private static final ScopedValue<Turn> TURN = ScopedValue.newInstance();

  /** As much as a record of TLS holds. */
  private static final int RECORD_BYTES = 16 << 10;

  /** Channels in which frames wait: more than threads that write, unless clients do not read. */
  static final int MAX_KEEPING = 32;

  private static final Semaphore ROOM = new Semaphore(MAX_KEEPING);

  /** Whether this channel has its place among those. */
  private final AtomicBoolean keeping = new AtomicBoolean();

  /** Null unless frames wait. Used by one write at a time, which the container sees to. */
  private @Nullable ByteBuffer waiting;

  /**
   * How a turn ended.
   *
   * @param bytes that were read and are still to be paid for
   * @param more whether the connection may have sent more than was read
   */
  record Outcome(long bytes, boolean more) {}

  /** The reading of one thread for one connection at once. */
  static final class Turn {
    private final BooleanSupplier othersWait;
    private long left;
    private long read;
    private long paid;
    private boolean cut;
    private @Nullable SocketChannel socket;

    Turn(long bytes, BooleanSupplier othersWait) {
      this.left = bytes;
      this.othersWait = othersWait;
    }

    /** Whether the connection may be read once more in this turn. */
    boolean mayRead() {
      cut |= left <= 0 || (read > 0 && othersWait.getAsBoolean());
      return !cut;
    }

    void read(int bytes) {
      left -= Math.max(0, bytes);
      read += Math.max(0, bytes);
    }
  }

  TurnChannel(SocketBufferHandler buffers, NioEndpoint endpoint) {
    super(buffers, endpoint);
  }

  /**
   * Works for one connection.
   *
   * @param bytes after which the connection seems to have sent no more
   * @param othersWait whether others wait for this thread: then it seems so after the first read
   * @return how much was read, and whether there may be more
   */
  static Outcome turn(long bytes, BooleanSupplier othersWait, Runnable work) {
    Turn turn = new Turn(bytes, othersWait);
    ScopedValue.where(TURN, turn).run(work);
    return new Outcome(turn.read - turn.paid, turn.cut);
  }

  /** The connection seems to have sent no more until this turn, if it is one, has ended. */
  static void cutTurn() {
    if (TURN.isBound()) {
      TURN.get().left = 0;
    }
  }

  /** The bytes that were read in this turn and not paid for; they are from now on. */
  static long pay() {
    if (!TURN.isBound()) {
      return 0;
    }
    Turn turn = TURN.get();
    long unpaid = turn.read - turn.paid;
    turn.paid = turn.read;
    return unpaid;
  }

  /** Whether nothing more is read in this turn, because the connection is being ended. */
  static boolean isEnding() {
    @Nullable SocketChannel socket = TURN.isBound() ? TURN.get().socket : null;
    return socket != null && socket.socket().isInputShutdown();
  }

  @Override
  public int read(ByteBuffer buffer) throws IOException {
    if (!TURN.isBound()) {
      return super.read(buffer);
    }
    Turn turn = TURN.get();
    if (!turn.mayRead()) {
      return 0;
    }
    turn.socket = getIOChannel();
    int read = super.read(buffer);
    turn.read(read);
    return read;
  }

  @Override
  public long write(ByteBuffer[] sources, int offset, int length) throws IOException {
    long size = 0;
    for (int i = offset; i < offset + length; i++) {
      size += sources[i].remaining();
    }
    if (OutboundFrames.isMoreToCome() && keeps(size)) {
      @Nullable ByteBuffer together = waiting == null ? ByteBuffer.allocate(RECORD_BYTES) : waiting;
      for (int i = offset; i < offset + length; i++) {
        together.put(sources[i]);
      }
      waiting = together;
      return size;
    }
    if (waiting != null) {
      return writeWaiting(waiting, sources, offset, length);
    }
    if (size == 0) {
      // The container asks until nothing is left. A record without content would be one more.
      flushOutbound();
      return 0;
    }
    return super.write(sources, offset, length);
  }

  /** The container asks with no bytes, too: that is no reason for a buffer. */
  private boolean keeps(long size) {
    return waiting == null
        ? size > 0 && size <= RECORD_BYTES && mayKeep()
        : size <= waiting.remaining();
  }

  private boolean mayKeep() {
    if (!ROOM.tryAcquire()) {
      return false;
    }
    keeping.set(true);
    if (isClosing()) {
      // Nobody else might give the place back.
      keepsNoMore();
      return false;
    }
    return true;
  }

  private void keepsNoMore() {
    if (keeping.compareAndSet(true, false)) {
      ROOM.release();
    }
  }

  /** Writes what waits and then the sources, of which it returns how much it has written. */
  private long writeWaiting(ByteBuffer together, ByteBuffer[] sources, int offset, int length)
      throws IOException {
    ByteBuffer[] all = new ByteBuffer[length + 1];
    all[0] = together.flip();
    System.arraycopy(sources, offset, all, 1, length);
    int before = together.remaining();
    long written = super.write(all, 0, all.length) - before + together.remaining();
    if (together.hasRemaining()) {
      together.compact();
      return written;
    }
    waiting = null;
    keepsNoMore();
    return written > 0 ? written : write(sources, offset, length);
  }

  @Override
  public void reset(SocketChannel channel, NioSocketWrapper wrapper) throws IOException {
    waiting = null;
    keepsNoMore();
    super.reset(channel, wrapper);
  }

  @Override
  public void close() throws IOException {
    try {
      super.close();
    } finally {
      keepsNoMore();
    }
  }
}
