package io.coterie.coordinator.verification;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Signature;
import io.coterie.proto.core.v1.KeyPublic;
import java.math.BigInteger;
import java.util.Optional;
import org.bouncycastle.math.ec.ECAlgorithms;
import org.bouncycastle.math.ec.ECPoint;

/** ECDSA on secp256k1 (SEC 1, 4.1.4 and 4.1.6) by BouncyCastle's curve arithmetic. */
public final class EcdsaVerifier implements ResultVerifier {
  /** Bytes of a scalar, a digest, and a chain code. */
  private static final int WORD = 32;

  private static final BigInteger N = Secp256k1.ORDER;
  private static final BigInteger HALF_N = N.shiftRight(1);
  private static final BigInteger P = Secp256k1.CURVE.getCurve().getField().getCharacteristic();

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
        && Secp256k1.point(publicKey)
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
    byte[] encoded = new byte[Secp256k1.POINT];
    encoded[0] = (byte) (2 + (recoveryId & 1));
    byte[] bigEndian = x.toByteArray();
    int length = Math.min(bigEndian.length, WORD);
    System.arraycopy(
        bigEndian, bigEndian.length - length, encoded, Secp256k1.POINT - length, length);
    return Secp256k1.point(ByteString.copyFrom(encoded))
        .map(
            nonce -> {
              BigInteger inverse = r.modInverse(N);
              return ECAlgorithms.sumOfTwoMultiplies(
                      Secp256k1.CURVE.getG(),
                      digest.negate().multiply(inverse).mod(N),
                      nonce,
                      s.multiply(inverse).mod(N))
                  .normalize();
            })
        .filter(key -> !key.isInfinity());
  }

  @Override
  public boolean isSound(KeyPublic key) {
    return key.getChainCode().size() == WORD
        && key.getProofOfPossession().isEmpty()
        && SharedKey.isSound(key, Secp256k1::point, N);
  }

  private static BigInteger word(ByteString bytes) {
    return new BigInteger(1, bytes.toByteArray());
  }
}
