package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.io.ByteArrayOutputStream;
import java.util.Collections;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

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
}
