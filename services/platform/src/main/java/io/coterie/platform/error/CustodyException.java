package io.coterie.platform.error;

import java.util.Map;

/** A failure with a stable reason, on its way to the caller. */
public final class CustodyException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorReason reason;
  private final transient Map<String, String> metadata;

  public CustodyException(ErrorReason reason) {
    this(reason, Map.of());
  }

  /**
   * A failure with details.
   *
   * @param metadata keys of {@link StatusErrors}; values are ids, names and causes, never payloads
   */
  public CustodyException(ErrorReason reason, Map<String, String> metadata) {
    super(reason + ": " + reason.text() + (metadata.isEmpty() ? "" : " " + metadata));
    this.reason = reason;
    this.metadata = Map.copyOf(metadata);
  }

  public ErrorReason reason() {
    return reason;
  }

  public Map<String, String> metadata() {
    return metadata;
  }
}
