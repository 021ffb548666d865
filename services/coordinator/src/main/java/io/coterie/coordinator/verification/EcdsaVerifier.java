package io.coterie.coordinator.verification;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.params.ECDomainParameters;
import org.bouncycastle.math.ec.ECAlgorithms;
import org.bouncycastle.math.ec.ECPoint;

/** ECDSA on secp256k1 (SEC 1, 4.1.4 and 4.1.6) by BouncyCastle's curve arithmetic. */
public final class EcdsaVerifier implements ResultVerifier {
  /** Bytes of a compressed point. */
  private static final int POINT = 33;

  /** Bytes of a scalar, a digest, and a chain code. */
  private static final int WORD = 32;

  private static final X9ECParameters PARAMETERS = CustomNamedCurves.getByName("secp256k1");
  private static final ECDomainParameters CURVE = new ECDomainParameters(PARAMETERS);
  private static final BigInteger N = CURVE.getN();
  private static final BigInteger HALF_N = N.shiftRight(1);
  private static final BigInteger P = CURVE.getCurve().getField().getCharacteristic();

  /**
   * Whether the key is the one that the recovery id leads to, which is the verification equation
   * solved for the key: so one computation checks both.
   */
  @Override
  public boolean verifies(ByteString publicKey, ByteString digest, Signature signature) {
    if (digest.size() != WORD
        || signature.bytes().size() != 2 * WORD
        || signature.recoveryId().isEmpty()) {
      return false;
    }
    BigInteger r = word(signature.bytes().substring(0, WORD));
    BigInteger s = word(signature.bytes().substring(WORD));
    return r.signum() > 0
        && r.compareTo(N) < 0
        && s.signum() > 0
        && s.compareTo(HALF_N) <= 0
        && point(publicKey)
            .map(
                key ->
                    recover(word(digest), r, s, signature.recoveryId().getAsInt())
                        .map(key::equals)
                        .orElse(false))
            .orElse(false);
  }

  /** The key under which a signature with that recovery id verifies, if there is one. */
  private static Optional<ECPoint> recover(
      BigInteger digest, BigInteger r, BigInteger s, int recoveryId) {
    if (recoveryId < 0 || recoveryId > 3) {
      return Optional.empty();
    }
    BigInteger x = (recoveryId & 2) == 0 ? r : r.add(N);
    if (x.compareTo(P) >= 0) {
      return Optional.empty();
    }
    byte[] encoded = new byte[POINT];
    encoded[0] = (byte) (2 + (recoveryId & 1));
    byte[] bigEndian = x.toByteArray();
    int length = Math.min(bigEndian.length, WORD);
    System.arraycopy(bigEndian, bigEndian.length - length, encoded, POINT - length, length);
    return point(ByteString.copyFrom(encoded))
        .map(
            nonce -> {
              BigInteger inverse = r.modInverse(N);
              return ECAlgorithms.sumOfTwoMultiplies(
                      CURVE.getG(),
                      digest.negate().multiply(inverse).mod(N),
                      nonce,
                      s.multiply(inverse).mod(N))
                  .normalize();
            })
        .filter(key -> !key.isInfinity());
  }

  @Override
  public boolean isSound(KeyPublic key) {
    int t = key.getThreshold();
    if (t < 1
        || t > key.getVerificationSharesCount()
        || key.getChainCode().size() != WORD
        || !key.getProofOfPossession().isEmpty()) {
      return false;
    }
    Optional<ECPoint> publicKey = point(key.getPublicKey());
    if (publicKey.isEmpty()) {
      return false;
    }
    List<Integer> parties = new ArrayList<>();
    List<ECPoint> shares = new ArrayList<>();
    Set<Integer> seen = new HashSet<>();
    for (VerificationShare share : key.getVerificationSharesList()) {
      Optional<ECPoint> point = point(share.getPoint());
      if (point.isEmpty() || share.getParty() < 1 || !seen.add(share.getParty())) {
        return false;
      }
      parties.add(share.getParty());
      shares.add(point.get());
    }
    // The first t shares fix the polynomial; the public key and every other share must lie on it.
    if (!interpolate(parties.subList(0, t), shares, 0).equals(publicKey.get())) {
      return false;
    }
    for (int i = t; i < parties.size(); i++) {
      if (!interpolate(parties.subList(0, t), shares, parties.get(i)).equals(shares.get(i))) {
        return false;
      }
    }
    return true;
  }

  /** The value at {@code x} of the polynomial in the exponent through the given points. */
  private static ECPoint interpolate(List<Integer> xs, List<ECPoint> points, int x) {
    ECPoint sum = CURVE.getCurve().getInfinity();
    for (int i = 0; i < xs.size(); i++) {
      BigInteger numerator = BigInteger.ONE;
      BigInteger denominator = BigInteger.ONE;
      for (int j = 0; j < xs.size(); j++) {
        if (j != i) {
          numerator = numerator.multiply(BigInteger.valueOf(x - xs.get(j))).mod(N);
          denominator = denominator.multiply(BigInteger.valueOf(xs.get(i) - xs.get(j))).mod(N);
        }
      }
      sum = sum.add(points.get(i).multiply(numerator.multiply(denominator.modInverse(N)).mod(N)));
    }
    return sum.normalize();
  }

  /** A point other than the identity, in its compressed encoding. The curve has cofactor 1. */
  private static Optional<ECPoint> point(ByteString bytes) {
    if (bytes.size() != POINT) {
      return Optional.empty();
    }
    try {
      return Optional.of(CURVE.getCurve().decodePoint(bytes.toByteArray()));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  private static BigInteger word(ByteString bytes) {
    return new BigInteger(1, bytes.toByteArray());
  }
}
