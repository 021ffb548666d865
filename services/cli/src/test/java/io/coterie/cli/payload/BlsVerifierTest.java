package io.coterie.cli.payload;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** Points that look well-formed and are no key or signature. */
class BlsVerifierTest {
  private static final String GENERATOR_G1 =
      "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58"
          + "6c55e83ff97a1aeffb3af00adb22c6bb";

  @Test
  void theIdentityIsNoPublicKey() {
    byte[] identity = new byte[48];
    identity[0] = (byte) 0xc0;
    byte[] identitySignature = new byte[96];
    identitySignature[0] = (byte) 0xc0;
    assertThat(BlsVerifier.verify(identity, new byte[0], identitySignature)).isFalse();
    assertThat(
            BlsVerifier.verify(
                HexFormat.of().parseHex(GENERATOR_G1), new byte[0], identitySignature))
        .isFalse();
  }
}
