package io.coterie.coordinator;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FirstLightTest {
  @TempDir Path folder;

  @Test
  void a_key_is_created_and_signs_and_a_repeat_gets_the_same_signature() {
    try (TestInstallation installation = new TestInstallation(folder, 3).start()) {
      ManagedChannel client = installation.backend();
      Key key = installation.createKey(client, "hot", 2, 3);
      assertThat(key.getState()).isEqualTo(Key.State.ACTIVE);
      assertThat(key.getPartiesList()).containsExactly("p1", "p2", "p3");

      SignedIntent intent =
          installation.wallet.sign(TestInstallation.signingIntent("hot", "pay 5").build());
      Signing signing = TestInstallation.signing(client).sign(TestInstallation.sign(intent));

      assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
      assertThat(signing.getSigningSetList()).hasSize(2);
      assertThat(
              TestBls.verifies(
                  key.getPublicKey(), "pay 5".getBytes(), signing.getSignature().toByteArray()))
          .isTrue();
      assertThat(TestInstallation.signing(client).sign(TestInstallation.sign(intent)))
          .isEqualTo(signing);
    }
  }
}
