package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Socket;
import io.coterie.messaging.socket.TrustedEdge;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.http.WebSocketHandshakeException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients of a proxy: a client with the edge's certificate plays all of them. */
class BehindTheEdgeTest {
  private static final InetAddress EDGE = InetAddress.ofLiteral("127.0.0.20");
  private static final InetAddress ELSEWHERE = InetAddress.ofLiteral("127.0.0.21");

  /** Of WebSockets without credentials; and of the edge's connections with requests. */
  private static final int PLACES = 4;

  private static final int BURST = 30;

  private static final ClientCertificates CLIENTS = new ClientCertificates("clients");
  private static TestService service;
  private static TestClient direct;
  private static TestClient edge;

  @BeforeAll
  static void start() {
    service =
        TestService.start(
            "--coterie.messaging.trusted-edge.authority=" + CLIENTS.file(),
            "--coterie.messaging.trusted-edge.names=dns:edge",
            "--coterie.messaging.limits.connections=" + 2 * PLACES,
            "--coterie.messaging.limits.requests=" + 2 * PLACES,
            "--coterie.messaging.rates.connections=" + BURST + "/0.001",
            "--coterie.messaging.rates.anonymous-bytes=65536/65536");
    direct = new TestClient(service);
    edge = direct.at(EDGE, CLIENTS.naming("edge", service));
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  /** A client of the edge, as the edge says where it is. */
  private static TestClient clientAt(String address) {
    return edge.saying(TrustedEdge.HEADER, address);
  }

  private static void assertServed(TestClient client) {
    try (Socket socket = client.connect(null)) {
      assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);
    }
  }

  /** The answer to a request for a WebSocket that does not become one. */
  private static int refusal(TestClient client) {
    CompletionException failure =
        catchThrowableOfType(CompletionException.class, () -> client.connect(null));
    assertThat(failure).hasCauseInstanceOf(WebSocketHandshakeException.class);
    return ((WebSocketHandshakeException) failure.getCause()).getResponse().statusCode();
  }

  /** Tries to register a number without its token until that is too often; fails if it never is. */
  private static void useUpRegistrations(String number, List<TestClient> inTurn) {
    for (int i = 0; i < 20; i++) {
      int status = attempt(number, inTurn.get(i % inTurn.size()));
      if (status == 429) {
        return;
      }
      assertThat(status).isEqualTo(403);
    }
    throw new AssertionError("20 attempts are not too many");
  }

  private static int attempt(String number, TestClient client) {
    return client.party(number).register(new byte[16]).status();
  }

  @Test
  void a_client_that_takes_all_sockets_leaves_others_behind_the_edge_their_share() {
    TestClient greedy = clientAt("198.51.100.1");
    List<Socket> taken = new ArrayList<>();
    try {
      for (int i = 0; i < PLACES; i++) {
        taken.add(greedy.connect(null));
      }
      assertThat(refusal(greedy)).isEqualTo(503);
      assertServed(clientAt("198.51.100.2"));
      assertThat(taken.getLast().closeCode()).as("its newest gave way").isEqualTo(1013);
      assertThat(taken.getFirst().call("GET", "/v1/keepalive").status()).isEqualTo(200);
    } finally {
      taken.forEach(Socket::abort);
    }
  }

  @Test
  void a_client_whose_bodies_do_not_come_leaves_others_behind_the_edge_their_share()
      throws IOException {
    SSLContext tls = CLIENTS.naming("edge", service);
    List<SSLSocket> waiting = new ArrayList<>();
    try {
      for (int i = 0; i < PLACES; i++) {
        waiting.add(begin(tls, "198.51.100.3"));
      }
      double before = displaced();
      assertThat(clientAt("198.51.100.4").rest(null).call("GET", "/v1/keepalive").status())
          .isEqualTo(200);
      assertThat(displaced()).as("one of them gave way").isGreaterThan(before);
    } finally {
      for (SSLSocket socket : waiting) {
        socket.close();
      }
    }
  }

  private static SSLSocket connect(SSLContext tls) throws IOException {
    java.net.Socket socket = new java.net.Socket();
    socket.bind(new InetSocketAddress(EDGE, 0));
    socket.setSoTimeout((int) TestClient.PATIENCE.toMillis());
    socket.connect(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), service.port()));
    return (SSLSocket)
        tls.getSocketFactory().createSocket(socket, "localhost", service.port(), true);
  }

  /** A request through the edge that is read as far as its body, which is missing. */
  private static SSLSocket begin(SSLContext tls, String client) throws IOException {
    SSLSocket secure = connect(tls);
    secure
        .getOutputStream()
        .write(
            """
            POST /v1/registration HTTP/1.1\r
            Host: localhost\r
            %s: %s\r
            Content-Type: application/json\r
            Content-Length: 100\r
            Expect: 100-continue\r
            \r
            """
                .formatted(TrustedEdge.HEADER, client)
                .getBytes(StandardCharsets.US_ASCII));
    byte[] answer = new byte["HTTP/1.1 100".length()];
    InputStream in = secure.getInputStream();
    assertThat(in.readNBytes(answer, 0, answer.length)).isEqualTo(answer.length);
    assertThat(answer).asString(StandardCharsets.US_ASCII).isEqualTo("HTTP/1.1 100");
    return secure;
  }

  private static double counted(String name, String... tags) {
    return service.context().getBean(MeterRegistry.class).counter(name, tags).count();
  }

  private static double displaced() {
    return counted("coterie.messaging.refused", "reason", "displaced");
  }

  /**
   * Calls without bodies, which nobody pays for as they come, are more than an address may send.
   */
  @Test
  void a_client_that_ends_its_connection_with_large_calls_does_not_stop_the_edge()
      throws IOException {
    double before = counted("coterie.messaging.read.later");
    String call =
        """
        GET /v1/nothing HTTP/1.1\r
        Host: localhost\r
        %s: 198.51.100.11\r
        Padding: %s\r
        """
            .formatted(TrustedEdge.HEADER, "x".repeat(4_000));
    try (SSLSocket socket = connect(CLIENTS.naming("edge", service))) {
      socket
          .getOutputStream()
          .write(
              ((call + "\r\n").repeat(60) + call + "Connection: close\r\n\r\n")
                  .getBytes(StandardCharsets.US_ASCII));
      assertThat(new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII))
          .startsWith("HTTP/1.1 404");
    }
    assertServed(clientAt("198.51.100.12"));
    assertThat(counted("coterie.messaging.read.later")).isEqualTo(before);
  }

  @Test
  void the_edge_has_no_rate_of_connections_and_each_of_its_clients_has_one_of_sockets() {
    for (int i = 1; i <= BURST + 10; i++) {
      assertServed(clientAt("203.0.113." + i));
    }
    TestClient often = clientAt("198.51.100.5");
    for (int i = 0; i < BURST; i++) {
      assertServed(often);
    }
    assertThat(refusal(often)).isEqualTo(429);
    assertServed(clientAt("198.51.100.6"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"no certificate", "another name", "none that is asked for"})
  void without_the_edges_certificate_a_client_is_not_where_it_says(String shown) {
    SSLContext tls =
        switch (shown) {
          case "another name" -> CLIENTS.naming("wallet", service);
          case "none that is asked for" ->
              new ClientCertificates("parties").naming("edge", service);
          default -> service.trust();
        };
    TestClient liar = direct.at(ELSEWHERE, tls);
    String number = TestClient.nextNumber();
    List<TestClient> lies = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      lies.add(liar.saying(TrustedEdge.HEADER, "192.0.2." + i));
    }
    useUpRegistrations(number, lies);
    assertThat(attempt(number, liar)).as("all are one").isEqualTo(429);
    assertThat(attempt(number, clientAt("192.0.2.0"))).as("a client in its name").isEqualTo(403);
  }

  @Test
  void clients_that_the_edge_does_not_name_clearly_are_the_edge_itself() {
    String number = TestClient.nextNumber();
    List<TestClient> unclear =
        List.of(
            edge,
            clientAt(""),
            clientAt("nonsense"),
            clientAt("localhost"),
            clientAt("198.51.100.7, 198.51.100.8"),
            clientAt("198.51.100.7:443"),
            clientAt("198.51.100.7").saying(TrustedEdge.HEADER, "198.51.100.8"));
    useUpRegistrations(number, unclear);
    for (TestClient client : unclear) {
      assertThat(attempt(number, client)).isEqualTo(429);
    }
    for (String clear : List.of("198.51.100.7", "198.51.100.8", "2001:db8::1")) {
      assertThat(attempt(number, clientAt(clear))).as(clear).isEqualTo(403);
    }
    // One network of IPv6 is one client, behind the edge too.
    useUpRegistrations(number, List.of(clientAt("2001:db8::1"), clientAt("2001:db8::2")));
  }

  @Test
  void an_account_is_itself_wherever_the_edge_says_it_is() {
    Party party = clientAt("198.51.100.9").party();
    try (Socket socket = clientAt("198.51.100.10").connect(party.authorization()).drained()) {
      assertThat(socket.call("GET", "/v1/accounts/whoami").status()).isEqualTo(200);
    }
  }
}
