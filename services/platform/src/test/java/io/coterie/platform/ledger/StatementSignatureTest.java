package io.coterie.platform.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Signature;
import java.security.interfaces.EdECPrivateKey;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Signatures of another implementation verify, and nothing else does. */
class StatementSignatureTest {
  private static final ByteString STATEMENT = ByteString.copyFromUtf8("statement");

  /** The order of the base point, little-endian. */
  private static final byte[] ORDER = {
    (byte) 0xed,
    (byte) 0xd3,
    (byte) 0xf5,
    0x5c,
    0x1a,
    0x63,
    0x12,
    0x58,
    (byte) 0xd6,
    (byte) 0x9c,
    (byte) 0xf7,
    (byte) 0xa2,
    (byte) 0xde,
    (byte) 0xf9,
    (byte) 0xde,
    0x14,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0x10
  };

  private final KeyPair pair = pair();
  private final byte[] key = raw(pair);
  private final byte[] signature = sign(STATEMENT);

  private static KeyPair pair() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new AssertionError(e);
    }
  }

  private static byte[] raw(KeyPair pair) {
    byte[] spki = pair.getPublic().getEncoded();
    return Arrays.copyOfRange(spki, spki.length - 32, spki.length);
  }

  /** By the JDK, which the verification does not use. */
  private byte[] sign(ByteString statement) {
    try {
      Signature signer = Signature.getInstance("Ed25519");
      signer.initSign(pair.getPrivate());
      signer.update("coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII));
      signer.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
      return signer.sign();
    } catch (GeneralSecurityException e) {
      throw new AssertionError(e);
    }
  }

  private static boolean verifies(byte[] key, ByteString statement, byte[] signature) {
    return StatementSignature.verifies(key, statement, ByteString.copyFrom(signature));
  }

  @Test
  void signature_of_the_key_and_the_statement_is_right() {
    assertThat(verifies(key, STATEMENT, signature)).isTrue();
  }

  @Test
  void signature_of_another_key_or_statement_is_wrong() {
    assertThat(verifies(raw(pair()), STATEMENT, signature)).isFalse();
    assertThat(verifies(key, ByteString.copyFromUtf8("another"), signature)).isFalse();
  }

  @Test
  void signature_with_any_bit_changed_is_wrong() {
    for (int bit = 0; bit < 8 * signature.length; bit++) {
      byte[] altered = signature.clone();
      altered[bit / 8] ^= (byte) (1 << bit % 8);
      assertThat(verifies(key, STATEMENT, altered)).as("bit %d", bit).isFalse();
    }
  }

  @Test
  void second_encoding_of_a_signature_is_wrong() {
    byte[] second = signature.clone();
    int carry = 0;
    for (int i = 0; i < ORDER.length; i++) {
      carry += (second[32 + i] & 0xff) + (ORDER[i] & 0xff);
      second[32 + i] = (byte) carry;
      carry >>= 8;
    }
    assertThat(verifies(key, STATEMENT, second)).isFalse();
  }

  @Test
  void what_is_no_key_verifies_nothing() {
    for (int length : new int[] {0, 31, 33, 64}) {
      assertThat(verifies(Arrays.copyOf(key, length), STATEMENT, signature)).isFalse();
      assertThat(verifies(key, STATEMENT, Arrays.copyOf(signature, length + length / 64)))
          .isFalse();
    }
    byte[] outside = new byte[32];
    Arrays.fill(outside, (byte) 0xff);
    assertThat(verifies(outside, STATEMENT, signature)).isFalse();
    // The neutral point as key and as commitment: would be right for every statement.
    byte[] neutral = new byte[32];
    neutral[0] = 1;
    assertThat(verifies(neutral, STATEMENT, Arrays.copyOf(neutral, 64))).isFalse();
  }

  /**
   * The holder of a key can add the point of order 2 to the commitment. This check multiplies by
   * the cofactor and accepts it; the JDK and the core do not. So a party may have two signatures of
   * a statement, as it may anyway by another nonce, and nobody else gains one.
   */
  @Test
  void commitment_with_the_point_of_order_two_is_taken_here_and_not_by_the_jdk() throws Exception {
    BigInteger order = number(ORDER);
    byte[] expanded =
        MessageDigest.getInstance("SHA-512")
            .digest(((EdECPrivateKey) pair.getPrivate()).getBytes().orElseThrow());
    byte[] scalar = Arrays.copyOf(expanded, 32);
    scalar[0] &= (byte) 0xf8;
    scalar[31] = (byte) (scalar[31] & 0x7f | 0x40);
    // The nonce of the JDK's signature follows from its response and challenge.
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(STATEMENT.toByteArray());
    BigInteger before = challenge(Arrays.copyOf(signature, 32), hash);
    BigInteger nonce =
        number(Arrays.copyOfRange(signature, 32, 64))
            .subtract(before.multiply(number(scalar)))
            .mod(order);
    // (x, y) + (0, -1) = (-x, -y).
    byte[] commitment = Arrays.copyOf(signature, 32);
    int sign = commitment[31] & 0x80;
    commitment[31] &= 0x7f;
    BigInteger prime = BigInteger.TWO.pow(255).subtract(BigInteger.valueOf(19));
    commitment = bytes(prime.subtract(number(commitment)));
    commitment[31] |= (byte) (sign ^ 0x80);
    BigInteger response =
        nonce.add(challenge(commitment, hash).multiply(number(scalar))).mod(order);
    byte[] other = Arrays.copyOf(commitment, 64);
    System.arraycopy(bytes(response), 0, other, 32, 32);
    Signature jdk = Signature.getInstance("Ed25519");
    jdk.initVerify(pair.getPublic());
    jdk.update("coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII));
    jdk.update(hash);
    assertThat(jdk.verify(other)).isFalse();
    assertThat(verifies(key, STATEMENT, other)).isTrue();
  }

  private BigInteger challenge(byte[] commitment, byte[] hash) throws GeneralSecurityException {
    MessageDigest digest = MessageDigest.getInstance("SHA-512");
    digest.update(commitment);
    digest.update(key);
    digest.update("coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII));
    digest.update(hash);
    return number(digest.digest()).mod(number(ORDER));
  }

  private static BigInteger number(byte[] littleEndian) {
    byte[] turned = new byte[littleEndian.length];
    for (int i = 0; i < turned.length; i++) {
      turned[i] = littleEndian[turned.length - 1 - i];
    }
    return new BigInteger(1, turned);
  }

  private static byte[] bytes(BigInteger number) {
    byte[] bytes = new byte[32];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = number.shiftRight(8 * i).byteValue();
    }
    return bytes;
  }
}
