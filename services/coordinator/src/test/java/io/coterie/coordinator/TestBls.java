package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import supranational.blst.BLST_ERROR;
import supranational.blst.P1;
import supranational.blst.P1_Affine;
import supranational.blst.P2;
import supranational.blst.P2_Affine;
import supranational.blst.Scalar;

/** Threshold BLS with a dealer, with which scripted signers behave like real ones. */
final class TestBls {
  static final String SIGNATURE_DST = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
  static final String POSSESSION_DST = "BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
  private static final BigInteger ORDER =
      new BigInteger("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 16);

  private TestBls() {}

  /**
   * A dealt key.
   *
   * @param shares by party id
   */
  record Dealt(KeyPublic keyPublic, Map<Integer, BigInteger> shares) {}

  static Dealt deal(String keyId, int threshold, Collection<Integer> parties, long seed) {
    Random random = new Random(seed);
    List<BigInteger> polynomial = new ArrayList<>();
    for (int i = 0; i < threshold; i++) {
      polynomial.add(new BigInteger(512, random).mod(ORDER));
    }
    Map<Integer, BigInteger> shares = new TreeMap<>();
    for (int party : parties) {
      BigInteger value = BigInteger.ZERO;
      for (int i = threshold - 1; i >= 0; i--) {
        value = value.multiply(BigInteger.valueOf(party)).add(polynomial.get(i)).mod(ORDER);
      }
      shares.put(party, value);
    }
    byte[] publicKey = P1.generator().mult(scalar(polynomial.getFirst())).compress();
    KeyPublic.Builder key =
        KeyPublic.newBuilder()
            .setKeyId(keyId)
            .setEpoch(1)
            .setThreshold(threshold)
            .setPublicKey(ByteString.copyFrom(publicKey))
            .setProofOfPossession(
                ByteString.copyFrom(sign(polynomial.getFirst(), publicKey, POSSESSION_DST)));
    shares.forEach(
        (party, share) ->
            key.addVerificationShares(
                VerificationShare.newBuilder()
                    .setParty(party)
                    .setPoint(ByteString.copyFrom(P1.generator().mult(scalar(share)).compress()))));
    return new Dealt(key.build(), shares);
  }

  static byte[] partial(BigInteger share, byte[] message) {
    return sign(share, message, SIGNATURE_DST);
  }

  private static byte[] sign(BigInteger secret, byte[] message, String dst) {
    return new P2().hash_to(message, dst).sign_with(scalar(secret)).compress();
  }

  static boolean verifies(ByteString publicKey, byte[] message, byte[] signature) {
    try {
      P2_Affine point = new P2_Affine(signature);
      return point.in_group()
          && point.core_verify(new P1_Affine(publicKey.toByteArray()), true, message, SIGNATURE_DST)
              == BLST_ERROR.BLST_SUCCESS;
    } catch (RuntimeException e) {
      return false;
    }
  }

  /** Lagrange in the exponent. */
  static byte[] combine(Map<Integer, byte[]> partials) {
    P2 sum = new P2();
    partials.forEach(
        (i, partial) -> {
          BigInteger c = BigInteger.ONE;
          for (int j : partials.keySet()) {
            if (j != i) {
              c =
                  c.multiply(BigInteger.valueOf(j))
                      .multiply(BigInteger.valueOf(j - i).mod(ORDER).modInverse(ORDER))
                      .mod(ORDER);
            }
          }
          sum.add(new P2_Affine(partial).to_jacobian().mult(scalar(c)));
        });
    return sum.compress();
  }

  private static Scalar scalar(BigInteger value) {
    byte[] big = value.toByteArray();
    byte[] little = new byte[32];
    for (int i = 0; i < Math.min(32, big.length); i++) {
      little[i] = big[big.length - 1 - i];
    }
    return new Scalar().from_lendian(little);
  }
}
