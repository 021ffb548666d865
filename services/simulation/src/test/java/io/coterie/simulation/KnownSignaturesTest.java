package io.coterie.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.StatementSignature;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The memory of signatures says the same as verifying them. */
class KnownSignaturesTest {
  private static final ByteString STATEMENT = ByteString.copyFromUtf8("statement");
  private static final ByteString SIGNATURE = Identities.sign(1, STATEMENT);

  @BeforeAll
  static void remembers() {
    KnownSignatures.use();
  }

  private static boolean verifies(int party, ByteString statement, ByteString signature) {
    return StatementSignature.verifies(Identities.evidenceKey(party), statement, signature);
  }

  @Test
  void signature_that_was_made_is_right() {
    assertThat(verifies(1, STATEMENT, SIGNATURE)).isTrue();
  }

  @Test
  void signature_of_another_or_of_something_else_is_wrong_the_second_time_too() {
    byte[] altered = SIGNATURE.toByteArray();
    altered[40] ^= 1;
    for (int time = 0; time < 2; time++) {
      assertThat(verifies(2, STATEMENT, SIGNATURE)).isFalse();
      assertThat(verifies(1, ByteString.copyFromUtf8("another"), SIGNATURE)).isFalse();
      assertThat(verifies(1, STATEMENT, ByteString.copyFrom(altered))).isFalse();
    }
  }
}
