package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Transport;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.json.JsonMapper;

/** Bodies that no client sends, at every call that reads one, over both transports. */
class HostileInputTest {
  private static final int RANDOM_BODIES = 20;
  private static final int TRUNCATIONS = 25;

  private final TestService service = TestService.shared();
  private final TestClient client = new TestClient(service);
  private final Party party = client.party();
  private final Party other = client.party();

  private record Endpoint(String verb, String path, String type, byte[] good, boolean named) {}

  private List<Endpoint> endpoints() {
    JsonMapper json = new JsonMapper();
    return List.of(
        new Endpoint(
            "POST",
            "/v1/registration",
            "application/json",
            json.writeValueAsBytes(party.registration(new byte[16])),
            true),
        new Endpoint(
            "PUT",
            "/v1/accounts/attributes",
            "application/json",
            json.writeValueAsBytes(party.registration(new byte[16]).get("accountAttributes")),
            true),
        new Endpoint(
            "PUT",
            "/v1/devices/capabilities",
            "application/json",
            json.writeValueAsBytes(Map.of("a", true, "b", false)),
            true),
        new Endpoint(
            "PUT",
            "/v2/keys",
            "application/json",
            json.writeValueAsBytes(
                Map.of(
                    "preKeys", List.of(TestClient.oneTimeKey(1)),
                    "signedPreKey", TestClient.signedKey(party.identity, 1))),
            true),
        new Endpoint(
            "POST",
            "/v2/keys/check",
            "application/json",
            json.writeValueAsBytes(
                Map.of("identityType", "aci", "digest", TestClient.base64(new byte[32]))),
            true),
        new Endpoint(
            "PUT",
            "/v1/messages/" + other.aci,
            "application/json",
            json.writeValueAsBytes(
                TestClient.messages(true, TestClient.message(other, new byte[40]))),
            true),
        new Endpoint(
            "PUT",
            "/v1/messages/multi_recipient?ts=1&online=true",
            "application/vnd.signal-messenger.mrm",
            TestClient.multiRecipient(new byte[40], Recipient.of(other)),
            false));
  }

  private static List<byte[]> hostile(byte[] good) {
    Random random = new Random(42);
    List<byte[]> bodies = new ArrayList<>();
    for (String text :
        List.of(
            "",
            " ",
            "null",
            "[]",
            "[[[[",
            "{",
            "{}",
            "{}{}",
            "\"x\"",
            "0",
            "1e999",
            "{\"a\":" + "9".repeat(2000) + "}",
            "{\"messages\":[{}],\"timestamp\":1}",
            "{\"messages\":{\"a\":1},\"timestamp\":1}",
            "{\"timestamp\":1,\"timestamp\":2}",
            "{\"" + "n".repeat(1000) + "\":1}",
            "{\"\\u0000\":\"\\ud800\"}",
            "[".repeat(10_000),
            "{\"a\":".repeat(10_000),
            "\ufeff{}")) {
      bodies.add(text.getBytes(StandardCharsets.UTF_8));
    }
    bodies.add(new byte[] {(byte) 0xC3, 0x28});
    for (int i = 0; i < RANDOM_BODIES; i++) {
      byte[] body = new byte[random.nextInt(400)];
      random.nextBytes(body);
      bodies.add(body);
    }
    for (int i = 0; i < TRUNCATIONS; i++) {
      bodies.add(Arrays.copyOf(good, good.length * i / TRUNCATIONS));
    }
    for (int i = 0; i < TRUNCATIONS; i++) {
      byte[] body = good.clone();
      body[random.nextInt(body.length)] ^= (byte) (1 << random.nextInt(8));
      bodies.add(body);
    }
    return bodies;
  }

  @ParameterizedTest
  @EnumSource
  void answers_hostile_bodies_without_failing(Via via) {
    Transport named = via.open(client, party);
    Transport anonymous = via.open(client, (String) null);
    for (Endpoint endpoint : endpoints()) {
      Map<String, String> headers = new HashMap<>();
      headers.put("Content-Type", endpoint.type());
      if (!endpoint.named()) {
        headers.put("Unidentified-Access-Key", TestClient.base64(other.accessKey));
      } else if (endpoint.path().equals("/v1/registration")) {
        headers.put("Authorization", TestClient.basic(TestClient.nextNumber(), party.password));
      }
      for (byte[] body : hostile(endpoint.good())) {
        Reply reply =
            (endpoint.named() ? named : anonymous)
                .call(endpoint.verb(), endpoint.path(), body, headers);
        assertThat(reply.status())
            .as("%s %s %s", endpoint.verb(), endpoint.path(), Arrays.toString(body))
            .isLessThan(500);
        assertThat(reply.text())
            .doesNotContain("Exception", "jackson", "java.", "io.coterie", "<html");
      }
    }
    assertThat(party.rest().call("GET", "/v1/accounts/whoami").status()).isEqualTo(200);
  }

  @Test
  void refuses_oversized_bodies_at_every_call() {
    byte[] large = new byte[256 * 1024 + 32 + 5_000 * 100 + 1];
    for (Endpoint endpoint : endpoints()) {
      assertThat(
              party
                  .rest()
                  .call(
                      endpoint.verb(),
                      endpoint.path(),
                      large,
                      Map.of("Content-Type", endpoint.type()))
                  .status())
          .isEqualTo(413);
    }
  }

  @Test
  void refuses_what_is_many_objects_for_a_few_bytes_each() {
    StringBuilder names = new StringBuilder("{");
    for (int i = 0; i < 10_000; i++) {
      names.append('"').append(i).append("\":0,");
    }
    Map<String, String> authorization =
        Map.of("Authorization", TestClient.basic(TestClient.nextNumber(), party.password));
    Reply reply =
        client
            .rest(null)
            .json(
                "POST",
                "/v1/registration",
                names.append("\"x\":0}").toString().getBytes(StandardCharsets.US_ASCII),
                authorization);
    assertThat(reply.status()).isEqualTo(400);
    assertThat(client.rest(null).json("POST", "/v1/registration", Map.of(), authorization).status())
        .as("an object without any of its fields")
        .isEqualTo(422);
  }

  @ParameterizedTest
  @EnumSource
  void wants_the_right_type_of_body_and_credentials(Via via) {
    for (Endpoint endpoint : endpoints()) {
      Transport anonymous = via.open(client, (String) null);
      Map<String, String> plain = Map.of("Content-Type", "text/plain");
      if (endpoint.named() && !endpoint.path().startsWith("/v1/messages")) {
        assertThat(
                anonymous
                    .call(
                        endpoint.verb(),
                        endpoint.path(),
                        endpoint.good(),
                        Map.of("Content-Type", endpoint.type()))
                    .status())
            .as(endpoint.path())
            .isEqualTo(401);
      }
      Transport caller = endpoint.named() ? via.open(client, party) : anonymous;
      assertThat(caller.call(endpoint.verb(), endpoint.path(), endpoint.good(), plain).status())
          .as(endpoint.path())
          .isEqualTo(415);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "GARBAGE\r\n\r\n",
        "GET /v1/keepalive HTTP/9.9\r\n\r\n",
        "GET /\u0000 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/../v1/keepalive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /v1/devices/%2e%2e%2f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "PUT /v2/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        "PUT /v2/keys HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "TRACE /v1/keepalive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
      })
  void shows_nothing_of_itself_to_malformed_requests(String request) throws Exception {
    try (Socket socket =
        service.trust().getSocketFactory().createSocket("localhost", service.port())) {
      ((SSLSocket) socket).startHandshake();
      socket.setSoTimeout(10_000);
      socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
      socket.getOutputStream().flush();
      String reply =
          new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
      assertThat(reply).containsPattern("^HTTP/1.1 (4..|505) ");
      assertThat(reply).doesNotContain("Exception", "Tomcat", "java.", "io.coterie");
    }
  }

  @Test
  void refuses_oversized_headers() throws Exception {
    try (Socket socket =
        service.trust().getSocketFactory().createSocket("localhost", service.port())) {
      socket
          .getOutputStream()
          .write(
              ("GET /v1/keepalive HTTP/1.1\r\nHost: localhost\r\nX: "
                      + "x".repeat(17 * 1024)
                      + "\r\n\r\n")
                  .getBytes(StandardCharsets.ISO_8859_1));
      socket.getOutputStream().flush();
      assertThat(new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1))
          .startsWith("HTTP/1.1 4");
    }
  }
}
