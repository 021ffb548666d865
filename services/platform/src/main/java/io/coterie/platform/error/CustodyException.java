package io.coterie.platform.error;

import io.coterie.proto.custody.v1.SignedReceipt;
import java.util.List;
import java.util.Map;

/** A failure with a stable reason, on its way to the caller. */
public final class CustodyException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorReason reason;
  private final transient Map<String, String> metadata;
  private final transient List<SignedReceipt> refusals;

  public CustodyException(ErrorReason reason) {
    this(reason, Map.of());
  }

  /**
   * A failure with details.
   *
   * @param metadata keys of {@link StatusErrors}; values are ids, names and causes, never payloads
   */
  public CustodyException(ErrorReason reason, Map<String, String> metadata) {
    this(reason, metadata, List.of());
  }

  /**
   * A failure of which parties have said that they refused.
   *
   * @param refusals their receipts
   */
  public CustodyException(
      ErrorReason reason, Map<String, String> metadata, List<SignedReceipt> refusals) {
    super(reason + ": " + reason.text() + (metadata.isEmpty() ? "" : " " + metadata));
    this.reason = reason;
    this.metadata = Map.copyOf(metadata);
    this.refusals = List.copyOf(refusals);
  }

  public ErrorReason reason() {
    return reason;
  }

  public Map<String, String> metadata() {
    return metadata;
  }

  /** REFUSED receipts of parties. */
  public List<SignedReceipt> refusals() {
    return refusals;
  }
}
