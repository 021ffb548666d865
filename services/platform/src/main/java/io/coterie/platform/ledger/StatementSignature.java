package io.coterie.platform.ledger;

import com.google.protobuf.ByteString;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.HexFormat;

/** A party's signature under a statement: Ed25519 (RFC 8032) with its evidence key. */
public final class StatementSignature {
  /** Length of a signature, bytes. */
  public static final int BYTES = 64;

  /** The core signs this, followed by the hash of the statement. */
  private static final byte[] TAG =
      "coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII);

  /** An Ed25519 public key in X.509 form is this and its 32 bytes (RFC 8410). */
  private static final byte[] X509_PREFIX = HexFormat.of().parseHex("302a300506032b6570032100");

  private StatementSignature() {}

  /**
   * Whether an evidence key made a signature of a statement.
   *
   * @param evidenceKey 32 bytes, as pinned in the roster; anything else verifies nothing
   */
  public static boolean verifies(byte[] evidenceKey, ByteString statement, ByteString signature) {
    if (signature.size() != BYTES) {
      return false;
    }
    try {
      byte[] encoded = new byte[X509_PREFIX.length + evidenceKey.length];
      System.arraycopy(X509_PREFIX, 0, encoded, 0, X509_PREFIX.length);
      System.arraycopy(evidenceKey, 0, encoded, X509_PREFIX.length, evidenceKey.length);
      PublicKey key =
          KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded));
      Signature verifier = Signature.getInstance("Ed25519");
      verifier.initVerify(key);
      verifier.update(TAG);
      verifier.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
      return verifier.verify(signature.toByteArray());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has Ed25519 and SHA-256", e);
    } catch (GeneralSecurityException e) {
      return false; // the pinned key or the signature is none
    }
  }
}
