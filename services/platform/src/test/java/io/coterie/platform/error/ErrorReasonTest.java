package io.coterie.platform.error;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.Protocol.Operation;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class ErrorReasonTest {
  /** The name of a scheme as people write it: the first word of its protocols. */
  private static String name(Protocol protocol) {
    return protocol.name().split("_", 2)[0];
  }

  /** A text that names one scheme of several sends the users of the others astray. */
  @Test
  void the_text_of_a_wrong_threshold_is_true_of_every_scheme() {
    List<Protocol> keygens =
        Arrays.stream(Protocol.values()).filter(p -> p.operation() == Operation.KEYGEN).toList();
    List<String> alone =
        keygens.stream().filter(p -> p.leastThreshold() == 1).map(ErrorReasonTest::name).toList();
    List<String> others =
        keygens.stream().filter(p -> p.leastThreshold() == 2).map(ErrorReasonTest::name).toList();
    assertThat(alone).containsExactly("BLS");
    assertThat(others).hasSize(keygens.size() - 1);
    assertThat(ErrorReason.THRESHOLD_INVALID.text())
        .contains("below 1 (new BLS keys) or 2 (other schemes, refresh, reshare)")
        .doesNotContainIgnoringCase(others.toArray(CharSequence[]::new));
    assertThat(ErrorReason.THRESHOLD_INVALID.advice())
        .contains("at least 1 for a new BLS key, else 2")
        .doesNotContainIgnoringCase(others.toArray(CharSequence[]::new));
  }
}
