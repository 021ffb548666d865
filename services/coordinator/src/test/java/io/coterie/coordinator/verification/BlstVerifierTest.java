package io.coterie.coordinator.verification;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.TestKeys;
import io.coterie.coordinator.session.ResultVerifier.Claim;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import supranational.blst.P2;
import supranational.blst.P2_Affine;

class BlstVerifierTest {
  private static final ByteString MESSAGE = ByteString.copyFromUtf8("message");
  private final BlstVerifier verifier = new BlstVerifier();

  /** bls12-381-tests of Ethereum's consensus specification: verify_valid_case. */
  @Test
  void a_vector_that_is_not_ours() {
    ByteString publicKey =
        hex(
            "a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a");
    ByteString message = hex("00".repeat(32));
    ByteString signature =
        hex(
            "b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb5158090352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55");
    assertThat(verifies(publicKey, message, signature)).isTrue();
    assertThat(verifies(publicKey, hex("01".repeat(32)), signature)).isFalse();
  }

  private boolean verifies(ByteString publicKey, ByteString message, ByteString signature) {
    return verifier.verifies(publicKey, message, new Signature(signature, OptionalInt.empty()));
  }

  private static ByteString hex(String text) {
    return ByteString.copyFrom(HexFormat.of().parseHex(text));
  }

  @Test
  void only_the_signature_of_this_message_under_this_key() {
    TestKeys.Key key = TestKeys.deal(2, List.of(1, 2, 3), 1);
    TestKeys.Key other = TestKeys.deal(2, List.of(1, 2, 3), 2);
    ByteString signature = key.sign("message");
    assertThat(verifies(key.publicKey(), MESSAGE, signature)).isTrue();
    assertThat(verifies(other.publicKey(), MESSAGE, signature)).isFalse();
    assertThat(verifies(key.publicKey(), ByteString.copyFromUtf8("massage"), signature)).isFalse();
    assertThat(
            verifier.verifies(
                key.publicKey(), MESSAGE, new Signature(signature, OptionalInt.of(0))))
        .isFalse();
  }

  @Test
  void several_together_are_valid_if_each_is() {
    TestKeys.Key key = TestKeys.deal(2, List.of(1, 2, 3), 1);
    TestKeys.Key other = TestKeys.deal(2, List.of(1, 2, 3), 2);
    assertThat(verifier.verifiesTogether()).isTrue();
    assertThat(verifier.verifiesAll(List.of())).isFalse();
    // More than blst pairs at a time, with the same key and with others, the same message twice.
    List<Claim> good = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      TestKeys.Key signer = i % 3 == 0 ? other : key;
      String message = "message " + i / 2;
      good.add(claim(signer.publicKey(), message, signer.sign(message)));
      assertThat(verifier.verifiesAll(good)).isTrue();
    }
    ByteString identity = ByteString.copyFrom(new byte[] {(byte) 0xC0}).concat(zeros(95));
    ByteString outside = outsideOfTheSubgroup();
    for (int place : new int[] {0, 7, 8, 19}) {
      Claim right = good.get(place);
      for (Claim wrong :
          List.of(
              claim(right.publicKey(), "another", right.signature().bytes()),
              claim(key.publicKey(), "message x", other.sign("message x")),
              claim(right.publicKey(), "message", identity),
              claim(right.publicKey(), "message", outside),
              claim(right.publicKey(), "message", zeros(96)),
              claim(right.publicKey(), "message", ByteString.EMPTY),
              claim(zeros(48), "message", right.signature().bytes()),
              new Claim(
                  right.publicKey(),
                  right.payload(),
                  new Signature(right.signature().bytes(), OptionalInt.of(0))))) {
        List<Claim> claims = new ArrayList<>(good);
        claims.set(place, wrong);
        assertThat(verifier.verifiesAll(claims)).as("%d: %s", place, wrong).isFalse();
      }
    }
  }

  /** Their sum is that of the right ones: only numbers that nobody knows tell them apart. */
  @Test
  void two_wrong_ones_do_not_make_up_for_each_other() {
    TestKeys.Key key = TestKeys.deal(2, List.of(1, 2, 3), 1);
    P2_Affine added = new P2_Affine(key.sign("anything").toByteArray());
    P2 one = new P2(key.sign("one").toByteArray()).add(added);
    P2 two = new P2(key.sign("two").toByteArray()).add(new P2(added).neg());
    List<Claim> wrong =
        List.of(
            claim(key.publicKey(), "one", ByteString.copyFrom(one.compress())),
            claim(key.publicKey(), "two", ByteString.copyFrom(two.compress())));
    assertThat(verifier.verifiesAll(wrong)).isFalse();
    AtomicInteger longs = new AtomicInteger();
    BlstVerifier guessed =
        new BlstVerifier(
            () -> {
              longs.incrementAndGet();
              return 7;
            });
    assertThat(guessed.verifiesAll(wrong)).as("with numbers that are the same").isTrue();
    assertThat(longs.get() * Long.SIZE).as("bits drawn").isEqualTo(wrong.size() * 128);
  }

  private static Claim claim(ByteString publicKey, String message, ByteString signature) {
    return new Claim(
        publicKey, ByteString.copyFromUtf8(message), new Signature(signature, OptionalInt.empty()));
  }

  private static ByteString zeros(int bytes) {
    return ByteString.copyFrom(new byte[bytes]);
  }

  /** A point of the curve that no key signs with. */
  private static ByteString outsideOfTheSubgroup() {
    byte[] bytes = new byte[96];
    bytes[0] = (byte) 0x80;
    for (int x = 1; ; x++) {
      bytes[95] = (byte) x;
      try {
        if (!new P2_Affine(bytes).in_group()) {
          return ByteString.copyFrom(bytes);
        }
      } catch (RuntimeException e) {
        // No point of the curve has this x.
      }
    }
  }

  @Test
  void malformed_points_are_not_valid_and_not_a_crash() {
    TestKeys.Key key = TestKeys.deal(1, List.of(1), 1);
    ByteString good = key.sign("message");
    byte[] infinity = new byte[96];
    infinity[0] = (byte) 0xC0;
    Random random = new Random(3);
    for (int i = 0; i < 300; i++) {
      byte[] bytes = new byte[i % 3 == 0 ? random.nextInt(200) : 96];
      random.nextBytes(bytes);
      if (bytes.length > 0) {
        // On the curve every other time, in the subgroup never.
        bytes[0] = (byte) (0x80 | (bytes[0] & 0x2F));
      }
      assertThat(verifies(key.publicKey(), MESSAGE, ByteString.copyFrom(bytes))).isFalse();
      assertThat(verifies(ByteString.copyFrom(bytes), MESSAGE, good)).isFalse();
    }
    assertThat(verifies(key.publicKey(), MESSAGE, ByteString.copyFrom(infinity))).isFalse();
    byte[] infinityKey = new byte[48];
    infinityKey[0] = (byte) 0xC0;
    assertThat(verifies(ByteString.copyFrom(infinityKey), MESSAGE, ByteString.copyFrom(infinity)))
        .isFalse();
  }

  @Test
  void sound_keys() {
    assertThat(verifier.isSound(TestKeys.deal(1, List.of(9), 1).keyPublic())).isTrue();
    assertThat(verifier.isSound(TestKeys.deal(2, List.of(1, 2, 3), 1).keyPublic())).isTrue();
    assertThat(verifier.isSound(TestKeys.deal(5, List.of(1, 4, 6, 7, 65535), 1).keyPublic()))
        .isTrue();
  }

  @Test
  void keys_that_are_not_what_they_claim() {
    KeyPublic key = TestKeys.deal(2, List.of(1, 2, 3), 1).keyPublic();
    KeyPublic other = TestKeys.deal(2, List.of(1, 2, 3), 2).keyPublic();
    KeyPublic cubic = TestKeys.deal(3, List.of(1, 2, 3), 1).keyPublic();
    for (KeyPublic bad :
        List.of(
            KeyPublic.getDefaultInstance(),
            key.toBuilder().setPublicKey(other.getPublicKey()).build(),
            key.toBuilder().setProofOfPossession(other.getProofOfPossession()).build(),
            key.toBuilder().clearProofOfPossession().build(),
            key.toBuilder().setVerificationShares(2, other.getVerificationShares(2)).build(),
            key.toBuilder().setVerificationShares(0, other.getVerificationShares(0)).build(),
            key.toBuilder().setVerificationShares(1, key.getVerificationShares(0)).build(),
            // The same point for another party: a share of another polynomial.
            key.toBuilder()
                .setVerificationShares(
                    0,
                    VerificationShare.newBuilder()
                        .setParty(7)
                        .setPoint(key.getVerificationShares(0).getPoint()))
                .build(),
            key.toBuilder()
                .setVerificationShares(
                    0, key.getVerificationShares(0).toBuilder().setParty(0).build())
                .build(),
            // A threshold lower than the polynomial's: two parties could not sign.
            cubic.toBuilder().setThreshold(2).build(),
            key.toBuilder().setThreshold(4).build(),
            key.toBuilder().setThreshold(0).build(),
            key.toBuilder()
                .setVerificationShares(
                    0,
                    VerificationShare.newBuilder()
                        .setParty(1)
                        .setPoint(ByteString.copyFrom("x".repeat(48).getBytes(UTF_8))))
                .build())) {
      assertThat(verifier.isSound(bad)).as("%s", bad).isFalse();
    }
  }
}
