package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Pushed;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Socket;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.net.http.WebSocketHandshakeException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The contract of the WebSocket, for each store behind it. */
abstract class SocketContract {
  private final TestService service;
  private final TestClient client;
  private final Party sender;
  private final Party recipient;

  SocketContract(TestService service) {
    this.service = service;
    this.client = new TestClient(service);
    this.sender = client.party();
    this.recipient = client.party();
  }

  private void send(boolean online, String content) {
    Reply reply =
        sender
            .rest()
            .json(
                "PUT",
                "/v1/messages/" + recipient.aci,
                TestClient.messages(
                    online, TestClient.message(recipient, TestClient.bytes(content))));
    assertThat(reply.status()).as(reply.text()).isEqualTo(200);
  }

  private long stored() {
    return service.count(
        "SELECT count(*) FROM stored_message WHERE aci = '%s'".formatted(recipient.aci));
  }

  private static String text(Pushed pushed) {
    return pushed.envelope().getContent().toStringUtf8();
  }

  @Test
  void refuses_wrong_credentials_at_the_upgrade() {
    for (String authorization :
        List.of(TestClient.basic(recipient.aci + ".1", "not the password"), "Basic ***", "x")) {
      assertThatThrownBy(() -> client.connect(authorization))
          .cause()
          .isInstanceOf(WebSocketHandshakeException.class)
          .satisfies(
              e ->
                  assertThat(((WebSocketHandshakeException) e).getResponse().statusCode())
                      .isEqualTo(403));
    }
  }

  @Test
  void answers_who_does_not_upgrade() {
    assertThat(client.rest(null).call("GET", "/v1/websocket/").status()).isEqualTo(426);
  }

  @Test
  void gives_stored_messages_first_and_then_says_that_the_queue_is_empty() {
    send(false, "one");
    send(false, "two");
    try (Socket socket = recipient.connect()) {
      socket.drained();
      assertThat(socket.pushed.stream().map(SocketContract::text)).containsExactly("one", "two");
    }
    Awaitility.await().until(() -> stored() == 0);
    try (Socket socket = recipient.connect().drained()) {
      assertThat(socket.pushed).isEmpty();
    }
  }

  @Test
  void gives_again_what_was_not_acknowledged() {
    send(false, "one");
    Socket first = client.connectSilent(recipient.authorization());
    assertThat(text(first.next())).isEqualTo("one");
    first.abort();
    assertThat(stored()).isEqualTo(1);
    try (Socket second = recipient.connect()) {
      assertThat(text(second.next())).isEqualTo("one");
    }
    Awaitility.await().until(() -> stored() == 0);
  }

  @Test
  void keeps_what_was_refused_but_does_not_push_it_again_on_the_same_connection() {
    send(false, "refused");
    try (Socket first = client.connectSilent(recipient.authorization())) {
      Pushed pushed = first.next();
      first.drained();
      first.respond(pushed.id(), 500);
      send(false, "next");
      assertThat(text(first.next())).isEqualTo("next");
      assertThat(first.pushed).isEmpty();
    }
    try (Socket second = recipient.connect()) {
      assertThat(List.of(text(second.next()), text(second.next())))
          .containsExactly("refused", "next");
    }
  }

  @Test
  void ignores_acknowledgements_of_nothing() {
    try (Socket socket = recipient.connect().drained()) {
      socket.respond(424242, 200);
      socket.respond(0, 500);
      assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);
    }
  }

  @Test
  void replaces_an_older_connection_of_the_same_device() {
    Socket first = recipient.connect().drained();
    try (Socket second = recipient.connect().drained()) {
      assertThat(first.closeCode()).isEqualTo(4409);
      send(true, "for the newer");
      assertThat(text(second.next())).isEqualTo("for the newer");
    }
  }

  @Test
  void delivers_online_messages_that_waited_less_than_ten_seconds() {
    send(true, "waited");
    service.clock().advance(Duration.ofMillis(9_000));
    try (Socket socket = recipient.connect()) {
      assertThat(text(socket.next())).isEqualTo("waited");
    }
    assertThat(stored()).as("never in the database").isZero();
  }

  @Test
  void drops_online_messages_that_nobody_fetched_in_ten_seconds() {
    send(true, "too late");
    assertThat(stored()).as("never in the database").isZero();
    service.clock().advance(Duration.ofSeconds(10));
    try (Socket socket = recipient.connect().drained()) {
      send(true, "marker");
      assertThat(text(socket.next())).isEqualTo("marker");
    }
  }

  @Test
  void gives_everything_to_who_acknowledges_however_much_there_is() {
    int count = 600;
    try (Socket out = sender.connect()) {
      for (int i = 0; i < count; i++) {
        assertThat(
                out.json(
                        "PUT",
                        "/v1/messages/" + recipient.aci,
                        TestClient.messages(
                            false, TestClient.message(recipient, TestClient.bytes("m" + i))))
                    .status())
            .isEqualTo(200);
      }
    }
    try (Socket socket = recipient.connect()) {
      for (int i = 0; i < count; i++) {
        assertThat(text(socket.next())).isEqualTo("m" + i);
      }
      socket.drained();
    }
    Awaitility.await().until(() -> stored() == 0);
  }

  /** At least once, and in order of first delivery, whatever happens to the connection. */
  @Test
  void loses_no_stored_message_while_the_reader_keeps_breaking_off() {
    int count = 200;
    Random random = new Random(5);
    java.util.concurrent.CompletableFuture<Void> sending =
        java.util.concurrent.CompletableFuture.runAsync(
            () -> {
              try (Socket out = sender.connect()) {
                for (int i = 0; i < count; i++) {
                  assertThat(
                          out.json(
                                  "PUT",
                                  "/v1/messages/" + recipient.aci,
                                  TestClient.messages(
                                      false,
                                      TestClient.message(recipient, TestClient.bytes("m" + i))))
                              .status())
                      .isEqualTo(200);
                }
              }
            });
    java.util.Set<String> seen = new java.util.LinkedHashSet<>();
    while (seen.size() < count) {
      Socket socket = client.connectSilent(recipient.authorization());
      for (int i = random.nextInt(20); i >= 0 && seen.size() < count; i--) {
        Pushed pushed = socket.next();
        seen.add(text(pushed));
        if (random.nextInt(4) > 0) {
          socket.acknowledge(pushed);
        }
      }
      socket.abort();
    }
    sending.join();
    assertThat(seen)
        .containsExactlyElementsOf(
            java.util.stream.IntStream.range(0, count).mapToObj(i -> "m" + i).toList());
  }

  @Test
  void pushes_at_most_256_before_it_gets_an_acknowledgement() {
    for (int i = 0; i < 300; i++) {
      // The online ones last: they do not wait long.
      send(i >= 260, "m" + i);
    }
    try (Socket socket = client.connectSilent(recipient.authorization())) {
      Awaitility.await().until(() -> socket.pushed.size() == 256);
      assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);
      assertThat(socket.pushed).as("whatever was to come has come before the reply").hasSize(256);
      socket.acknowledge(socket.next());
      Awaitility.await().until(() -> socket.pushed.size() == 256);
      for (int i = 0; i < 299; i++) {
        socket.acknowledge(socket.next());
      }
      socket.drained();
    }
  }

  @Test
  void reassembles_fragments_and_answers_several_calls_at_once() {
    byte[] call =
        WebSocketMessage.newBuilder()
            .setType(WebSocketMessage.Type.REQUEST)
            .setRequest(
                WebSocketRequestMessage.newBuilder()
                    .setVerb("PUT")
                    .setPath("/v1/messages/" + sender.aci)
                    .setId(99))
            .build()
            .toByteArray();
    try (Socket socket = recipient.connect().drained()) {
      for (int i = 0; i < call.length; i++) {
        socket.raw().sendBinary(ByteBuffer.wrap(call, i, 1), i == call.length - 1).join();
      }
      var replies =
          java.util.stream.IntStream.range(0, 50)
              .mapToObj(i -> socket.callAsync("GET", "/v2/keys", new byte[0], Map.of("X", "y")))
              .toList();
      replies.forEach(reply -> assertThat(reply.join().status()).isEqualTo(200));
    }
  }

  @Test
  void closes_who_sends_what_is_no_message() {
    Socket garbage = client.connect(null);
    garbage.sendRaw(new byte[] {(byte) 0xFF, 1, 2, 3});
    assertThat(garbage.closeCode()).isEqualTo(1007);
    Socket untyped = client.connect(null);
    untyped.sendRaw(new byte[0]);
    assertThat(untyped.closeCode()).isEqualTo(1007);
    Socket text = client.connect(null);
    text.raw().sendText("hello", true);
    assertThat(text.closeCode()).isEqualTo(1003);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void closes_who_sends_too_much(boolean whole) {
    Socket socket = client.connect(null);
    byte[] part = new byte[whole ? 512 * 1024 + 1 : 100 * 1024];
    new Random(3).nextBytes(part);
    try {
      for (int i = 0; i < (whole ? 1 : 6); i++) {
        socket.raw().sendBinary(ByteBuffer.wrap(part), whole).join();
      }
    } catch (java.util.concurrent.CompletionException e) {
      // The service has closed before the last part was sent.
    }
    assertThat(socket.closeCode()).isIn(1009, 1006);
  }

  @Test
  void answers_malformed_calls_inside_the_socket() {
    try (Socket socket = client.connect(null)) {
      assertThat(socket.call("", "").status()).isEqualTo(404);
      assertThat(socket.call("GET", "/v1/keepalive?%zz").status()).isEqualTo(400);
      assertThat(socket.call("GET", "x".repeat(10_000)).status()).isEqualTo(404);
      assertThat(socket.call("GET", "/v1/keepalive", new byte[1000], Map.of("", "")).status())
          .isEqualTo(200);
    }
  }
}
