package io.coterie.platform.ledger;

import com.google.protobuf.ByteString;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import org.bouncycastle.math.ec.rfc8032.Ed25519;

/** A party's signature under a statement: Ed25519 (RFC 8032) with its evidence key. */
public final class StatementSignature {
  /** Length of a signature, bytes. */
  public static final int BYTES = 64;

  /** The core signs this, followed by the hash of the statement. */
  private static final byte[] TAG =
      "coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII);

  private static final int HASH_BYTES = 32;

  private StatementSignature() {}

  /**
   * Whether an evidence key made a signature of a statement. The equation is checked up to points
   * of small order, unlike in the JDK and in the core: the holder of the key can make signatures
   * that only this check takes, of statements that it could sign anyway.
   *
   * @param evidenceKey 32 bytes, as pinned in the roster; anything else verifies nothing
   */
  public static boolean verifies(byte[] evidenceKey, ByteString statement, ByteString signature) {
    if (signature.size() != BYTES || evidenceKey.length != Ed25519.PUBLIC_KEY_SIZE) {
      return false;
    }
    byte[] signed = Arrays.copyOf(TAG, TAG.length + HASH_BYTES);
    System.arraycopy(hash(statement), 0, signed, TAG.length, HASH_BYTES);
    // Eight times as fast as the JDK's, and parties state their ledgers to each other all the time.
    return Ed25519.verify(signature.toByteArray(), 0, evidenceKey, 0, signed, 0, signed.length);
  }

  private static byte[] hash(ByteString statement) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(statement.toByteArray());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
