package io.coterie.cli.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.scheme.TaprootKey;
import java.math.BigInteger;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.math.ec.ECAlgorithms;
import org.bouncycastle.math.ec.ECPoint;
import org.bouncycastle.math.ec.rfc8032.Ed25519;

/** Verifies Ed25519 and BIP-340 signatures, without the installation. */
final class SchnorrVerifier {
  private static final X9ECParameters SECP256K1 = CustomNamedCurves.getByName("secp256k1");

  /** Bytes of a scalar, of a point without its parity, and of a digest. */
  private static final int WORD = 32;

  private SchnorrVerifier() {}

  /**
   * RFC 8032. False for a wrong signature as for anything that is not a key of prime order or a
   * signature.
   */
  static boolean ed25519(ByteString publicKey, ByteString message, ByteString signature) {
    byte[] key = publicKey.toByteArray();
    return key.length == Ed25519.PUBLIC_KEY_SIZE
        && signature.size() == Ed25519.SIGNATURE_SIZE
        && Ed25519.validatePublicKeyFull(key, 0)
        && Ed25519.verify(
            signature.toByteArray(), 0, key, 0, message.toByteArray(), 0, message.size());
  }

  /** BIP-340, for a digest. False for a wrong signature as for anything that is no key or none. */
  static boolean bip340(ByteString publicKey, ByteString digest, ByteString signature) {
    if (digest.size() != WORD || signature.size() != 2 * WORD) {
      return false;
    }
    ECPoint key;
    try {
      key = TaprootKey.even(publicKey);
    } catch (IllegalArgumentException e) {
      return false;
    }
    ByteString r = signature.substring(0, WORD);
    BigInteger s = new BigInteger(1, signature.substring(WORD).toByteArray());
    if (s.compareTo(SECP256K1.getN()) >= 0) {
      return false;
    }
    BigInteger challenge =
        new BigInteger(
            1,
            TaprootKey.taggedHash(
                "BIP0340/challenge", r.concat(publicKey).concat(digest).toByteArray()));
    ECPoint nonce =
        ECAlgorithms.sumOfTwoMultiplies(
                SECP256K1.getG(), s, key, challenge.negate().mod(SECP256K1.getN()))
            .normalize();
    return !nonce.isInfinity()
        && !nonce.getAffineYCoord().testBitZero()
        && ByteString.copyFrom(nonce.getAffineXCoord().getEncoded()).equals(r);
  }
}
