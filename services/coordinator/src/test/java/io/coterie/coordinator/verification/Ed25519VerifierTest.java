package io.coterie.coordinator.verification;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import java.util.stream.Stream;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.math.ec.ECPoint;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class Ed25519VerifierTest {
  private static final X9ECParameters CURVE = CustomNamedCurves.getByName("curve25519");
  private static final BigInteger N = CURVE.getN();
  private static final BigInteger P = CURVE.getCurve().getField().getCharacteristic();
  private static final BigInteger A = BigInteger.valueOf(486_662);

  /** RFC 8032, 7.1, test 2. */
  private static final ByteString KEY =
      ByteString.fromHex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");

  private static final ByteString MESSAGE = ByteString.fromHex("72");
  private static final ByteString SIGNATURE =
      ByteString.fromHex(
          "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
              + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");

  private final Ed25519Verifier verifier = new Ed25519Verifier();

  private boolean verifies(ByteString key, ByteString message, ByteString bytes) {
    return verifier.verifies(key, message, new Signature(bytes, OptionalInt.empty()));
  }

  /** RFC 8032, 7.1, tests 1 and 3. */
  @ParameterizedTest
  @CsvSource({
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a,'',e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025,af82,6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
  })
  void the_vectors_of_the_standard(String key, String message, String signature) {
    assertThat(
            verifies(
                ByteString.fromHex(key),
                ByteString.fromHex(message),
                ByteString.fromHex(signature)))
        .isTrue();
  }

  @Test
  void nothing_else_is_a_signature() {
    assertThat(verifies(KEY, MESSAGE, SIGNATURE)).isTrue();
    assertThat(verifier.verifies(KEY, MESSAGE, new Signature(SIGNATURE, OptionalInt.of(0))))
        .isFalse();
    byte[] altered = SIGNATURE.toByteArray();
    for (int bit = 0; bit < 8 * altered.length; bit++) {
      altered[bit / 8] ^= (byte) (1 << bit % 8);
      assertThat(verifies(KEY, MESSAGE, ByteString.copyFrom(altered))).isFalse();
      altered[bit / 8] ^= (byte) (1 << bit % 8);
    }
    // s + order: the same scalar in another encoding.
    BigInteger s = littleEndian(SIGNATURE.substring(32)).add(N);
    assertThat(verifies(KEY, MESSAGE, SIGNATURE.substring(0, 32).concat(littleEndian(s))))
        .isFalse();
    Random random = new Random(3);
    for (int i = 0; i < 300; i++) {
      byte[] bytes = new byte[random.nextInt(70)];
      random.nextBytes(bytes);
      ByteString noise = ByteString.copyFrom(bytes);
      assertThat(verifies(KEY, MESSAGE, noise)).isFalse();
      assertThat(verifies(noise, MESSAGE, SIGNATURE)).isFalse();
      assertThat(verifies(KEY, noise, SIGNATURE)).isFalse();
    }
  }

  /** Points of small order, and one in its second encoding: lax verifiers take zero for s there. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      })
  void points_of_small_order_are_neither_keys_nor_nonces(String point) {
    ByteString small = ByteString.fromHex(point);
    ByteString zero = ByteString.copyFrom(new byte[32]);
    assertThat(verifies(small, MESSAGE, small.concat(zero))).isFalse();
    assertThat(verifies(small, MESSAGE, SIGNATURE)).isFalse();
    assertThat(verifies(KEY, MESSAGE, small.concat(SIGNATURE.substring(32)))).isFalse();
    assertThat(verifier.isSound(key(2, 1, 2, 3).toBuilder().setPublicKey(small).build())).isFalse();
  }

  /** The map between the two forms of the curve is the right one: both know the same public key. */
  @Test
  void the_base_point_is_the_same_in_both_forms() throws Exception {
    byte[] seed = new byte[32];
    for (int i = 0; i < 10; i++) {
      seed[0] = (byte) i;
      byte[] scalar = Arrays.copyOf(MessageDigest.getInstance("SHA-512").digest(seed), 32);
      scalar[0] &= (byte) 248;
      scalar[31] &= 127;
      scalar[31] |= 64;
      byte[] expected = new byte[32];
      Ed25519.generatePublicKey(seed, 0, expected, 0);
      byte[] point = edwards(littleEndian(ByteString.copyFrom(scalar))).toByteArray();
      // The sign of x depends on the square root that the map was made with.
      expected[31] &= 127;
      point[31] &= 127;
      assertThat(point).isEqualTo(expected);
    }
  }

  @Test
  void sound_keys() {
    for (int[] parties : new int[][] {{1, 2}, {1, 4, 6, 7, 65535}}) {
      for (int t = 1; t <= parties.length; t++) {
        assertThat(verifier.isSound(key(t, parties))).isTrue();
      }
    }
  }

  @Test
  void keys_that_are_not_what_they_claim() {
    KeyPublic key = key(2, 1, 2, 3);
    VerificationShare first = key.getVerificationShares(0);
    for (KeyPublic bad :
        List.of(
            KeyPublic.getDefaultInstance(),
            key.toBuilder().setPublicKey(first.getPoint()).build(),
            key.toBuilder().setChainCode(key.getPublicKey()).build(),
            key.toBuilder().setProofOfPossession(key.getPublicKey()).build(),
            key.toBuilder().setVerificationShares(1, first).build(),
            key.toBuilder().setVerificationShares(0, first.toBuilder().setParty(7)).build(),
            key.toBuilder().setVerificationShares(0, first.toBuilder().setParty(0)).build(),
            key.toBuilder()
                .setVerificationShares(0, first.toBuilder().setPoint(key.getPublicKey()))
                .build(),
            key(3, 1, 2, 3).toBuilder().setThreshold(2).build(),
            key.toBuilder().setThreshold(4).build(),
            key.toBuilder().setThreshold(0).build())) {
      assertThat(verifier.isSound(bad)).as("%s", bad).isFalse();
    }
  }

  /** A key that a dealer shared. */
  private static KeyPublic key(int threshold, int... parties) {
    Random random = new Random(threshold);
    List<BigInteger> polynomial =
        Stream.generate(() -> new BigInteger(512, random).mod(N)).limit(threshold).toList();
    KeyPublic.Builder key =
        KeyPublic.newBuilder().setThreshold(threshold).setPublicKey(edwards(polynomial.getFirst()));
    for (int party : parties) {
      BigInteger value = BigInteger.ZERO;
      for (BigInteger coefficient : polynomial.reversed()) {
        value = value.multiply(BigInteger.valueOf(party)).add(coefficient).mod(N);
      }
      key.addVerificationShares(
          VerificationShare.newBuilder().setParty(party).setPoint(edwards(value)));
    }
    return key.build();
  }

  /** A multiple of the base point as Ed25519 encodes it (RFC 7748, 4.1; RFC 8032, 5.1.2). */
  private static ByteString edwards(BigInteger scalar) {
    ECPoint point = CURVE.getG().multiply(scalar.mod(N)).normalize();
    BigInteger u =
        point
            .getAffineXCoord()
            .toBigInteger()
            .subtract(A.multiply(BigInteger.valueOf(3).modInverse(P)))
            .mod(P);
    BigInteger y = u.subtract(BigInteger.ONE).multiply(u.add(BigInteger.ONE).modInverse(P)).mod(P);
    BigInteger square = A.add(BigInteger.TWO).negate().mod(P);
    BigInteger root = square.modPow(P.add(BigInteger.valueOf(3)).shiftRight(3), P);
    if (!root.multiply(root).mod(P).equals(square)) {
      root = root.multiply(BigInteger.TWO.modPow(P.shiftRight(2), P)).mod(P);
    }
    BigInteger x =
        root.multiply(u).multiply(point.getAffineYCoord().toBigInteger().modInverse(P)).mod(P);
    return littleEndian(x.testBit(0) ? y.setBit(255) : y);
  }

  private static ByteString littleEndian(BigInteger value) {
    byte[] big = value.toByteArray();
    byte[] little = new byte[32];
    for (int i = 0; i < Math.min(big.length, little.length); i++) {
      little[i] = big[big.length - 1 - i];
    }
    return ByteString.copyFrom(little);
  }

  private static BigInteger littleEndian(ByteString bytes) {
    byte[] big = new byte[bytes.size()];
    for (int i = 0; i < big.length; i++) {
      big[i] = bytes.byteAt(big.length - 1 - i);
    }
    return new BigInteger(1, big);
  }
}
