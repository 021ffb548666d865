package io.coterie.trust;

import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.interfaces.EdECPrivateKey;
import java.security.spec.NamedParameterSpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * A key of an owner of the installation, who signs versions of its trust file with it.
 *
 * @param spki Ed25519 (RFC 8032) in X.509 form, 44 bytes
 */
public record RootKey(byte[] spki) {
  private static final String ALGORITHM = "Ed25519";

  /** An Ed25519 public key in X.509 form is this and its 32 bytes (RFC 8410). */
  private static final byte[] X509_PREFIX = HexFormat.of().parseHex("302a300506032b6570032100");

  private static final int BYTES = X509_PREFIX.length + 32;

  public RootKey {
    spki = spki.clone();
    if (spki.length != BYTES
        || !Arrays.equals(X509_PREFIX, Arrays.copyOf(spki, X509_PREFIX.length))) {
      throw new IllegalArgumentException("a root key is not an Ed25519 public key in SPKI form");
    }
    try {
      verifier(spki);
    } catch (GeneralSecurityException e) {
      throw new IllegalArgumentException("a root key is not a point of the curve", e);
    }
  }

  private static Signature verifier(byte[] spki) throws GeneralSecurityException {
    Signature verifier = Signature.getInstance(ALGORITHM);
    verifier.initVerify(
        KeyFactory.getInstance(ALGORITHM).generatePublic(new X509EncodedKeySpec(spki)));
    return verifier;
  }

  /** Whether this key made a signature of a message. */
  boolean verifies(byte[] message, byte[] signature) {
    try {
      Signature verifier = verifier(spki);
      verifier.update(message);
      return verifier.verify(signature);
    } catch (GeneralSecurityException e) {
      // Bytes that are not a signature at all end here too.
      return false;
    }
  }

  /**
   * Signs with the private half of a root key.
   *
   * @throws IllegalArgumentException if the key is of another algorithm
   */
  static byte[] sign(PrivateKey key, byte[] message) {
    if (!(key instanceof EdECPrivateKey ed)
        || !ed.getParams().getName().equals(NamedParameterSpec.ED25519.getName())) {
      throw new IllegalArgumentException("a root key is an Ed25519 key, and this is another one");
    }
    try {
      Signature signer = Signature.getInstance(ALGORITHM);
      signer.initSign(key);
      signer.update(message);
      return signer.sign();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("the JDK cannot sign with a key it has read", e);
    }
  }

  /** The short form of the key that people compare. */
  public String fingerprint() {
    return Fingerprint.of("coterie/root-key-fingerprint/1", spki);
  }

  @Override
  public byte[] spki() {
    return spki.clone();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof RootKey key && Arrays.equals(spki, key.spki);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(spki);
  }
}
