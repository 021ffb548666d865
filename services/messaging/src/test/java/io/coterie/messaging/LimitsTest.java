package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Socket;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletionException;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A service whose limits are small enough to reach. */
class LimitsTest {
  private static TestService service;
  private static TestClient client;

  @BeforeAll
  static void start() {
    service =
        TestService.start(
            "--coterie.messaging.limits.in-flight=4",
            "--coterie.messaging.limits.online-messages=6",
            "--coterie.messaging.limits.stored-messages=3",
            "--coterie.messaging.limits.stored-bytes=100KB",
            "--coterie.messaging.limits.outbound=64KB",
            "--coterie.messaging.limits.send-timeout=2s",
            "--coterie.messaging.limits.connections=10",
            "--coterie.messaging.limits.idle=1s",
            "--coterie.messaging.limits.body=100KB",
            "--coterie.messaging.limits.buffers=600KB",
            "--coterie.messaging.rates.messages=3/0.001",
            "--coterie.messaging.rates.sealed-messages=20/0.001",
            "--coterie.messaging.rates.pre-keys=2/0.001",
            "--coterie.messaging.stories=true",
            "--coterie.messaging.rates.stories=1/0.001",
            "--coterie.messaging.rates.changes=2/0.001");
    client = new TestClient(service);
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  private static Reply sealed(Party to, boolean online, byte[] content) {
    return client
        .rest(null)
        .call(
            "PUT",
            "/v1/messages/multi_recipient?ts=1&online=" + online,
            TestClient.multiRecipient(content, Recipient.of(to)),
            TestClient.multiRecipientHeaders(to));
  }

  private static void assertLimited(Reply reply) {
    assertThat(reply.status()).isEqualTo(429);
    assertThat(Integer.parseInt(reply.headers().get("Retry-After"))).isPositive();
  }

  @Test
  void limits_messages_for_each_pair() {
    Party sender = client.party();
    Party first = client.party();
    Party second = client.party();
    for (Party to : List.of(first, second)) {
      Map<String, Object> body =
          TestClient.messages(true, TestClient.message(to, TestClient.bytes("x")));
      for (int i = 0; i < 3; i++) {
        assertThat(sender.rest().json("PUT", "/v1/messages/" + to.aci, body).status())
            .isEqualTo(200);
      }
      assertLimited(sender.rest().json("PUT", "/v1/messages/" + to.aci, body));
    }
  }

  @Test
  void limits_sealed_messages_and_stories_for_each_recipient() {
    Party to = client.party();
    for (int i = 0; i < 20; i++) {
      assertThat(sealed(to, true, TestClient.bytes("x")).status()).isEqualTo(200);
    }
    assertLimited(sealed(to, true, TestClient.bytes("x")));
    String story = "/v1/messages/" + to.aci + "?story=true";
    Map<String, Object> body =
        TestClient.messages(true, TestClient.message(to, TestClient.bytes("x")));
    assertThat(client.rest(null).json("PUT", story, body).status()).isEqualTo(200);
    assertLimited(client.rest(null).json("PUT", story, body));
  }

  @Test
  void lets_stories_through_without_telling_who_exists_or_who_sent_them() {
    Party to = client.party();
    Party toMany = client.party();
    UUID unknown = UUID.randomUUID();
    String path = "/v1/messages/" + to.aci;
    Map<String, Object> body =
        TestClient.messages(true, TestClient.message(to, TestClient.bytes("story")));
    try (Socket socket = to.connect().drained();
        Socket socketOfMany = toMany.connect().drained()) {
      assertThat(client.party().rest().json("PUT", path + "?story=true", body).status())
          .as("a story does not carry its sender")
          .isEqualTo(400);
      assertThat(client.rest(null).json("PUT", path + "?story=perhaps", body).status())
          .isEqualTo(400);
      assertThat(client.rest(null).json("PUT", path + "?story=true", body).status()).isEqualTo(200);
      assertThat(socket.next().envelope().getStory()).isTrue();
      assertThat(
              client
                  .rest(null)
                  .json("PUT", "/v1/messages/" + unknown + "?story=true", body)
                  .status())
          .isEqualTo(200);
      assertThat(
              client
                  .rest(null)
                  .call(
                      "PUT",
                      "/v1/messages/multi_recipient?ts=1&online=true&story=true",
                      TestClient.multiRecipient(
                          TestClient.bytes("x"),
                          Recipient.of(toMany),
                          new Recipient(unknown, 1, 5)),
                      Map.of("Content-Type", "application/vnd.signal-messenger.mrm"))
                  .status())
          .isEqualTo(200);
      assertThat(socketOfMany.next().envelope().getStory()).isTrue();
    }
  }

  @Test
  void limits_fetches_of_keys_for_each_requester_and_changes_for_each_device() {
    Party owner = client.party();
    Party reader = client.party();
    for (int i = 0; i < 2; i++) {
      assertThat(reader.rest().call("GET", "/v2/keys/" + owner.aci + "/*").status()).isEqualTo(200);
      assertThat(owner.rest().json("PUT", "/v2/keys", Map.of()).status()).isEqualTo(200);
    }
    assertLimited(reader.rest().call("GET", "/v2/keys/" + owner.aci + "/*"));
    assertLimited(owner.rest().json("PUT", "/v2/keys", Map.of()));
    assertThat(client.party().rest().call("GET", "/v2/keys/" + owner.aci + "/*").status())
        .isEqualTo(200);
  }

  @Test
  void fetches_of_one_address_cost_another_none() {
    Party owner = client.party();
    Map<String, String> key = Map.of("Unidentified-Access-Key", TestClient.base64(owner.accessKey));
    String path = "/v2/keys/" + owner.aci + "/*";
    TestClient elsewhere = client.at(InetAddress.ofLiteral("127.0.0.2"));
    for (int i = 0; i < 2; i++) {
      assertThat(elsewhere.rest(null).call("GET", path, new byte[0], key).status()).isEqualTo(200);
    }
    assertLimited(elsewhere.rest(null).call("GET", path, new byte[0], key));
    assertThat(client.rest(null).call("GET", path, new byte[0], key).status()).isEqualTo(200);
  }

  @Test
  void keeps_the_newest_online_messages_when_there_are_too_many() {
    Party to = client.party();
    for (int i = 0; i < 10; i++) {
      sealed(to, true, TestClient.bytes("m" + i));
    }
    try (Socket socket = to.connect()) {
      for (int i = 4; i < 10; i++) {
        assertThat(socket.next().envelope().getContent().toStringUtf8()).endsWith("m" + i);
      }
    }
  }

  @Test
  void refuses_stored_messages_when_there_are_too_many() {
    Party to = client.party();
    for (int i = 0; i < 3; i++) {
      assertThat(sealed(to, false, TestClient.bytes("m" + i)).status()).isEqualTo(200);
    }
    assertLimited(sealed(to, false, TestClient.bytes("m3")));
    try (Socket socket = to.connect().drained()) {
      assertThat(socket.pushed).hasSize(3);
    }
    Awaitility.await().until(() -> sealed(to, false, TestClient.bytes("again")).status() == 200);
  }

  @Test
  void refuses_stored_bytes_when_there_are_too_many() {
    Party to = client.party();
    byte[] large = new byte[60 * 1024];
    assertThat(sealed(to, false, large).status()).isEqualTo(200);
    assertLimited(sealed(to, false, large));
    Awaitility.await().until(() -> sealed(to, false, TestClient.bytes("small")).status() == 200);
    byte[] named = new byte[30 * 1024];
    assertLimited(
        client
            .party()
            .rest()
            .json(
                "PUT",
                "/v1/messages/" + to.aci,
                TestClient.messages(false, TestClient.message(to, named))));
  }

  @Test
  void a_full_queue_keeps_nobody_else_from_getting_a_message() {
    Party full = client.party();
    Party other = client.party();
    for (int i = 0; i < 3; i++) {
      assertThat(sealed(full, false, TestClient.bytes("m" + i)).status()).isEqualTo(200);
    }
    Reply reply =
        client
            .rest(null)
            .call(
                "PUT",
                "/v1/messages/multi_recipient?ts=1&online=false",
                TestClient.multiRecipient(
                    TestClient.bytes("to both"), Recipient.of(full), Recipient.of(other)),
                TestClient.multiRecipientHeaders(full, other));
    assertThat(reply.status()).isEqualTo(200);
    assertThat(reply.text()).isEqualTo("{\"uuids404\":[],\"uuids429\":[\"" + full.aci + "\"]}");
    try (Socket socket = other.connect().drained()) {
      assertThat(socket.next().envelope().getContent().toStringUtf8()).endsWith("to both");
    }
    try (Socket socket = full.connect().drained()) {
      assertThat(socket.pushed).hasSize(3);
    }
  }

  @Test
  void has_at_most_so_many_messages_in_flight() {
    Party to = client.party();
    try (Socket socket = client.connectSilent(to.authorization()).drained()) {
      for (int i = 0; i < 8; i++) {
        assertThat(sealed(to, true, TestClient.bytes("m" + i)).status()).isEqualTo(200);
      }
      assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);
      assertThat(socket.pushed).hasSize(4);
      for (int i = 0; i < 8; i++) {
        TestClient.Pushed pushed = socket.next();
        assertThat(pushed.envelope().getContent().toStringUtf8()).endsWith("m" + i);
        socket.acknowledge(pushed);
      }
    }
  }

  /** One reader that reads nothing must not cost the others anything, and is let go. */
  @Test
  void closes_who_does_not_read() {
    Party slow = client.party();
    Party quick = client.party();
    Socket stuck = client.connectSilent(slow.authorization()).drained();
    stuck.reading = false;
    try (Socket socket = quick.connect().drained()) {
      byte[] large = new byte[60 * 1024];
      // The answers to these calls are what it does not read: more than kernel and service hold.
      String path = "/v1/nothing/" + "x".repeat(1000);
      for (int i = 0; i < 5; i++) {
        sealed(slow, true, large);
      }
      assertThat(sealed(quick, true, TestClient.bytes("x")).status()).isEqualTo(200);
      assertThat(socket.next().envelope().getContent().toStringUtf8()).endsWith("x");
      Awaitility.await()
          .atMost(TestClient.PATIENCE)
          .until(
              () -> {
                for (int i = 0; i < 2_000; i++) {
                  stuck.callAsync("GET", path, new byte[0], Map.of());
                }
                return service.connections("authenticated") == 1;
              });
    } finally {
      stuck.abort();
    }
  }

  @Test
  void admits_so_many_connections_and_frees_their_places() {
    List<Socket> sockets = new ArrayList<>();
    try {
      Awaitility.await()
          .until(
              () ->
                  service.connections("authenticated") + service.connections("unauthenticated")
                      == 0);
      for (int i = 0; i < 5; i++) {
        sockets.add(client.connect(null));
      }
      org.assertj.core.api.Assertions.assertThatThrownBy(() -> client.connect(null))
          .isInstanceOf(CompletionException.class);
    } finally {
      sockets.forEach(Socket::close);
    }
    Awaitility.await().until(() -> service.connections("unauthenticated") == 0);
    client.connect(null).close();
  }

  @Test
  void holds_so_many_bytes_of_unfinished_messages_and_forgets_them_with_their_connection() {
    for (int round = 0; round < 2; round++) {
      Socket first = client.connect(null);
      Socket second = client.connect(null);
      first.raw().sendBinary(ByteBuffer.wrap(new byte[200 * 1024]), false).join();
      assertThat(second.call("GET", "/v1/keepalive").status()).isEqualTo(200);
      second.raw().sendBinary(ByteBuffer.wrap(new byte[200 * 1024]), false).join();
      assertThat(List.of(first, second)).anyMatch(socket -> socket.closeCode() == 1013);
      first.abort();
      second.abort();
      Awaitility.await().until(() -> service.connections("unauthenticated") == 0);
    }
  }

  @Test
  void closes_an_idle_connection() {
    Socket socket = client.connect(null);
    assertThat(socket.closeCode()).isIn(1000, 1001);
  }

  @Test
  void refuses_large_bodies_whatever_their_length_header_says() {
    byte[] large = new byte[100 * 1024 + 1];
    assertThat(client.rest(null).json("POST", "/v1/registration", large).status()).isEqualTo(413);
    assertThat(
            client
                .chunked(null)
                .call("POST", "/v1/registration", large, Map.of("Content-Type", "application/json"))
                .status())
        .isEqualTo(413);
  }
}
