package io.coterie.coordinator.verification;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.math.BigInteger;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.random.RandomGenerator;
import supranational.blst.BLST_ERROR;
import supranational.blst.P1;
import supranational.blst.P1_Affine;
import supranational.blst.P2_Affine;
import supranational.blst.Pairing;
import supranational.blst.Scalar;

/**
 * BLS12-381 by jblst, the binding that Ethereum's Java clients use: ciphersuite
 * BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_ (draft-irtf-cfrg-bls-signature, 4.2.3).
 */
public final class BlstVerifier implements ResultVerifier {
  /** Bytes of a compressed point of G1: a public key. */
  static final int G1 = 48;

  /** Bytes of a compressed point of G2: a signature. */
  static final int G2 = 96;

  private static final String SIGNATURE_DST = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
  private static final String POSSESSION_DST = "BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

  /** Order of G1 and G2 (draft-irtf-cfrg-pairing-friendly-curves, 4.2.1). */
  private static final BigInteger ORDER =
      new BigInteger("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 16);

  /** Parsed public keys remembered: parsing costs a square root and a subgroup check. */
  private static final int MAX_REMEMBERED = 10_000;

  /** Of the numbers that signatures are multiplied by: 128 bits. */
  private static final int COEFFICIENT_BYTES = 16;

  private final RandomGenerator random;
  private final ConcurrentHashMap<ByteString, P1_Affine> publicKeys = new ConcurrentHashMap<>();

  public BlstVerifier() {
    this(new SecureRandom());
  }

  /**
   * Loads the native library now, so that the first signature does not wait for it.
   *
   * @param random known to nobody else
   */
  BlstVerifier(RandomGenerator random) {
    this.random = random;
    byte[] probe = "coterie".getBytes(US_ASCII);
    new supranational.blst.P2().hash_to(probe, SIGNATURE_DST);
  }

  @Override
  public boolean verifies(ByteString publicKey, ByteString message, Signature signature) {
    return signature.recoveryId().isEmpty()
        && publicKey(publicKey)
            .map(key -> verifies(key, message.toByteArray(), signature.bytes(), SIGNATURE_DST))
            .orElse(false);
  }

  private static boolean verifies(P1_Affine key, byte[] message, ByteString signature, String dst) {
    return g2(signature)
        .filter(point -> point.core_verify(key, true, message, dst) == BLST_ERROR.BLST_SUCCESS)
        .isPresent();
  }

  @Override
  public boolean verifiesTogether() {
    return true;
  }

  /**
   * By one product of pairings over a random combination: each signature and its key are multiplied
   * by a number that is drawn when all are given, so that no two wrong ones make up for each other.
   */
  @Override
  public boolean verifiesAll(List<Claim> claims) {
    Pairing pairing = new Pairing(true, SIGNATURE_DST);
    for (Claim claim : claims) {
      Optional<P1_Affine> key = publicKey(claim.publicKey());
      Optional<P2_Affine> point = g2(claim.signature().bytes());
      if (key.isEmpty() || point.isEmpty() || claim.signature().recoveryId().isPresent()) {
        return false;
      }
      BLST_ERROR taken =
          pairing.mul_n_aggregate(
              key.get(), point.get(), coefficient(), claim.payload().toByteArray());
      if (taken != BLST_ERROR.BLST_SUCCESS) {
        return false;
      }
    }
    pairing.commit();
    return !claims.isEmpty() && pairing.finalverify();
  }

  private BigInteger coefficient() {
    byte[] drawn = new byte[COEFFICIENT_BYTES];
    BigInteger coefficient;
    do {
      random.nextBytes(drawn);
      coefficient = new BigInteger(1, drawn);
    } while (coefficient.signum() == 0);
    return coefficient;
  }

  /** A point of G2 other than the identity. */
  private static Optional<P2_Affine> g2(ByteString bytes) {
    if (bytes.size() != G2) {
      return Optional.empty();
    }
    try {
      P2_Affine point = new P2_Affine(bytes.toByteArray());
      return !point.is_inf() && point.in_group() ? Optional.of(point) : Optional.empty();
    } catch (RuntimeException e) {
      // How jblst reports bytes that are not a point.
      return Optional.empty();
    }
  }

  private Optional<P1_Affine> publicKey(ByteString bytes) {
    P1_Affine known = publicKeys.get(bytes);
    if (known != null) {
      return Optional.of(known);
    }
    Optional<P1_Affine> parsed = g1(bytes);
    parsed.ifPresent(
        point -> {
          if (publicKeys.size() >= MAX_REMEMBERED) {
            publicKeys.clear();
          }
          publicKeys.put(bytes, point);
        });
    return parsed;
  }

  /** A point of G1 other than the identity, in its one compressed encoding. */
  private static Optional<P1_Affine> g1(ByteString bytes) {
    if (bytes.size() != G1) {
      return Optional.empty();
    }
    try {
      P1_Affine point = new P1_Affine(bytes.toByteArray());
      return !point.is_inf()
              && point.in_group()
              && ByteString.copyFrom(point.compress()).equals(bytes)
          ? Optional.of(point)
          : Optional.empty();
    } catch (RuntimeException e) {
      return Optional.empty();
    }
  }

  @Override
  public boolean isSound(KeyPublic key) {
    if (key.getThreshold() < 1
        || !key.getChainCode().isEmpty()
        || key.getThreshold() > key.getVerificationSharesCount()) {
      return false;
    }
    Optional<P1_Affine> publicKey = g1(key.getPublicKey());
    if (publicKey.isEmpty()
        || !verifies(
            publicKey.get(),
            key.getPublicKey().toByteArray(),
            key.getProofOfPossession(),
            POSSESSION_DST)) {
      return false;
    }
    List<Integer> parties = new ArrayList<>();
    List<P1_Affine> shares = new ArrayList<>();
    Set<Integer> seen = new HashSet<>();
    for (VerificationShare share : key.getVerificationSharesList()) {
      Optional<P1_Affine> point = g1(share.getPoint());
      if (point.isEmpty() || share.getParty() < 1 || !seen.add(share.getParty())) {
        return false;
      }
      parties.add(share.getParty());
      shares.add(point.get());
    }
    // The first t shares fix the polynomial; the public key and every other share must lie on it.
    int t = key.getThreshold();
    if (!interpolate(parties.subList(0, t), shares, 0).is_equal(publicKey.get())) {
      return false;
    }
    for (int i = t; i < parties.size(); i++) {
      if (!interpolate(parties.subList(0, t), shares, parties.get(i)).is_equal(shares.get(i))) {
        return false;
      }
    }
    return true;
  }

  /** The value at {@code x} of the polynomial in the exponent through the given points. */
  private static P1_Affine interpolate(List<Integer> xs, List<P1_Affine> points, int x) {
    P1 sum = new P1();
    for (int i = 0; i < xs.size(); i++) {
      BigInteger numerator = BigInteger.ONE;
      BigInteger denominator = BigInteger.ONE;
      for (int j = 0; j < xs.size(); j++) {
        if (j != i) {
          numerator = numerator.multiply(BigInteger.valueOf(x - xs.get(j))).mod(ORDER);
          denominator = denominator.multiply(BigInteger.valueOf(xs.get(i) - xs.get(j))).mod(ORDER);
        }
      }
      byte[] coefficient =
          littleEndian(numerator.multiply(denominator.modInverse(ORDER)).mod(ORDER));
      sum.add(points.get(i).to_jacobian().mult(new Scalar().from_lendian(coefficient)));
    }
    return sum.to_affine();
  }

  private static byte[] littleEndian(BigInteger value) {
    byte[] bigEndian = value.toByteArray();
    byte[] result = new byte[32];
    for (int i = 0; i < Math.min(bigEndian.length, result.length); i++) {
      result[i] = bigEndian[bigEndian.length - 1 - i];
    }
    return result;
  }
}
