package io.coterie.messaging.socket;

import jakarta.websocket.CloseReason;
import jakarta.websocket.Endpoint;
import jakarta.websocket.EndpointConfig;
import jakarta.websocket.MessageHandler;
import jakarta.websocket.Session;
import java.nio.ByteBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Ties a container's WebSocket session to a {@link ClientConnection}. */
final class SocketEndpoint extends Endpoint {
  private static final Logger LOG = LoggerFactory.getLogger(SocketEndpoint.class);
  private final ClientConnection connection;

  SocketEndpoint(ClientConnection connection) {
    this.connection = connection;
  }

  @Override
  public void onOpen(Session session, EndpointConfig config) {
    // Messages come in parts, so that a connection needs a large buffer only while it receives a
    // large message; the connection puts them together and bounds them.
    session.addMessageHandler(
        new MessageHandler.Partial<ByteBuffer>() {
          @Override
          public void onMessage(ByteBuffer part, boolean last) {
            connection.received(part, last);
          }
        });
    session.addMessageHandler(
        new MessageHandler.Partial<String>() {
          @Override
          public void onMessage(String part, boolean last) {
            connection.close(CloseReason.CloseCodes.CANNOT_ACCEPT, "binary only");
          }
        });
    connection.opened(session);
  }

  @Override
  public void onClose(Session session, CloseReason reason) {
    connection.closed();
  }

  @Override
  public void onError(Session session, Throwable error) {
    LOG.debug("a socket failed and is closed", error);
    connection.close(CloseReason.CloseCodes.CLOSED_ABNORMALLY, "");
  }
}
