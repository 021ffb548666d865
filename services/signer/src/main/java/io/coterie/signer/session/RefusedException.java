package io.coterie.signer.session;

import io.coterie.proto.party.v1.RefusalReason;

/**
 * This party will not do what it was asked. The text is one line for people, without payload or
 * secret; it travels to the coordinator.
 */
public final class RefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  private final RefusalReason reason;

  public RefusedException(RefusalReason reason, String detail) {
    // A refusal is an answer, not a fault: no stack trace, so that a flood of them stays cheap.
    super(detail, null, false, false);
    this.reason = reason;
  }

  public RefusalReason reason() {
    return reason;
  }

  /** The line for people. */
  public String detail() {
    return String.valueOf(getMessage());
  }
}
