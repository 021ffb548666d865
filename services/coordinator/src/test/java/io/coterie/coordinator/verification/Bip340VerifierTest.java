package io.coterie.coordinator.verification;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.TestEcdsa;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class Bip340VerifierTest {
  private static final Path VECTORS = Path.of("../mpc-core/protocols/tests/vectors/bip340.json");

  private final Bip340Verifier verifier = new Bip340Verifier();

  private boolean verifies(ByteString key, ByteString digest, ByteString bytes) {
    return verifier.verifies(key, digest, new Signature(bytes, OptionalInt.empty()));
  }

  private static ByteString hex(JsonNode vector, String name) {
    return ByteString.fromHex(vector.get(name).asString());
  }

  @Test
  void the_vectors_of_the_standard() throws Exception {
    int good = 0;
    int bad = 0;
    for (JsonNode vector :
        JsonMapper.builder().build().readTree(Files.readString(VECTORS)).get("vectors")) {
      boolean valid = vector.get("valid").asBoolean();
      assertThat(
              verifies(hex(vector, "public_key"), hex(vector, "message"), hex(vector, "signature")))
          .as("index %s", vector.get("index"))
          .isEqualTo(valid);
      good += valid ? 1 : 0;
      bad += valid ? 0 : 1;
    }
    assertThat(good).isEqualTo(5);
    assertThat(bad).isEqualTo(10);
  }

  @Test
  void nothing_else_is_a_signature() throws Exception {
    JsonNode vector =
        JsonMapper.builder().build().readTree(Files.readString(VECTORS)).get("vectors").get(0);
    ByteString key = hex(vector, "public_key");
    ByteString digest = hex(vector, "message");
    ByteString good = hex(vector, "signature");
    assertThat(verifies(key, digest, good)).isTrue();
    assertThat(verifier.verifies(key, digest, new Signature(good, OptionalInt.of(0)))).isFalse();
    byte[] altered = good.toByteArray();
    for (int bit = 0; bit < 8 * altered.length; bit += 3) {
      altered[bit / 8] ^= (byte) (1 << bit % 8);
      assertThat(verifies(key, digest, ByteString.copyFrom(altered))).isFalse();
      altered[bit / 8] ^= (byte) (1 << bit % 8);
    }
    Random random = new Random(3);
    for (int i = 0; i < 200; i++) {
      byte[] bytes = new byte[random.nextInt(70)];
      random.nextBytes(bytes);
      ByteString noise = ByteString.copyFrom(bytes);
      assertThat(verifies(key, digest, noise)).isFalse();
      assertThat(verifies(noise, digest, good)).isFalse();
      assertThat(verifies(key, noise, good)).isFalse();
    }
  }

  @Test
  void a_key_is_sound_with_its_parity_chain_code_and_shares() {
    KeyPublic key = TestEcdsa.deal("keys/test", 2, List.of(1, 2, 3), 1).keyPublic();
    KeyPublic other = TestEcdsa.deal("keys/test", 2, List.of(1, 2, 3), 2).keyPublic();
    assertThat(verifier.isSound(key)).isTrue();
    for (KeyPublic bad :
        List.of(
            key.toBuilder().setPublicKey(key.getPublicKey().substring(1)).build(),
            key.toBuilder().setPublicKey(other.getPublicKey()).build(),
            key.toBuilder().clearChainCode().build(),
            key.toBuilder().setProofOfPossession(key.getPublicKey()).build(),
            key.toBuilder().setVerificationShares(2, other.getVerificationShares(2)).build(),
            key.toBuilder().setThreshold(0).build())) {
      assertThat(verifier.isSound(bad)).as("%s", bad).isFalse();
    }
  }
}
