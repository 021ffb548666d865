package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.telemetry.LogScope;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * The name of one run of one protocol: 32 bytes, the hash of the order that started it, never used
 * twice.
 */
public record SessionId(ByteString bytes) {
  /** Bytes of a session id. */
  public static final int LENGTH = 32;

  private static final byte[] DOMAIN = "coterie/session/1".getBytes(StandardCharsets.US_ASCII);

  public SessionId {
    if (bytes.size() != LENGTH) {
      throw new IllegalArgumentException("a session id has 32 bytes, not " + bytes.size());
    }
  }

  /** The id of the session that these order bytes start. */
  public static SessionId ofOrder(ByteString order) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(DOMAIN);
      digest.update(order.asReadOnlyByteBuffer());
      return new SessionId(ByteString.copyFrom(digest.digest()));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  /** As people see it, in logs. */
  @Override
  public String toString() {
    return LogScope.sessionLabel(bytes.toByteArray());
  }
}
