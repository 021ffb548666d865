package io.coterie.coordinator.verification;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.TestEcdsa;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.math.BigInteger;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import org.junit.jupiter.api.Test;

class EcdsaVerifierTest {
  private static final ByteString DIGEST =
      ByteString.copyFrom(new byte[32]).substring(1).concat(hex("07"));
  private static final BigInteger N =
      new BigInteger("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16);

  private final EcdsaVerifier verifier = new EcdsaVerifier();

  private static ByteString hex(String text) {
    return ByteString.copyFrom(HexFormat.of().parseHex(text));
  }

  private boolean verifies(ByteString key, ByteString digest, ByteString bytes, int recoveryId) {
    return verifier.verifies(key, digest, new Signature(bytes, OptionalInt.of(recoveryId)));
  }

  /** The signed example transaction of EIP-155. */
  @Test
  void a_vector_that_is_not_ours() {
    ByteString publicKey =
        hex("024bc2a31265153f07e70e0bab08724e6b85e217f8cd628ceb62974247bb493382");
    ByteString digest = hex("daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53");
    ByteString signature =
        hex(
            "28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276"
                + "67cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83");
    assertThat(verifies(publicKey, digest, signature, 0)).isTrue();
    assertThat(verifies(publicKey, digest, signature, 1)).isFalse();
    assertThat(verifies(publicKey, DIGEST, signature, 0)).isFalse();
  }

  @Test
  void only_the_signature_of_this_digest_under_this_key_with_this_recovery_id() {
    TestEcdsa.Dealt key = TestEcdsa.deal("keys/test", 2, List.of(1, 2, 3), 1);
    ByteString publicKey = key.keyPublic().getPublicKey();
    ByteString other =
        TestEcdsa.deal("keys/test", 2, List.of(1, 2, 3), 2).keyPublic().getPublicKey();
    for (int i = 0; i < 40; i++) {
      ByteString digest =
          DIGEST.substring(0, 31).concat(ByteString.copyFrom(new byte[] {(byte) i}));
      TestEcdsa.Signed signed = TestEcdsa.sign(key.shares(), key.keyPublic(), List.of(), digest);
      assertThat(TestEcdsa.verifies(publicKey, digest, signed.bytes())).isTrue();
      for (int id = -1; id < 5; id++) {
        assertThat(verifies(publicKey, digest, signed.bytes(), id))
            .isEqualTo(id == signed.recoveryId());
      }
      assertThat(verifies(other, digest, signed.bytes(), signed.recoveryId())).isFalse();
      assertThat(
              verifier.verifies(
                  publicKey, digest, new Signature(signed.bytes(), OptionalInt.empty())))
          .isFalse();
      // The other root: valid ECDSA, but s is not low.
      BigInteger s = N.subtract(new BigInteger(1, signed.bytes().substring(32).toByteArray()));
      ByteString high = signed.bytes().substring(0, 32).concat(hex(String.format("%064x", s)));
      assertThat(TestEcdsa.verifies(publicKey, digest, high)).isTrue();
      assertThat(verifies(publicKey, digest, high, signed.recoveryId() ^ 1)).isFalse();
    }
  }

  @Test
  void malformed_input_is_not_valid_and_not_a_crash() {
    TestEcdsa.Dealt key = TestEcdsa.deal("keys/test", 2, List.of(1, 2), 1);
    ByteString publicKey = key.keyPublic().getPublicKey();
    TestEcdsa.Signed good = TestEcdsa.sign(key.shares(), key.keyPublic(), List.of(), DIGEST);
    String n = N.toString(16);
    for (String bad :
        List.of(
            "",
            "00".repeat(64),
            "00".repeat(63) + "01",
            "00".repeat(31) + "01" + "00".repeat(32),
            n + "00".repeat(31) + "01",
            "00".repeat(31) + "01" + n,
            "ff".repeat(64),
            "01".repeat(65),
            "01".repeat(63))) {
      for (int id = 0; id < 4; id++) {
        assertThat(verifies(publicKey, DIGEST, hex(bad), id)).as(bad).isFalse();
      }
    }
    Random random = new Random(3);
    for (int i = 0; i < 500; i++) {
      byte[] bytes = new byte[random.nextInt(70)];
      random.nextBytes(bytes);
      ByteString noise = ByteString.copyFrom(bytes);
      assertThat(verifies(publicKey, DIGEST, noise, i % 4)).isFalse();
      assertThat(verifies(noise, DIGEST, good.bytes(), good.recoveryId())).isFalse();
      if (bytes.length != 32) {
        assertThat(verifies(publicKey, noise, good.bytes(), good.recoveryId())).isFalse();
      }
    }
    // The identity, and a point in its other encoding.
    assertThat(verifies(hex("00"), DIGEST, good.bytes(), good.recoveryId())).isFalse();
    assertThat(verifies(hex("00".repeat(33)), DIGEST, good.bytes(), good.recoveryId())).isFalse();
  }

  @Test
  void sound_keys() {
    for (List<Integer> parties : List.of(List.of(1, 2), List.of(1, 4, 6, 7, 65535))) {
      for (int t = 2; t <= parties.size(); t++) {
        TestEcdsa.Dealt key = TestEcdsa.deal("keys/test", t, parties, t);
        assertThat(verifier.isSound(key.keyPublic())).isTrue();
        assertThat(verifier.isSound(TestEcdsa.refresh(key, 5).keyPublic())).isTrue();
      }
    }
  }

  @Test
  void keys_that_are_not_what_they_claim() {
    KeyPublic key = TestEcdsa.deal("keys/test", 2, List.of(1, 2, 3), 1).keyPublic();
    KeyPublic other = TestEcdsa.deal("keys/test", 2, List.of(1, 2, 3), 2).keyPublic();
    KeyPublic cubic = TestEcdsa.deal("keys/test", 3, List.of(1, 2, 3), 1).keyPublic();
    for (KeyPublic bad :
        List.of(
            KeyPublic.getDefaultInstance(),
            key.toBuilder().setPublicKey(other.getPublicKey()).build(),
            key.toBuilder().setPublicKey(hex("00")).build(),
            key.toBuilder().clearChainCode().build(),
            key.toBuilder().setChainCode(hex("01".repeat(31))).build(),
            key.toBuilder().setChainCode(hex("01".repeat(33))).build(),
            key.toBuilder().setProofOfPossession(hex("01".repeat(96))).build(),
            key.toBuilder().setVerificationShares(2, other.getVerificationShares(2)).build(),
            key.toBuilder().setVerificationShares(0, other.getVerificationShares(0)).build(),
            key.toBuilder().setVerificationShares(1, key.getVerificationShares(0)).build(),
            key.toBuilder()
                .setVerificationShares(
                    0,
                    VerificationShare.newBuilder()
                        .setParty(7)
                        .setPoint(key.getVerificationShares(0).getPoint()))
                .build(),
            key.toBuilder()
                .setVerificationShares(0, key.getVerificationShares(0).toBuilder().setParty(0))
                .build(),
            // A threshold lower than the polynomial's: two parties could not sign.
            cubic.toBuilder().setThreshold(2).build(),
            key.toBuilder().setThreshold(4).build(),
            key.toBuilder().setThreshold(0).build(),
            key.toBuilder()
                .setVerificationShares(
                    0, VerificationShare.newBuilder().setParty(1).setPoint(hex("05".repeat(33))))
                .build())) {
      assertThat(verifier.isSound(bad)).as("%s", bad).isFalse();
    }
  }
}
