package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import jakarta.websocket.server.ServerContainer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.SSLSocket;
import org.apache.coyote.AbstractProtocol;
import org.apache.tomcat.websocket.server.WsServerContainer;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;

/** Clients that have lost their places and do not go. */
class HeldConnectionsTest {
  private static final int PLACES = 8;

  /** More than may be closing at once, and than have places. */
  private static final int MANY = 150;

  private static TestService service;
  private static TestClient client;

  @BeforeAll
  static void start() {
    service =
        TestService.start(
            "--coterie.messaging.limits.connections=" + PLACES,
            "--coterie.messaging.limits.requests=" + PLACES,
            "--coterie.messaging.rates.anonymous-bytes=65536/65536");
    client = new TestClient(service);
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  private static SSLSocket connect(String from) throws IOException {
    Socket socket = new Socket();
    socket.bind(new InetSocketAddress(InetAddress.ofLiteral(from), 0));
    socket.setSoTimeout((int) TestClient.PATIENCE.toMillis());
    socket.connect(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), service.port()));
    return (SSLSocket)
        service.trust().getSocketFactory().createSocket(socket, "localhost", service.port(), true);
  }

  private static void send(SSLSocket socket, String text) throws IOException {
    socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
  }

  private static String receive(SSLSocket socket, int bytes) throws IOException {
    return new String(socket.getInputStream().readNBytes(bytes), StandardCharsets.US_ASCII);
  }

  private static void close(List<SSLSocket> sockets) throws IOException {
    for (SSLSocket socket : sockets) {
      socket.close();
    }
  }

  private static ServletWebServerApplicationContext context() {
    return (ServletWebServerApplicationContext) service.context();
  }

  private static long connections() {
    TomcatWebServer server = (TomcatWebServer) context().getWebServer();
    return ((AbstractProtocol<?>) server.getTomcat().getConnector().getProtocolHandler())
        .getConnectionCount();
  }

  /** A WebSocket that has been told that it is closed, and does not answer. */
  private static SSLSocket closedByService() throws IOException {
    SSLSocket socket = connect("127.0.0.3");
    send(
        socket,
        """
        GET /v1/websocket/ HTTP/1.1\r
        Host: localhost\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Version: 13\r
        Sec-WebSocket-Key: %s\r
        \r
        """
            .formatted(Base64.getEncoder().encodeToString(new byte[16])));
    InputStream in = socket.getInputStream();
    StringBuilder answer = new StringBuilder();
    while (!answer.toString().endsWith("\r\n\r\n")) {
      answer.append((char) in.read());
    }
    assertThat(answer).startsWith("HTTP/1.1 101");
    byte[] text = {(byte) 0x81, (byte) 0x81, 0, 0, 0, 0, 'x'};
    socket.getOutputStream().write(text);
    assertThat(in.read()).as("a close").isEqualTo(0x88);
    return socket;
  }

  @Test
  void websockets_that_do_not_answer_their_close_keep_few_connections() throws IOException {
    List<SSLSocket> silent = new ArrayList<>();
    long most = 0;
    try {
      for (int i = 0; i < MANY; i++) {
        silent.add(closedByService());
        most = Math.max(most, connections());
      }
      try (TestClient.Socket honest = client.connect(null)) {
        assertThat(honest.call("GET", "/v1/keepalive").status()).isEqualTo(200);
      }
      assertThat(most).isLessThan(100);
    } finally {
      close(silent);
    }
  }

  private static boolean isEndedAfterOneMoreByte(SSLSocket socket) {
    try {
      send(socket, "x");
      socket.setSoTimeout(1);
      return socket.getInputStream().read() < 0;
    } catch (SocketTimeoutException waits) {
      return false;
    } catch (IOException reset) {
      return true;
    }
  }

  @Test
  void a_call_whose_body_drips_on_ends_when_another_has_its_place() throws IOException {
    List<SSLSocket> dripping = new ArrayList<>();
    try {
      for (int i = 0; i < PLACES; i++) {
        SSLSocket socket = connect("127.0.0.3");
        dripping.add(socket);
        send(
            socket,
            """
            POST /v1/registration HTTP/1.1\r
            Host: localhost\r
            Content-Type: application/json\r
            Content-Length: 100000\r
            Expect: 100-continue\r
            \r
            """);
        assertThat(receive(socket, 12)).isEqualTo("HTTP/1.1 100");
        receive(socket, "\r\n\r\n".length());
      }
      assertThat(client.rest(null).call("GET", "/v1/keepalive").status()).isEqualTo(200);
      Awaitility.await()
          .pollInterval(Duration.ofMillis(50))
          .until(() -> dripping.stream().anyMatch(HeldConnectionsTest::isEndedAfterOneMoreByte));
    } finally {
      close(dripping);
    }
  }

  @Test
  void the_container_looks_each_second_who_has_not_answered_a_close() throws IOException {
    closedByService().close();
    Object container = context().getServletContext().getAttribute(ServerContainer.class.getName());
    assertThat(((WsServerContainer) container).getProcessPeriod()).isEqualTo(1);
  }

  /** All are 210 kB, of which 64 KiB are free and 64 KiB a second follow. */
  @Test
  void bodies_are_paid_for_as_they_come() throws IOException {
    MeterRegistry metrics = service.context().getBean(MeterRegistry.class);
    double before = metrics.counter("coterie.messaging.read.later").count();
    long begin = System.nanoTime();
    try (SSLSocket socket = connect("127.0.0.4")) {
      String call =
          """
          PUT /v1/nothing HTTP/1.1\r
          Host: localhost\r
          Content-Length: 70000\r
          \r
          """
              + "x".repeat(70_000);
      send(socket, call.repeat(3));
      StringBuilder answers = new StringBuilder();
      while (answers.toString().split("HTTP/1.1 404", -1).length < 4) {
        answers.append(receive(socket, 1));
      }
      assertThat(metrics.counter("coterie.messaging.read.later").count()).isGreaterThan(before);
      assertThat(Duration.ofNanos(System.nanoTime() - begin)).isGreaterThan(Duration.ofSeconds(2));
    }
  }
}
