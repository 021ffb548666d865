package io.coterie.platform.scheme;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.KeyPublic;
import java.util.HexFormat;

/**
 * A short form of a public key that people can compare, and by which an intent names its key. It
 * covers the key with its descendants and nothing that changes, so it stays the same through every
 * refresh and reshare.
 */
public final class KeyFingerprint {
  private static final ByteString TAG = ByteString.copyFromUtf8("coterie/key-fingerprint/1");

  private KeyFingerprint() {}

  /** The first 16 bytes of SHA-256 of tag, public key and chain code. */
  public static ByteString of(KeyPublic key) {
    return IntentVerifier.digest(TAG.concat(key.getPublicKey()).concat(key.getChainCode()))
        .substring(0, IntentVerifier.FINGERPRINT_BYTES);
  }

  /** As people read it: eight groups of four hexadecimal digits. */
  public static String text(ByteString fingerprint) {
    return HexFormat.of().formatHex(fingerprint.toByteArray()).replaceAll("(.{4})(?!$)", "$1 ");
  }
}
