package io.coterie.messaging.socket;

import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.Credentials;
import io.coterie.messaging.api.ApiException;
import io.coterie.messaging.api.ApiRequest;
import io.coterie.messaging.api.ApiResponse;
import io.coterie.messaging.api.Dispatcher;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import io.coterie.messaging.limit.Source;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.websocket.DeploymentException;
import jakarta.websocket.Extension;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpointConfig;
import java.io.IOException;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.tomcat.websocket.server.WsServerContainer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.dao.DataAccessException;

/** Everything that comes over HTTP: REST calls, and upgrades to a WebSocket. */
public final class ApiServlet extends HttpServlet {
  private static final long serialVersionUID = 1L;
  private static final Set<String> SOCKET_PATHS = Set.of("/v1/websocket", "/v1/websocket/");

  private static final Logger LOG = LoggerFactory.getLogger(ApiServlet.class);

  private final transient Dispatcher dispatcher;
  private final transient Accounts accounts;
  private final transient Connections connections;
  private final transient ConnectionWork work;
  private final int maxBodyBytes;

  public ApiServlet(
      Dispatcher dispatcher,
      Accounts accounts,
      Connections connections,
      ConnectionWork work,
      int maxBodyBytes) {
    this.dispatcher = dispatcher;
    this.accounts = accounts;
    this.connections = connections;
    this.work = work;
    this.maxBodyBytes = maxBodyBytes;
  }

  /** A close that is not answered ends when it is due, and not only at each tenth look. */
  @Override
  public void init() {
    if (container() instanceof WsServerContainer tomcat) {
      tomcat.setProcessPeriod(1);
    }
  }

  private ServerContainer container() {
    return (ServerContainer) getServletContext().getAttribute(ServerContainer.class.getName());
  }

  @Override
  protected void service(HttpServletRequest request, HttpServletResponse response)
      throws ServletException, IOException {
    Source network = work.begun(request);
    try {
      if (SOCKET_PATHS.contains(request.getRequestURI())) {
        upgrade(request, response, network);
      } else {
        reply(response, call(request, network));
      }
    } finally {
      if (response.getStatus() != HttpServletResponse.SC_SWITCHING_PROTOCOLS) {
        work.ended(request);
      }
    }
  }

  private ApiResponse call(HttpServletRequest request, Source source) {
    if (request.getContentLengthLong() > maxBodyBytes) {
      return ApiResponse.empty(413);
    }
    String query = request.getQueryString();
    String target = query == null ? request.getRequestURI() : request.getRequestURI() + "?" + query;
    try (HttpBody body = connections.body(source, maxBodyBytes, () -> work.bodyRead(source))) {
      return dispatcher
          .dispatch(
              new ApiRequest(
                  request.getMethod(),
                  target,
                  headers(request),
                  body.read(request.getInputStream()),
                  null,
                  source))
          .join();
    } catch (ApiException e) {
      return e.response();
    } catch (IOException e) {
      // The client went away, or its encoding of the body is broken.
      return ApiResponse.empty(400);
    }
  }

  private static Map<String, String> headers(HttpServletRequest request) {
    Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    Enumeration<String> names = request.getHeaderNames();
    while (names.hasMoreElements()) {
      String name = names.nextElement();
      headers.putIfAbsent(name, request.getHeader(name));
    }
    return headers;
  }

  private static void reply(HttpServletResponse response, ApiResponse reply) throws IOException {
    response.setStatus(reply.status());
    reply.headers().forEach(response::setHeader);
    response.setContentLength(reply.body().length);
    if (reply.body().length > 0) {
      response.setContentType("application/json");
      response.getOutputStream().write(reply.body());
    }
  }

  private void upgrade(HttpServletRequest request, HttpServletResponse response, Source network)
      throws IOException, ServletException {
    if (!"websocket".equalsIgnoreCase(request.getHeader("Upgrade"))) {
      response.setHeader("Upgrade", "websocket");
      reply(response, ApiResponse.empty(426));
      return;
    }
    try {
      work.admitSocket(request, network);
    } catch (RateLimitedException e) {
      reply(response, ApiResponse.retryLater(429, e.retryAfter()));
      return;
    }
    Optional<String> authorization = Optional.ofNullable(request.getHeader("Authorization"));
    @Nullable Authenticated who;
    try {
      who =
          authorization
              .flatMap(Credentials::basic)
              .flatMap(Credentials::of)
              .flatMap(accounts::authenticate)
              .orElse(null);
    } catch (DataAccessException e) {
      LOG.warn("the database does not answer, so a connection is refused", e);
      reply(response, ApiResponse.unavailable());
      return;
    }
    if (who == null && authorization.isPresent()) {
      reply(response, ApiResponse.empty(403));
      return;
    }
    Source source = who == null ? network : new Source.OfAccount(who.account().aci());
    Optional<ClientConnection> connection = connections.open(who, source, work.closing(request));
    if (connection.isEmpty()) {
      reply(response, ApiResponse.unavailable());
      return;
    }
    work.upgrading(request, connection.get()::ended);
    try {
      container()
          .upgradeHttpToWebSocket(
              SocketUpgrade.of(request), response, config(connection.get()), Map.of());
    } catch (DeploymentException e) {
      connection.get().abandoned();
      reply(response, ApiResponse.empty(400));
    } catch (IOException | RuntimeException e) {
      connection.get().abandoned();
      throw e;
    }
    if (response.getStatus() != HttpServletResponse.SC_SWITCHING_PROTOCOLS) {
      connection.get().abandoned();
    } else if (who != null) {
      work.authenticated(request, source);
    }
  }

  /** One connection's endpoint, without compression: messages are encrypted already. */
  private static ServerEndpointConfig config(ClientConnection connection) {
    ServerEndpointConfig config =
        ServerEndpointConfig.Builder.create(SocketEndpoint.class, "/v1/websocket/")
            .configurator(
                new ServerEndpointConfig.Configurator() {
                  @Override
                  public <T> T getEndpointInstance(Class<T> type) {
                    return type.cast(new SocketEndpoint(connection));
                  }

                  @Override
                  public List<Extension> getNegotiatedExtensions(
                      List<Extension> installed, List<Extension> requested) {
                    return List.of();
                  }

                  @Override
                  public boolean checkOrigin(@Nullable String originHeaderValue) {
                    return true;
                  }
                })
            .build();
    config.getUserProperties().put(SocketUpgrade.ON_CLOSE, (Runnable) connection::clientCloses);
    return config;
  }
}
