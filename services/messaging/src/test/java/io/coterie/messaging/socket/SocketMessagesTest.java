package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.messaging.TestClient;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.messaging.queue.SharedContent;
import io.coterie.proto.signal.Envelope;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.io.ByteArrayOutputStream;
import java.util.Collections;
import java.util.OptionalLong;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.signal.libsignal.protocol.SealedSenderMultiRecipientMessage;

class SocketMessagesTest {
  private static final WebSocketMessage CALL =
      WebSocketMessage.newBuilder()
          .setType(WebSocketMessage.Type.REQUEST)
          .setRequest(
              WebSocketRequestMessage.newBuilder()
                  .setId(7)
                  .setVerb("GET")
                  .setPath("/v1/keepalive")
                  .setBody(ByteString.copyFromUtf8("body"))
                  .addAllHeaders(Collections.nCopies(64, "name: value")))
          .build();

  private static WebSocketMessage withUnknown(int fields) {
    UnknownFieldSet.Field.Builder unknown = UnknownFieldSet.Field.newBuilder();
    for (int i = 0; i < fields; i++) {
      unknown.addLengthDelimited(ByteString.copyFromUtf8("u"));
    }
    return CALL.toBuilder()
        .setUnknownFields(UnknownFieldSet.newBuilder().addField(15, unknown.build()).build())
        .build();
  }

  @Test
  void a_call_with_all_that_clients_send_is_read() throws Exception {
    assertThat(SocketMessages.parse(CALL.toByteArray())).isEqualTo(CALL);
    assertThat(SocketMessages.parse(withUnknown(3).toByteArray()))
        .as("what is not known is dropped")
        .isEqualTo(CALL);
  }

  private static void assertRefused(byte[] message) {
    assertThatThrownBy(() -> SocketMessages.parse(message))
        .isInstanceOf(InvalidProtocolBufferException.class);
  }

  @Test
  void a_message_of_very_many_fields_is_refused_before_they_are_objects() {
    assertRefused(
        CALL.toBuilder()
            .setRequest(CALL.getRequest().toBuilder().addAllHeaders(Collections.nCopies(100, "h")))
            .build()
            .toByteArray());
    assertRefused(withUnknown(100).toByteArray());
    // Messages in it that are there twice become one.
    ByteArrayOutputStream twice = new ByteArrayOutputStream();
    twice.writeBytes(CALL.toByteArray());
    twice.writeBytes(CALL.toByteArray());
    assertRefused(twice.toByteArray());
    // A type that is not known would be kept as an unknown field.
    ByteArrayOutputStream types = new ByteArrayOutputStream();
    for (int i = 0; i < 200; i++) {
      types.writeBytes(new byte[] {8, 5});
    }
    assertRefused(types.toByteArray());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5, 9, 20, 40})
  void a_message_that_is_cut_off_is_refused(int bytes) {
    byte[] whole = CALL.toByteArray();
    assertRefused(java.util.Arrays.copyOf(whole, whole.length - bytes));
  }

  private static Envelope envelope(byte[] content) {
    return Envelope.newBuilder()
        .setType(Envelope.Type.UNIDENTIFIED_SENDER)
        .setServerTimestamp(1_234)
        .setGuid("a guid")
        .setContent(ByteString.copyFrom(content))
        .build();
  }

  private static void assertPush(QueuedMessage message, String... headers) throws Exception {
    WebSocketMessage push = WebSocketMessage.parseFrom(SocketMessages.push(300, message));
    assertThat(push.getType()).isEqualTo(WebSocketMessage.Type.REQUEST);
    assertThat(push.getRequest().getVerb()).isEqualTo("PUT");
    assertThat(push.getRequest().getPath()).isEqualTo("/api/v1/message");
    assertThat(push.getRequest().getId()).isEqualTo(300);
    assertThat(push.getRequest().getHeadersList()).containsExactly(headers);
    assertThat(Envelope.parseFrom(push.getRequest().getBody())).isEqualTo(message.complete());
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 100, 20_000, 98_304})
  void a_push_has_the_whole_message_and_its_headers(int size) throws Exception {
    Envelope whole = envelope(new byte[size]);
    assertPush(
        new QueuedMessage(OptionalLong.empty(), whole, null, null),
        "X-Signal-Key: false",
        "X-Signal-Timestamp: 1234");
    assertPush(
        new QueuedMessage(OptionalLong.of(5), whole, null, "a trace"),
        "X-Signal-Key: false",
        "X-Signal-Timestamp: 1234",
        "traceparent: a trace");
  }

  @Test
  void a_push_has_the_content_that_recipients_share() throws Exception {
    UUID recipient = UUID.randomUUID();
    byte[] body =
        TestClient.multiRecipient(
            TestClient.bytes("shared"), new TestClient.Recipient(recipient, 1, 7));
    SealedSenderMultiRecipientMessage parsed = SealedSenderMultiRecipientMessage.parse(body);
    SealedSenderMultiRecipientMessage.Recipient view =
        parsed.getRecipients().values().iterator().next();
    QueuedMessage message =
        new QueuedMessage(
            OptionalLong.empty(),
            envelope(new byte[0]).toBuilder().clearContent().build(),
            new SharedContent(
                body, parsed.serializedRecipientView(view), parsed.messageSizeForRecipient(view)),
            null);
    assertThat(message.complete().getContent().toStringUtf8()).endsWith("shared");
    assertPush(message, "X-Signal-Key: false", "X-Signal-Timestamp: 1234");
  }
}
