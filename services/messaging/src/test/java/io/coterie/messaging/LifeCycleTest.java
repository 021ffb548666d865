package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocketHandshakeException;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLSocket;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Tests that stop the service or its database, each with a service of its own. */
class LifeCycleTest {

  private static Reply send(TestClient client, Party to, boolean online, String content) {
    return client
        .rest(null)
        .call(
            "PUT",
            "/v1/messages/multi_recipient?ts=1&online=" + online,
            TestClient.multiRecipient(TestClient.bytes(content), Recipient.of(to)),
            TestClient.multiRecipientHeaders(to));
  }

  @Test
  void keeps_accounts_and_stored_messages_across_a_restart_and_says_goodbye() {
    try (TestService service = TestService.start()) {
      TestClient client = new TestClient(service);
      Party party = client.party();
      Socket connected = client.connectSilent(party.authorization()).drained();
      Socket anonymous = client.connect(null);
      send(client, party, false, "stored");
      send(client, party, true, "online");
      connected.next();
      connected.next();
      connected.callAsync("GET", "/v1/accounts/whoami", new byte[0], Map.of());

      service.restart();

      assertThat(connected.closeCode()).as("service restart").isEqualTo(1012);
      assertThat(anonymous.closeCode()).isEqualTo(1012);
      assertThat(party.rest().call("GET", "/v1/accounts/whoami").status()).isEqualTo(200);
      try (Socket socket = party.connect().drained()) {
        assertThat(socket.pushed).as("online messages do not outlive the process").hasSize(1);
        assertThat(socket.next().envelope().getContent().toStringUtf8()).endsWith("stored");
      }
    }
  }

  @Test
  void does_not_accept_a_used_token_again_after_a_restart() {
    byte[] token = TestClient.bytes("a token of some 32 random bytes.");
    try (TestService service =
        TestService.start(
            "--coterie.messaging.enrolments[0].number=+15559999999",
            "--coterie.messaging.enrolments[0].token-sha256=" + TestClient.sha256Hex(token))) {
      TestClient client = new TestClient(service);
      Party party = client.party("+15559999999");
      assertThat(party.register(token).status()).isEqualTo(200);
      service.restart();
      assertThat(client.party("+15559999999").register(token).status()).isEqualTo(403);
    }
  }

  @Test
  void delivers_to_known_devices_without_any_database() throws Exception {
    try (TestService service = TestService.start()) {
      TestClient client = new TestClient(service);
      Party a = client.party();
      Party b = client.party();
      try (Socket socketA = a.connect().drained();
          Socket socketB = b.connect().drained()) {
        send(client, a, true, "x");
        send(client, b, true, "x");
        socketA.next();
        socketB.next();

        service.stopDatabase();

        Reply reply =
            client
                .connect(null)
                .call(
                    "PUT",
                    "/v1/messages/multi_recipient?ts=1&online=true",
                    TestClient.multiRecipient(
                        TestClient.bytes("y"), Recipient.of(a), Recipient.of(b)),
                    TestClient.multiRecipientHeaders(a, b));
        assertThat(reply.status()).isEqualTo(200);
        assertThat(socketA.next().envelope().getContent().toStringUtf8()).endsWith("y");
        assertThat(socketB.next().envelope().getContent().toStringUtf8()).endsWith("y");
        Reply named =
            a.rest()
                .json(
                    "PUT",
                    "/v1/messages/" + b.aci,
                    TestClient.messages(true, TestClient.message(b, TestClient.bytes("z"))));
        assertThat(named.status()).isEqualTo(200);

        assertThatThrownBy(
                () -> client.connect(TestClient.basic(java.util.UUID.randomUUID() + ".1", "x")))
            .cause()
            .isInstanceOfSatisfying(
                WebSocketHandshakeException.class,
                e -> assertThat(e.getResponse().statusCode()).isEqualTo(503));
        Reply stored = send(client, a, false, "stored");
        assertThat(stored.status()).isEqualTo(503);
        assertThat(stored.headers()).containsKey("Retry-After");
        assertThat(stored.text()).isEmpty();
        assertThat(management(service, "/actuator/health/readiness").statusCode()).isEqualTo(503);
        assertThat(management(service, "/actuator/health/liveness").statusCode()).isEqualTo(200);
      }
    }
  }

  private static HttpResponse<String> management(
      TestService service, String path, String... headers) throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create("https://localhost:" + service.managementPort() + path));
    if (headers.length > 0) {
      request.headers(headers);
    }
    try (HttpClient http = HttpClient.newBuilder().sslContext(service.trust()).build()) {
      return http.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }
  }

  private static HttpResponse<String> asUser(TestService service, String path) throws Exception {
    return management(
        service, path, "Authorization", TestClient.basic("metrics", TestService.METRICS_PASSWORD));
  }

  @Test
  void shows_its_health_and_metrics_on_the_management_port_only() throws Exception {
    TestService service = TestService.shared();
    TestClient client = new TestClient(service);
    Party party = client.party();
    try (Socket socket = party.connect().drained()) {
      send(client, party, true, "x");
      socket.next();
      assertThat(management(service, "/actuator/health/readiness").statusCode()).isEqualTo(200);
      Awaitility.await()
          .untilAsserted(
              () ->
                  assertThat(asUser(service, "/actuator/prometheus").body())
                      .contains(
                          "coterie_messaging_requests_seconds_bucket{",
                          "route=\"/v1/messages/multi_recipient\",status=\"200\"",
                          "coterie_messaging_connections{kind=\"authenticated\"}",
                          "coterie_messaging_connections{kind=\"unauthenticated\"}",
                          "coterie_messaging_queue_depth{kind=\"online\"}",
                          "coterie_messaging_queue_depth{kind=\"stored\"}",
                          "coterie_messaging_delivered_total{kind=\"online\"}",
                          "coterie_messaging_fanout_count",
                          "jvm_memory_used_bytes")
                      .doesNotContain(party.aci.toString(), party.number));
    }
    assertThat(client.rest(null).call("GET", "/actuator/health").status()).isEqualTo(404);
    assertThat(management(service, "/v1/keepalive").statusCode()).isEqualTo(401);
    assertThat(asUser(service, "/v1/keepalive").statusCode()).isEqualTo(404);
    assertThat(management(service, "/actuator/prometheus").statusCode()).isEqualTo(401);
    String everybody = management(service, "/actuator/health/readiness").body();
    assertThat(everybody).contains("UP").doesNotContain("db");
    assertThat(asUser(service, "/actuator/health/readiness").body()).contains("db");
  }

  @Test
  void speaks_tls_1_3_only() throws Exception {
    TestService service = TestService.shared();
    for (int port : List.of(service.port(), service.managementPort())) {
      try (SSLSocket socket =
          (SSLSocket) service.trust().getSocketFactory().createSocket("localhost", port)) {
        socket.setEnabledProtocols(new String[] {"TLSv1.2"});
        assertThatThrownBy(socket::startHandshake).isInstanceOf(SSLHandshakeException.class);
      }
    }
  }
}
