package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.interfaces.EdECPrivateKey;
import java.security.spec.NamedParameterSpec;
import java.util.Arrays;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Signatures of intents are those of the JDK, whichever implementation makes them. */
class DsseTest {
  private static final byte[] PAE = "DSSEv1 4 test 2 ok".getBytes(StandardCharsets.US_ASCII);

  @Test
  void ed25519_makes_the_bytes_of_the_jdk_and_leaves_the_key_as_it_is() throws Exception {
    KeyPair pair = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    Signature jdk = Signature.getInstance("Ed25519");
    jdk.initSign(pair.getPrivate());
    jdk.update(PAE);
    byte[] expected = jdk.sign();
    for (int time = 0; time < 2; time++) {
      assertThat(Dsse.sign(pair.getPrivate(), PAE)).isEqualTo(expected);
    }
    assertThat(Dsse.verifies(pair.getPublic(), PAE, expected)).isTrue();
  }

  private static PrivateKey key(Optional<byte[]> seed) {
    return new EdECPrivateKey() {
      private static final long serialVersionUID = 1L;

      @Override
      public Optional<byte[]> getBytes() {
        return seed;
      }

      @Override
      public NamedParameterSpec getParams() {
        return NamedParameterSpec.ED25519;
      }

      @Override
      public String getAlgorithm() {
        return "Ed25519";
      }

      @Override
      public String getFormat() {
        return "none";
      }

      @Override
      public byte[] getEncoded() {
        return new byte[0];
      }
    };
  }

  /** A provider may show the array that it signs with. */
  @Test
  void key_that_shows_its_own_array_keeps_it() throws Exception {
    KeyPair pair = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    byte[] own = ((EdECPrivateKey) pair.getPrivate()).getBytes().orElseThrow();
    PrivateKey shown = key(Optional.of(own));
    byte[] first = Dsse.sign(shown, PAE);
    assertThat(Dsse.sign(shown, PAE)).isEqualTo(first);
    assertThat(Dsse.verifies(pair.getPublic(), PAE, first)).isTrue();
  }

  /** As one in a device is, whose own provider signs with it. */
  @Test
  void key_that_shows_no_bytes_is_left_to_its_provider() throws Exception {
    PrivateKey hidden = key(Optional.empty());
    org.assertj.core.api.Assertions.assertThatThrownBy(() -> Dsse.sign(hidden, PAE))
        .as("the JDK's provider has no such key")
        .isInstanceOf(java.security.InvalidKeyException.class);
  }

  @Test
  void p256_verifies() throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(256);
    KeyPair pair = generator.generateKeyPair();
    byte[] signature = Dsse.sign(pair.getPrivate(), PAE);
    assertThat(Dsse.verifies(pair.getPublic(), PAE, signature)).isTrue();
    assertThat(Dsse.verifies(pair.getPublic(), Arrays.copyOf(PAE, PAE.length - 1), signature))
        .isFalse();
  }
}
