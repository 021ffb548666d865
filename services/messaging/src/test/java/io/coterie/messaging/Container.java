package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.websocket.DeploymentException;
import jakarta.websocket.Endpoint;
import jakarta.websocket.EndpointConfig;
import jakarta.websocket.Session;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpointConfig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.ValveBase;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.web.server.context.WebServerApplicationContext;

/** The web server of a service, which has more for a test than the service asks for. */
final class Container {
  private final TestService service;

  Container(TestService service) {
    this.service = service;
  }

  private Tomcat tomcat() {
    return ((TomcatWebServer) ((WebServerApplicationContext) service.context()).getWebServer())
        .getTomcat();
  }

  /** The container keeps channels for later connections, as it does with a large heap. */
  void keepChannels() throws LifecycleException {
    Connector connector = tomcat().getConnector();
    connector.stop();
    connector.setProperty("socket.bufferPool", "8");
    connector.start();
  }

  private Context context() {
    return (Context) tomcat().getHost().findChildren()[0];
  }

  /** Holds back answers that are decided. */
  static final class Holding extends ValveBase {
    final CountDownLatch decided = new CountDownLatch(1);
    final CountDownLatch answered = new CountDownLatch(1);

    @Override
    public void invoke(Request request, Response response) throws IOException, ServletException {
      getNext().invoke(request, response);
      decided.countDown();
      Container.await(answered);
    }
  }

  void add(Holding holding) {
    context().getPipeline().addValve(holding);
  }

  void remove(Holding holding) {
    context().getPipeline().removeValve(holding);
  }

  void serve(String path, HttpServlet servlet) {
    Context context = context();
    Tomcat.addServlet(context, path, servlet);
    context.addServletMappingDecoded(path, path);
  }

  interface Taker {
    /** On the thread that reads. */
    void take(Session session, int number) throws IOException, InterruptedException;
  }

  /** The next WebSocket at that path gives its frames to the taker. */
  void take(String path, Taker taker) {
    serve(path, new UpgradesToTaken(taker));
  }

  private static final class Taken extends Endpoint {
    private final Taker taker;
    private int frames;

    Taken(Taker taker) {
      this.taker = taker;
    }

    @Override
    public void onOpen(Session session, EndpointConfig config) {
      session.addMessageHandler(
          ByteBuffer.class,
          frame -> {
            frames++;
            try {
              taker.take(session, frames);
            } catch (IOException | InterruptedException e) {
              throw new AssertionError(e);
            }
          });
    }
  }

  private static final class UpgradesToTaken extends HttpServlet {
    private static final long serialVersionUID = 1L;
    private final transient Taker taker;

    UpgradesToTaken(Taker taker) {
      this.taker = taker;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
        throws ServletException, IOException {
      ServerEndpointConfig config =
          ServerEndpointConfig.Builder.create(Taken.class, request.getRequestURI())
              .configurator(
                  new ServerEndpointConfig.Configurator() {
                    @Override
                    public <T> T getEndpointInstance(Class<T> type) {
                      return type.cast(new Taken(taker));
                    }
                  })
              .build();
      ServerContainer container =
          (ServerContainer) getServletContext().getAttribute(ServerContainer.class.getName());
      try {
        container.upgradeHttpToWebSocket(request, response, config, Map.of());
      } catch (DeploymentException e) {
        throw new ServletException(e);
      }
    }
  }

  static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(TestClient.PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
