package io.coterie.messaging.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SecureNioChannel;
import org.apache.tomcat.util.net.SocketBufferHandler;

/**
 * A TLS connection that is read for a bounded time at once. The container reads until there is
 * nothing more, which may never be so if the client sends faster than the service works.
 *
 * <p>A turn is of the thread that reads, and not of the channel: the container gives the channel of
 * a connection that has ended to another one, maybe before the turn has ended.
 */
final class TurnChannel extends SecureNioChannel {
  private static final ScopedValue<Turn> TURN = ScopedValue.newInstance();

  private static final class Turn {
    private long left;
    private boolean cut;

    Turn(long bytes) {
      left = bytes;
    }
  }

  TurnChannel(SocketBufferHandler buffers, NioEndpoint endpoint) {
    super(buffers, endpoint);
  }

  /**
   * Works for one connection.
   *
   * @param bytes after which the connection seems to have sent no more
   * @return whether the connection may have sent more than was read
   */
  static boolean turn(long bytes, Runnable work) {
    Turn turn = new Turn(bytes);
    ScopedValue.where(TURN, turn).run(work);
    return turn.cut;
  }

  /** The connection seems to have sent no more until this turn, if it is one, has ended. */
  static void cutTurn() {
    if (TURN.isBound()) {
      TURN.get().left = 0;
    }
  }

  @Override
  public int read(ByteBuffer buffer) throws IOException {
    if (!TURN.isBound()) {
      return super.read(buffer);
    }
    Turn turn = TURN.get();
    if (turn.left <= 0) {
      turn.cut = true;
      return 0;
    }
    int read = super.read(buffer);
    turn.left -= Math.max(0, read);
    return read;
  }
}
