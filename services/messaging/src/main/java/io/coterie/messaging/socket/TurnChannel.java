package io.coterie.messaging.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SecureNioChannel;
import org.apache.tomcat.util.net.SocketBufferHandler;

/**
 * A TLS connection that is read for a bounded time at once. The container reads until there is
 * nothing more, which may never be so if the client sends faster than the service works. Guarded by
 * the lock of its connection.
 */
final class TurnChannel extends SecureNioChannel {
  private long left = Long.MAX_VALUE;
  private boolean cut;

  TurnChannel(SocketBufferHandler buffers, NioEndpoint endpoint) {
    super(buffers, endpoint);
  }

  /**
   * @param bytes after which the connection seems to have sent no more
   */
  void beginTurn(long bytes) {
    left = bytes;
    cut = false;
  }

  /** Whether the connection may have sent more. */
  boolean endTurn() {
    left = Long.MAX_VALUE;
    return cut;
  }

  @Override
  public int read(ByteBuffer buffer) throws IOException {
    if (left <= 0) {
      cut = true;
      return 0;
    }
    int read = super.read(buffer);
    left -= Math.max(0, read);
    return read;
  }
}
