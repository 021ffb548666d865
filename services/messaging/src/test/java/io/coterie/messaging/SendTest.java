package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Pushed;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Socket;
import io.coterie.messaging.TestClient.Transport;
import io.coterie.proto.signal.Envelope;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

class SendTest {
  private static final String TRACEPARENT =
      "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";

  private final TestService service = TestService.shared();
  private final TestClient client = new TestClient(service);
  private final Party sender = client.party();
  private final Party recipient = client.party();
  private final String path = "/v1/messages/" + recipient.aci;

  private static byte[] binary(UUID uuid) {
    return ByteBuffer.allocate(16)
        .putLong(uuid.getMostSignificantBits())
        .putLong(uuid.getLeastSignificantBits())
        .array();
  }

  @ParameterizedTest
  @CsvSource({"REST, true", "REST, false", "SOCKET, true", "SOCKET, false"})
  void delivers_an_envelope_that_old_and_new_clients_can_read(Via via, boolean online) {
    Map<String, Object> body =
        TestClient.messages(online, TestClient.message(recipient, TestClient.bytes("hello")));
    try (Socket socket = recipient.connect().drained()) {
      Reply reply =
          via.open(client, sender).json("PUT", path, body, Map.of("traceparent", TRACEPARENT));
      assertThat(reply.status()).as(reply.text()).isEqualTo(200);
      assertThat(reply.json().get("needsSync").asBoolean()).isFalse();
      Pushed pushed = socket.next();
      Envelope envelope = pushed.envelope();
      assertThat(envelope.getType()).isEqualTo(Envelope.Type.CIPHERTEXT);
      assertThat(envelope.getContent().toStringUtf8()).isEqualTo("hello");
      assertThat(envelope.getClientTimestamp()).isEqualTo(body.get("timestamp"));
      assertThat(envelope.getServerTimestamp())
          .isCloseTo(System.currentTimeMillis(), org.assertj.core.data.Offset.offset(60_000L));
      assertThat(envelope.getSource()).isEqualTo(sender.aci.toString());
      assertThat(envelope.getSourceServiceId().toByteArray()).isEqualTo(binary(sender.aci));
      assertThat(envelope.getSourceDevice()).isEqualTo(1);
      assertThat(envelope.getDestination()).isEqualTo(recipient.aci.toString());
      assertThat(envelope.getDestinationServiceId().toByteArray()).isEqualTo(binary(recipient.aci));
      UUID guid = UUID.fromString(envelope.getGuid());
      assertThat(envelope.getServerGuid()).isEqualTo(ByteString.copyFrom(binary(guid)));
      assertThat(envelope.getEphemeral()).isEqualTo(online);
      assertThat(envelope.getUrgent()).isTrue();
      assertThat(envelope.getStory()).isFalse();
      assertThat(envelope.hasSharedMrmKey()).isFalse();
      assertThat(pushed.headers())
          .contains(
              "X-Signal-Key: false",
              "X-Signal-Timestamp: " + envelope.getServerTimestamp(),
              "traceparent: " + TRACEPARENT);
    }
  }

  @ParameterizedTest
  @EnumSource
  void does_not_name_a_sealed_sender(Via via) {
    try (Socket socket = recipient.connect().drained()) {
      Map<String, Object> message = TestClient.message(recipient, TestClient.bytes("sealed"));
      message.put("type", 6);
      Reply reply =
          via.open(client, (String) null)
              .json(
                  "PUT",
                  path + "?story=false",
                  TestClient.messages(true, message),
                  Map.of(
                      "Unidentified-Access-Key",
                      TestClient.base64(recipient.accessKey),
                      "traceparent",
                      "malformed"));
      assertThat(reply.status()).isEqualTo(200);
      Pushed pushed = socket.next();
      assertThat(pushed.envelope().hasSource()).isFalse();
      assertThat(pushed.envelope().hasSourceServiceId()).isFalse();
      assertThat(pushed.envelope().hasSourceDevice()).isFalse();
      assertThat(pushed.headers()).noneMatch(h -> h.startsWith("traceparent"));
    }
  }

  @ParameterizedTest
  @EnumSource
  void reaches_a_phone_number_identity_by_name_only(Via via) {
    String pni = "/v1/messages/PNI:" + recipient.pni;
    Map<String, Object> body =
        TestClient.messages(true, TestClient.message(recipient, TestClient.bytes("x")));
    try (Socket socket = recipient.connect().drained()) {
      assertThat(via.open(client, sender).json("PUT", pni, body).status()).isEqualTo(200);
      Envelope envelope = socket.next().envelope();
      assertThat(envelope.getDestination()).isEqualTo("PNI:" + recipient.pni);
      assertThat(envelope.getDestinationServiceId().size()).isEqualTo(17);
      assertThat(envelope.getDestinationServiceId().byteAt(0)).isEqualTo((byte) 1);
    }
    assertThat(
            via.open(client, (String) null)
                .json(
                    "PUT",
                    pni,
                    body,
                    Map.of("Unidentified-Access-Key", TestClient.base64(recipient.accessKey)))
                .status())
        .isEqualTo(401);
  }

  @ParameterizedTest
  @EnumSource
  void refuses_senders_without_right(Via via) {
    Map<String, Object> body =
        TestClient.messages(true, TestClient.message(recipient, TestClient.bytes("x")));
    Transport anonymous = via.open(client, (String) null);
    assertThat(anonymous.json("PUT", path, body).status()).isEqualTo(401);
    assertThat(
            anonymous
                .json(
                    "PUT",
                    path,
                    body,
                    Map.of("Unidentified-Access-Key", TestClient.base64(new byte[16])))
                .status())
        .isEqualTo(401);
    assertThat(
            anonymous
                .json(
                    "PUT",
                    "/v1/messages/" + UUID.randomUUID(),
                    body,
                    Map.of("Unidentified-Access-Key", TestClient.base64(recipient.accessKey)))
                .status())
        .isEqualTo(401);
    assertThat(anonymous.json("PUT", path, body, Map.of("Group-Send-Token", "AAAA")).status())
        .isEqualTo(401);
    Transport named = via.open(client, sender);
    assertThat(named.json("PUT", "/v1/messages/" + UUID.randomUUID(), body).status())
        .isEqualTo(404);
    assertThat(named.json("PUT", "/v1/messages/nobody", body).status()).isEqualTo(422);
    assertThat(named.json("PUT", path, body, Map.of("Group-Send-Token", "AAAA")).status())
        .isEqualTo(400);
  }

  @ParameterizedTest
  @EnumSource
  void says_which_devices_are_stale_before_which_are_missing_or_extra(Via via) {
    Transport named = via.open(client, sender);
    byte[] content = TestClient.bytes("x");
    int stale = recipient.registrationId ^ 1;
    Reply gone =
        named.json("PUT", path, TestClient.messages(true, TestClient.message(1, stale, content)));
    assertThat(gone.status()).isEqualTo(410);
    assertThat(gone.text()).isEqualTo("{\"staleDevices\":[1]}");
    Reply mismatch =
        named.json(
            "PUT",
            path,
            TestClient.messages(
                true, TestClient.message(2, 5, content), TestClient.message(3, 5, content)));
    assertThat(mismatch.status()).isEqualTo(409);
    assertThat(mismatch.text()).isEqualTo("{\"missingDevices\":[1],\"extraDevices\":[2,3]}");
    Reply both =
        named.json(
            "PUT",
            path,
            TestClient.messages(
                true, TestClient.message(1, stale, content), TestClient.message(2, 5, content)));
    assertThat(both.status()).as("410 comes first").isEqualTo(410);
  }

  private record Change(String name, int status, Consumer<Map<String, Object>> apply) {
    @Override
    public String toString() {
      return name;
    }
  }

  private static Map<String, Object> first(Map<String, Object> body) {
    @SuppressWarnings("unchecked")
    List<Map<String, Object>> messages = (List<Map<String, Object>>) body.get("messages");
    return messages.getFirst();
  }

  static final List<Change> CHANGES =
      List.of(
          new Change("no messages", 422, b -> b.remove("messages")),
          new Change("messages not a list", 400, b -> b.put("messages", "x")),
          new Change("empty messages", 422, b -> b.put("messages", List.of())),
          new Change("no timestamp", 200, b -> b.remove("timestamp")),
          new Change("negative timestamp", 422, b -> b.put("timestamp", -1)),
          new Change("timestamp no client can show", 422, b -> b.put("timestamp", Long.MAX_VALUE)),
          new Change("online not a flag", 400, b -> b.put("online", "yes")),
          new Change(
              "null message",
              422,
              b -> b.put("messages", new ArrayList<>(java.util.Collections.singletonList(null)))),
          new Change("no type", 422, b -> first(b).remove("type")),
          new Change("type that only the service sends", 400, b -> first(b).put("type", 5)),
          new Change("unknown type", 400, b -> first(b).put("type", 99)),
          new Change("type no number", 400, b -> first(b).put("type", "1")),
          new Change("fraction", 400, b -> first(b).put("type", 1.5)),
          new Change("device 0", 422, b -> first(b).put("destinationDeviceId", 0)),
          new Change("device 128", 422, b -> first(b).put("destinationDeviceId", 128)),
          new Change("huge device", 400, b -> first(b).put("destinationDeviceId", 1L << 40)),
          new Change("no registration id", 410, b -> first(b).remove("destinationRegistrationId")),
          new Change("no content", 422, b -> first(b).remove("content")),
          new Change("empty content", 422, b -> first(b).put("content", "")),
          new Change("content not base64", 400, b -> first(b).put("content", "*")),
          new Change(
              "content too large",
              413,
              b -> first(b).put("content", TestClient.base64(new byte[96 * 1024 + 1]))),
          new Change(
              "same device twice", 422, b -> b.put("messages", List.of(first(b), first(b)))));

  @ParameterizedTest
  @FieldSource("CHANGES")
  void answers_bodies_with_missing_or_unacceptable_fields_as_the_public_server_does(Change change) {
    Map<String, Object> body =
        TestClient.messages(true, TestClient.message(recipient, TestClient.bytes("x")));
    change.apply().accept(body);
    for (Via via : Via.values()) {
      assertThat(via.open(client, sender).json("PUT", path, body).status())
          .isEqualTo(change.status());
    }
  }

  @Test
  void a_missing_timestamp_is_zero() {
    Map<String, Object> body =
        TestClient.messages(true, TestClient.message(recipient, TestClient.bytes("x")));
    body.remove("timestamp");
    try (Socket socket = recipient.connect().drained()) {
      assertThat(sender.rest().json("PUT", path, body).status()).isEqualTo(200);
      assertThat(socket.next().envelope().getClientTimestamp()).isZero();
    }
  }

  @Test
  void carries_content_up_to_the_limit() {
    byte[] content = new byte[96 * 1024];
    new java.util.Random(1).nextBytes(content);
    try (Socket socket = recipient.connect().drained()) {
      for (Via via : Via.values()) {
        assertThat(
                via.open(client, sender)
                    .json(
                        "PUT",
                        path,
                        TestClient.messages(true, TestClient.message(recipient, content)))
                    .status())
            .isEqualTo(200);
        assertThat(socket.next().envelope().getContent().toByteArray()).isEqualTo(content);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void takes_no_stories_unless_they_are_offered(Via via) {
    Map<String, Object> body =
        TestClient.messages(true, TestClient.message(recipient, TestClient.bytes("story")));
    String unknown = "/v1/messages/" + UUID.randomUUID();
    for (String to : List.of(path, unknown)) {
      assertThat(via.open(client, (String) null).json("PUT", to + "?story=true", body).status())
          .isEqualTo(403);
      assertThat(via.open(client, sender).json("PUT", to + "?story=true", body).status())
          .isEqualTo(403);
    }
    assertThat(
            via.open(client, (String) null)
                .call(
                    "PUT",
                    "/v1/messages/multi_recipient?ts=1&online=true&story=true",
                    TestClient.multiRecipient(
                        TestClient.bytes("story"), TestClient.Recipient.of(recipient)),
                    Map.of("Content-Type", "application/vnd.signal-messenger.mrm"))
                .status())
        .isEqualTo(403);
  }

  @Test
  void keeps_the_order_of_one_sender() {
    try (Socket socket = recipient.connect().drained();
        Socket out = sender.connect()) {
      for (int i = 0; i < 500; i++) {
        out.callAsync(
            "PUT",
            path,
            ("{\"messages\":[{\"type\":1,\"destinationDeviceId\":1,\"destinationRegistrationId\":"
                    + recipient.registrationId
                    + ",\"content\":\""
                    + TestClient.base64(TestClient.bytes("n" + i))
                    + "\"}],\"online\":true,\"timestamp\":1}")
                .getBytes(java.nio.charset.StandardCharsets.UTF_8),
            new TreeMap<>(Map.of("Content-Type", "application/json")));
      }
      for (int i = 0; i < 500; i++) {
        assertThat(socket.next().envelope().getContent().toStringUtf8()).isEqualTo("n" + i);
      }
    }
  }
}
