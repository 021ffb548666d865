package io.coterie.platform.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import com.google.protobuf.ByteString;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class SessionIdTest {
  /** As {@code printf 'coterie/session/1order' | sha256sum} prints it. */
  private static final String OF_ORDER =
      "b172e452c61ee1f9a512b5b1d8092855a2f296de4bab25ac058803aa50b5a3d3";

  @Test
  void id_is_the_tagged_hash_of_the_order() {
    SessionId id = SessionId.ofOrder(ByteString.copyFromUtf8("order"));
    assertThat(HexFormat.of().formatHex(id.bytes().toByteArray())).isEqualTo(OF_ORDER);
    assertThat(id).hasToString(OF_ORDER.substring(0, 16));
  }

  @Test
  void id_of_another_length_is_refused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new SessionId(ByteString.copyFrom(new byte[SessionId.LENGTH - 1])));
  }
}
