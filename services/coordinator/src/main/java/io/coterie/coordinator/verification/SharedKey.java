package io.coterie.coordinator.verification;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.bouncycastle.math.ec.ECPoint;

/** Keys that are shared by a polynomial, in BouncyCastle's curve arithmetic. */
final class SharedKey {
  private SharedKey() {}

  /**
   * Whether the public key and all verification shares are points that lie on one polynomial of
   * degree threshold - 1, the key at zero, so that any threshold parties can sign.
   *
   * @param decode a point of prime order other than the identity, in its one encoding
   * @param order of the group
   */
  static boolean isSound(
      KeyPublic key, Function<ByteString, Optional<ECPoint>> decode, BigInteger order) {
    int t = key.getThreshold();
    if (t < 1 || t > key.getVerificationSharesCount()) {
      return false;
    }
    Optional<ECPoint> publicKey = decode.apply(key.getPublicKey());
    if (publicKey.isEmpty()) {
      return false;
    }
    List<Integer> parties = new ArrayList<>();
    List<ECPoint> shares = new ArrayList<>();
    Set<Integer> seen = new HashSet<>();
    for (VerificationShare share : key.getVerificationSharesList()) {
      Optional<ECPoint> point = decode.apply(share.getPoint());
      if (point.isEmpty() || share.getParty() < 1 || !seen.add(share.getParty())) {
        return false;
      }
      parties.add(share.getParty());
      shares.add(point.get());
    }
    // The first t shares fix the polynomial; the public key and every other share must lie on it.
    if (!interpolate(parties.subList(0, t), shares, 0, order).equals(publicKey.get())) {
      return false;
    }
    for (int i = t; i < parties.size(); i++) {
      if (!interpolate(parties.subList(0, t), shares, parties.get(i), order)
          .equals(shares.get(i))) {
        return false;
      }
    }
    return true;
  }

  /** The value at {@code x} of the polynomial in the exponent through the given points. */
  private static ECPoint interpolate(
      List<Integer> xs, List<ECPoint> points, int x, BigInteger order) {
    ECPoint sum = points.getFirst().getCurve().getInfinity();
    for (int i = 0; i < xs.size(); i++) {
      BigInteger numerator = BigInteger.ONE;
      BigInteger denominator = BigInteger.ONE;
      for (int j = 0; j < xs.size(); j++) {
        if (j != i) {
          numerator = numerator.multiply(BigInteger.valueOf(x - xs.get(j))).mod(order);
          denominator = denominator.multiply(BigInteger.valueOf(xs.get(i) - xs.get(j))).mod(order);
        }
      }
      sum =
          sum.add(
              points.get(i).multiply(numerator.multiply(denominator.modInverse(order)).mod(order)));
    }
    return sum.normalize();
  }
}
