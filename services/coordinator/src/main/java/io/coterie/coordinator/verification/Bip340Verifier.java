package io.coterie.coordinator.verification;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Signature;
import io.coterie.platform.scheme.TaprootKey;
import io.coterie.proto.core.v1.KeyPublic;
import java.math.BigInteger;
import java.util.Optional;
import org.bouncycastle.math.ec.ECAlgorithms;
import org.bouncycastle.math.ec.ECPoint;

/** Schnorr signatures on secp256k1 (BIP-340, Verification) by BouncyCastle's curve arithmetic. */
public final class Bip340Verifier implements ResultVerifier {
  /** Bytes of a coordinate, a scalar, and a digest. */
  private static final int WORD = 32;

  @Override
  public boolean verifies(ByteString publicKey, ByteString digest, Signature signature) {
    ByteString bytes = signature.bytes();
    if (digest.size() != WORD || bytes.size() != 2 * WORD || signature.recoveryId().isPresent()) {
      return false;
    }
    ByteString r = bytes.substring(0, WORD);
    BigInteger s = new BigInteger(1, bytes.substring(WORD).toByteArray());
    Optional<ECPoint> key = even(publicKey);
    if (key.isEmpty() || s.compareTo(Secp256k1.ORDER) >= 0) {
      return false;
    }
    BigInteger challenge =
        new BigInteger(
            1,
            TaprootKey.taggedHash(
                "BIP0340/challenge", r.concat(publicKey).concat(digest).toByteArray()));
    ECPoint nonce =
        ECAlgorithms.sumOfTwoMultiplies(
                Secp256k1.CURVE.getG(), s, key.get(), challenge.negate().mod(Secp256k1.ORDER))
            .normalize();
    return !nonce.isInfinity()
        && !nonce.getAffineYCoord().testBitZero()
        && ByteString.copyFrom(nonce.getAffineXCoord().getEncoded()).equals(r);
  }

  private static Optional<ECPoint> even(ByteString xOnly) {
    try {
      return Optional.of(TaprootKey.even(xOnly));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  @Override
  public boolean isSound(KeyPublic key) {
    return key.getChainCode().size() == WORD
        && key.getProofOfPossession().isEmpty()
        && SharedKey.isSound(key, Secp256k1::point, Secp256k1.ORDER);
  }
}
