package io.coterie.platform.attestation;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.KeyPublic;
import java.util.HexFormat;

/**
 * A short form of a public key that people can compare. It covers the key with its descendants and
 * nothing that changes, so it stays the same through every refresh and reshare.
 */
public final class KeyFingerprint {
  private static final ByteString TAG = ByteString.copyFromUtf8("coterie/key-fingerprint/1");
  private static final int BYTES = 16;

  private KeyFingerprint() {}

  /**
   * The first 16 bytes of SHA-256 of tag, public key and chain code, as eight groups of four
   * hexadecimal digits.
   */
  public static String of(KeyPublic key) {
    ByteString digest =
        IntentVerifier.digest(TAG.concat(key.getPublicKey()).concat(key.getChainCode()));
    return HexFormat.of()
        .formatHex(digest.substring(0, BYTES).toByteArray())
        .replaceAll("(.{4})(?!$)", "$1 ");
  }
}
