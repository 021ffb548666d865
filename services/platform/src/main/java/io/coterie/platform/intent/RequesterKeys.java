package io.coterie.platform.intent;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.interfaces.ECKey;
import java.security.interfaces.ECPrivateKey;
import java.security.interfaces.ECPublicKey;
import java.security.interfaces.EdECKey;
import java.security.interfaces.EdECPrivateKey;
import java.security.interfaces.EdECPublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.NamedParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import org.bouncycastle.crypto.params.Ed25519PublicKeyParameters;

/** The key forms a requester may use: Ed25519 or ECDSA P-256, as PEM of SPKI or PKCS #8. */
public final class RequesterKeys {
  /** Bytes of a PEM file; both key forms need under 300. */
  private static final int MAX_PEM = 4096;

  /** The order of P-256 (SP 800-186, 3.2.1.3); no other curve has it. */
  private static final BigInteger P256_ORDER =
      new BigInteger("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16);

  private RequesterKeys() {}

  /**
   * Reads a public key.
   *
   * @param pem one {@code PUBLIC KEY} block and nothing else
   * @throws IllegalArgumentException if it is anything else
   */
  public static PublicKey publicKey(String pem) {
    return publicKey(body(pem.getBytes(US_ASCII), "PUBLIC KEY"));
  }

  /**
   * Reads a public key.
   *
   * @param der its X.509 form (SPKI)
   * @throws IllegalArgumentException if it is anything else
   */
  public static PublicKey publicKey(byte[] der) {
    for (String algorithm : new String[] {"Ed25519", "EC"}) {
      try {
        PublicKey key =
            KeyFactory.getInstance(algorithm).generatePublic(new X509EncodedKeySpec(der));
        requireSupported(key);
        if (!Arrays.equals(key.getEncoded(), der)) {
          throw new IllegalArgumentException("public key is not in its canonical encoding");
        }
        return key;
      } catch (GeneralSecurityException e) {
        // Not of this algorithm: the next one, or the refusal below.
      }
    }
    throw new IllegalArgumentException("not an Ed25519 or P-256 public key in SPKI form");
  }

  /**
   * Reads a private key.
   *
   * @param pem one unencrypted {@code PRIVATE KEY} block (PKCS #8) and nothing else; the caller
   *     zeroes it afterwards
   * @throws IllegalArgumentException if it is anything else
   */
  public static PrivateKey privateKey(byte[] pem) {
    byte[] der = body(pem, "PRIVATE KEY");
    try {
      for (String algorithm : new String[] {"Ed25519", "EC"}) {
        try {
          PrivateKey key =
              KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(der));
          requireSupported(key);
          return key;
        } catch (GeneralSecurityException e) {
          // Not of this algorithm: the next one, or the refusal below.
        }
      }
    } finally {
      Arrays.fill(der, (byte) 0);
    }
    throw new IllegalArgumentException("not an Ed25519 or P-256 private key in PKCS #8 form");
  }

  /**
   * Refuses keys of other algorithms and curves, and points that are not on theirs.
   *
   * @throws IllegalArgumentException saying so
   */
  static void requireSupported(java.security.Key key) {
    boolean supported =
        switch (key) {
          case EdECPublicKey k -> isEd25519(k) && isOnCurve(k);
          case EdECPrivateKey k -> isEd25519(k);
          case ECPublicKey k -> isP256(k) && isOnCurve(k.getW(), k.getParams());
          case ECPrivateKey k -> isP256(k);
          default -> false;
        };
    if (!supported) {
      throw new IllegalArgumentException("key is neither Ed25519 nor P-256");
    }
  }

  private static boolean isEd25519(EdECKey key) {
    return key.getParams().getName().equals(NamedParameterSpec.ED25519.getName());
  }

  /** The same key for BouncyCastle: the last 32 bytes of its SPKI. */
  static Ed25519PublicKeyParameters ed25519(PublicKey key) {
    byte[] spki = key.getEncoded();
    return new Ed25519PublicKeyParameters(spki, spki.length - Ed25519PublicKeyParameters.KEY_SIZE);
  }

  private static boolean isOnCurve(EdECPublicKey key) {
    try {
      ed25519(key);
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  private static boolean isP256(ECKey key) {
    return key.getParams().getOrder().equals(P256_ORDER);
  }

  private static boolean isOnCurve(ECPoint point, ECParameterSpec params) {
    if (point.equals(ECPoint.POINT_INFINITY)) {
      return false;
    }
    BigInteger p = ((ECFieldFp) params.getCurve().getField()).getP();
    BigInteger x = point.getAffineX();
    BigInteger y = point.getAffineY();
    BigInteger right =
        x.pow(3).add(params.getCurve().getA().multiply(x)).add(params.getCurve().getB()).mod(p);
    return x.signum() >= 0
        && x.compareTo(p) < 0
        && y.signum() >= 0
        && y.compareTo(p) < 0
        && y.pow(2).mod(p).equals(right);
  }

  /** The decoded body of a file that consists of exactly one PEM block. */
  private static byte[] body(byte[] pem, String label) {
    byte[] begin = ("-----BEGIN " + label + "-----").getBytes(US_ASCII);
    byte[] end = ("-----END " + label + "-----").getBytes(US_ASCII);
    int from = 0;
    int to = pem.length;
    while (from < to && isSpace(pem[from])) {
      from++;
    }
    while (to > from && isSpace(pem[to - 1])) {
      to--;
    }
    if (pem.length > MAX_PEM
        || to - from < begin.length + end.length
        || !Arrays.equals(pem, from, from + begin.length, begin, 0, begin.length)
        || !Arrays.equals(pem, to - end.length, to, end, 0, end.length)) {
      throw new IllegalArgumentException("not exactly one PEM block of type " + label);
    }
    byte[] text = new byte[to - from - begin.length - end.length];
    int length = 0;
    for (int i = from + begin.length; i < to - end.length; i++) {
      if (!isSpace(pem[i])) {
        text[length++] = pem[i];
      }
    }
    byte[] base64 = Arrays.copyOf(text, length);
    try {
      return Base64.getDecoder().decode(base64);
    } catch (IllegalArgumentException e) {
      // The cause is left out: its text quotes a character of the input.
      throw new IllegalArgumentException("the PEM block's body is not base64");
    } finally {
      Arrays.fill(text, (byte) 0);
      Arrays.fill(base64, (byte) 0);
    }
  }

  private static boolean isSpace(byte b) {
    return b == ' ' || b == '\t' || b == '\r' || b == '\n';
  }
}
