package io.coterie.cli.payload;

import com.google.protobuf.ByteString;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.params.ECDomainParameters;
import org.bouncycastle.crypto.params.ECPublicKeyParameters;
import org.bouncycastle.crypto.signers.ECDSASigner;
import org.bouncycastle.crypto.signers.StandardDSAEncoding;
import org.bouncycastle.math.ec.ECAlgorithms;
import org.bouncycastle.math.ec.ECPoint;

/** Verifies ECDSA signatures on secp256k1, without the installation. */
public final class EcdsaVerifier {
  private static final X9ECParameters CURVE = CustomNamedCurves.getByName("secp256k1");
  private static final ECDomainParameters DOMAIN =
      new ECDomainParameters(CURVE.getCurve(), CURVE.getG(), CURVE.getN(), CURVE.getH());
  private static final int PUBLIC_KEY_BYTES = 33;
  private static final int SIGNATURE_BYTES = 64;

  private EcdsaVerifier() {}

  /**
   * False for a wrong signature as for anything that is not a key or a signature with low s.
   *
   * @param publicKey 33 bytes, compressed
   * @param digest 32 bytes
   * @param signature r and s, 64 bytes
   */
  public static boolean verify(ByteString publicKey, ByteString digest, ByteString signature) {
    if (publicKey.size() != PUBLIC_KEY_BYTES || signature.size() != SIGNATURE_BYTES) {
      return false;
    }
    ECPoint point;
    try {
      point = CURVE.getCurve().decodePoint(publicKey.toByteArray());
    } catch (IllegalArgumentException e) {
      return false;
    }
    BigInteger r = r(signature);
    BigInteger s = s(signature);
    if (point.isInfinity() || s.compareTo(CURVE.getN().shiftRight(1)) > 0) {
      return false;
    }
    ECDSASigner verifier = new ECDSASigner();
    verifier.init(false, new ECPublicKeyParameters(point, DOMAIN));
    return verifier.verifySignature(digest.toByteArray(), r, s);
  }

  /**
   * The number that leads from a signature to its key: 1 if the nonce point has an odd second
   * coordinate, and 2 more if its first one is not below the order.
   *
   * @param signature verifies under the key
   */
  public static int recoveryId(ByteString publicKey, ByteString digest, ByteString signature) {
    BigInteger order = CURVE.getN();
    BigInteger inverse = s(signature).modInverse(order);
    ECPoint nonce =
        ECAlgorithms.sumOfTwoMultiplies(
                CURVE.getG(),
                new BigInteger(1, digest.toByteArray()).multiply(inverse).mod(order),
                CURVE.getCurve().decodePoint(publicKey.toByteArray()),
                r(signature).multiply(inverse).mod(order))
            .normalize();
    return (nonce.getAffineYCoord().testBitZero() ? 1 : 0)
        + (nonce.getAffineXCoord().toBigInteger().compareTo(order) >= 0 ? 2 : 0);
  }

  /** The same signature as an ASN.1 sequence (RFC 3279, 2.2.3). */
  public static ByteString der(ByteString signature) {
    try {
      return ByteString.copyFrom(
          StandardDSAEncoding.INSTANCE.encode(CURVE.getN(), r(signature), s(signature)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static BigInteger r(ByteString signature) {
    return new BigInteger(1, signature.substring(0, SIGNATURE_BYTES / 2).toByteArray());
  }

  private static BigInteger s(ByteString signature) {
    return new BigInteger(1, signature.substring(SIGNATURE_BYTES / 2).toByteArray());
  }
}
