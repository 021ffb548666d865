package io.coterie.messaging.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SecureNioChannel;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.jspecify.annotations.Nullable;

/**
 * A TLS connection that is read for a bounded time at once. The container reads until there is
 * nothing more, which may never be so if the client sends faster than the service works.
 *
 * <p>The container gives the channel of a connection that has ended to another one, maybe before
 * the turn has ended. So a turn is of one connection alone, and is guarded by its lock.
 */
final class TurnChannel extends SecureNioChannel {
  /** From its begin on, the connection is read by one thread. */
  static final class Turn {
    private long left;
    private boolean cut;

    private Turn(long bytes) {
      left = bytes;
    }
  }

  private final AtomicReference<@Nullable Turn> turn = new AtomicReference<>();

  TurnChannel(SocketBufferHandler buffers, NioEndpoint endpoint) {
    super(buffers, endpoint);
  }

  /**
   * @param bytes after which the connection seems to have sent no more
   */
  Turn beginTurn(long bytes) {
    Turn begun = new Turn(bytes);
    turn.set(begun);
    return begun;
  }

  /** The connection seems to have sent no more until the next turn. */
  void cutTurn() {
    Turn now = turn.get();
    if (now != null) {
      now.left = 0;
    }
  }

  /** Whether the connection may have sent more. */
  boolean endTurn(Turn begun) {
    turn.compareAndSet(begun, null);
    return begun.cut;
  }

  @Override
  public void reset(
      @Nullable SocketChannel channel, NioEndpoint.@Nullable NioSocketWrapper connection)
      throws IOException {
    turn.set(null);
    super.reset(channel, connection);
  }

  @Override
  public int read(ByteBuffer buffer) throws IOException {
    Turn now = turn.get();
    if (now == null) {
      return super.read(buffer);
    }
    if (now.left <= 0) {
      now.cut = true;
      return 0;
    }
    int read = super.read(buffer);
    now.left -= Math.max(0, read);
    return read;
  }
}
