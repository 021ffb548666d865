package io.coterie.trust;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * The short forms of what the trust file has, which people read aloud to compare. Not cut: an owner
 * of a root key, say, chooses what goes into one, and of 16 bytes 2^64 trials find two sets of root
 * keys with the same.
 */
public final class Fingerprint {
  private Fingerprint() {}

  /** The fingerprint of a party's evidence key, the same before and after the party has left. */
  public static String ofEvidenceKey(byte[] key) {
    return of("coterie/evidence-key-fingerprint/1", key);
  }

  /** The fingerprint of a requester's public key. */
  public static String ofRequesterKey(byte[] spki) {
    return of("coterie/requester-key-fingerprint/1", spki);
  }

  /** Sixteen groups of four hexadecimal digits: SHA-256 of tag and content. */
  static String of(String tag, byte[] content) {
    MessageDigest sha256 = sha256();
    sha256.update(tag.getBytes(US_ASCII));
    return HexFormat.of().formatHex(sha256.digest(content)).replaceAll("(.{4})(?!$)", "$1 ");
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
