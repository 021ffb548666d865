package io.coterie.messaging.socket;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpUpgradeHandler;
import jakarta.websocket.Extension;
import jakarta.websocket.server.ServerEndpointConfig;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.tomcat.websocket.Transformation;
import org.apache.tomcat.websocket.server.WsHandshakeRequest;
import org.apache.tomcat.websocket.server.WsHttpUpgradeHandler;
import org.apache.tomcat.websocket.server.WsServerContainer;
import org.jspecify.annotations.Nullable;

/** The container's WebSocket whose frames are read by {@link Unmasking}; made by the container. */
public final class SocketUpgrade extends WsHttpUpgradeHandler {
  /** Property of the configuration: a {@link Runnable} for when the client closes. */
  static final String ON_CLOSE = SocketUpgrade.class.getName() + ".onClose";

  /** The request, whose upgrade to the container's WebSocket is one to this. */
  static HttpServletRequest of(HttpServletRequest request) {
    return new HttpServletRequestWrapper(request) {
      @Override
      public <T extends HttpUpgradeHandler> T upgrade(Class<T> type)
          throws IOException, ServletException {
        return type == WsHttpUpgradeHandler.class
            ? type.cast(super.upgrade(SocketUpgrade.class))
            : super.upgrade(type);
      }
    };
  }

  @Override
  public void preInit(
      ServerEndpointConfig config,
      WsServerContainer container,
      WsHandshakeRequest request,
      List<Extension> extensions,
      @Nullable String protocol,
      @Nullable Transformation transformation,
      Map<String, String> parameters,
      boolean secure) {
    super.preInit(
        config,
        container,
        request,
        extensions,
        protocol,
        transformation == null
            ? new Unmasking(
                (Runnable)
                    Objects.requireNonNull(config.getUserProperties().get(ON_CLOSE), ON_CLOSE))
            : transformation,
        parameters,
        secure);
  }
}
