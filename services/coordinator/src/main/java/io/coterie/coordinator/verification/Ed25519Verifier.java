package io.coterie.coordinator.verification;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import java.math.BigInteger;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.math.ec.ECPoint;
import org.bouncycastle.math.ec.rfc8032.Ed25519;

/**
 * Ed25519 (RFC 8032, 5.1.7) by BouncyCastle, strictly: public key and nonce point must be of prime
 * order and in their one encoding, so that no two verifiers differ about a signature.
 */
public final class Ed25519Verifier implements ResultVerifier {
  /** Public keys remembered as good: the check costs as much as half a verification. */
  private static final int MAX_REMEMBERED = 10_000;

  /** The same group in short Weierstrass form, where BouncyCastle can add points. */
  private static final X9ECParameters WEIERSTRASS = CustomNamedCurves.getByName("curve25519");

  private static final BigInteger ORDER = WEIERSTRASS.getN();
  private static final BigInteger P = WEIERSTRASS.getCurve().getField().getCharacteristic();

  /** RFC 7748, 4.1: d of the twisted Edwards curve -x^2 + y^2 = 1 + d x^2 y^2. */
  private static final BigInteger D =
      BigInteger.valueOf(-121_665).multiply(BigInteger.valueOf(121_666).modInverse(P)).mod(P);

  /** RFC 7748, 4.1: A of the Montgomery curve v^2 = u^3 + A u^2 + u. */
  private static final BigInteger A = BigInteger.valueOf(486_662);

  /** RFC 7748, 4.1: the maps between the two need a square root of -(A + 2); either will do. */
  private static final BigInteger ROOT = squareRoot(A.add(BigInteger.TWO).negate().mod(P));

  private static final BigInteger THIRD_OF_A =
      A.multiply(BigInteger.valueOf(3).modInverse(P)).mod(P);

  private final Set<ByteString> goodKeys = ConcurrentHashMap.newKeySet();

  @Override
  public boolean verifies(ByteString publicKey, ByteString message, Signature signature) {
    if (publicKey.size() != Ed25519.PUBLIC_KEY_SIZE
        || signature.bytes().size() != Ed25519.SIGNATURE_SIZE
        || signature.recoveryId().isPresent()
        || !isGood(publicKey)) {
      return false;
    }
    byte[] bytes = signature.bytes().toByteArray();
    return Ed25519.validatePublicKeyFull(bytes, 0)
        && Ed25519.verify(
            bytes, 0, publicKey.toByteArray(), 0, message.toByteArray(), 0, message.size());
  }

  private boolean isGood(ByteString publicKey) {
    if (goodKeys.contains(publicKey)) {
      return true;
    }
    if (!Ed25519.validatePublicKeyFull(publicKey.toByteArray(), 0)) {
      return false;
    }
    if (goodKeys.size() >= MAX_REMEMBERED) {
      goodKeys.clear();
    }
    goodKeys.add(publicKey);
    return true;
  }

  @Override
  public boolean isSound(KeyPublic key) {
    return key.getChainCode().isEmpty()
        && key.getProofOfPossession().isEmpty()
        && SharedKey.isSound(key, Ed25519Verifier::point, ORDER);
  }

  /** A point of prime order, in its one encoding, as a point of the Weierstrass curve. */
  private static Optional<ECPoint> point(ByteString bytes) {
    if (bytes.size() != Ed25519.PUBLIC_KEY_SIZE
        || !Ed25519.validatePublicKeyFull(bytes.toByteArray(), 0)) {
      return Optional.empty();
    }
    // Little-endian, with the lowest bit of x as the highest.
    BigInteger encoded = new BigInteger(1, reversed(bytes));
    BigInteger y = encoded.clearBit(255);
    BigInteger square = y.multiply(y).mod(P);
    BigInteger x =
        squareRoot(
            square
                .subtract(BigInteger.ONE)
                .multiply(D.multiply(square).add(BigInteger.ONE).modInverse(P))
                .mod(P));
    if (x.testBit(0) != encoded.testBit(255)) {
      x = P.subtract(x);
    }
    BigInteger u = BigInteger.ONE.add(y).multiply(BigInteger.ONE.subtract(y).modInverse(P)).mod(P);
    BigInteger v = ROOT.multiply(u).multiply(x.modInverse(P)).mod(P);
    return Optional.of(WEIERSTRASS.getCurve().validatePoint(u.add(THIRD_OF_A).mod(P), v));
  }

  /** A square root modulo P = 5 (mod 8) of a square (RFC 8032, 5.1.3). */
  private static BigInteger squareRoot(BigInteger square) {
    BigInteger root = square.modPow(P.add(BigInteger.valueOf(3)).shiftRight(3), P);
    return root.multiply(root).mod(P).equals(square)
        ? root
        : root.multiply(BigInteger.TWO.modPow(P.shiftRight(2), P)).mod(P);
  }

  private static byte[] reversed(ByteString bytes) {
    byte[] result = new byte[bytes.size()];
    for (int i = 0; i < result.length; i++) {
      result[i] = bytes.byteAt(result.length - 1 - i);
    }
    return result;
  }
}
