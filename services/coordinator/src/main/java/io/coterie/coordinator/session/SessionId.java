package io.coterie.coordinator.session;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.protobuf.ByteString;
import io.coterie.platform.telemetry.LogScope;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * The name of a session at all of its parties: a hash of the order, so that the same session cannot
 * be run with other content.
 *
 * @param bytes 32 bytes
 */
public record SessionId(ByteString bytes) {
  /** Bytes of an id. */
  public static final int SIZE = 32;

  private static final byte[] TAG = "coterie/session/1".getBytes(US_ASCII);

  public SessionId {
    if (bytes.size() != SIZE) {
      throw new IllegalArgumentException("a session id has 32 bytes");
    }
  }

  /** SHA-256 of the tag and the serialised order. */
  static SessionId of(ByteString order) {
    try {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      sha256.update(TAG);
      sha256.update(order.asReadOnlyByteBuffer());
      return new SessionId(ByteString.copyFrom(sha256.digest()));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  /** The first 16 hex digits. */
  @Override
  public String toString() {
    return LogScope.sessionLabel(bytes.toByteArray());
  }
}
