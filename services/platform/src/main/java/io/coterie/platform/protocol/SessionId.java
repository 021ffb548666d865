package io.coterie.platform.protocol;

import com.google.protobuf.ByteString;
import io.coterie.platform.telemetry.LogScope;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * The name of one run of one protocol at all of its parties: the hash of the order that started it,
 * so that no session can be run with other content. Never used twice.
 *
 * @param bytes {@link #LENGTH} bytes
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

  /** The id of the session that an order starts: SHA-256 of a tag and the serialised order. */
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

  /** The first 16 hex digits, as logs show it. */
  @Override
  public String toString() {
    return LogScope.sessionLabel(bytes.toByteArray());
  }
}
