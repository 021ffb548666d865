package io.coterie.mpc;

/** A call the native core refused. The text carries ids only. */
public final class MpcException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** One for each code of the C header. */
  public enum Reason {
    INVALID_ARGUMENT,
    /** Wrong data key, or an altered blob. */
    UNSEAL_FAILED,
    /** The session's configuration contradicts itself or the share. */
    SETUP_REFUSED,
    /** The session panicked earlier. */
    POISONED,
    INTERNAL
  }

  private final Reason reason;

  public MpcException(Reason reason, String message) {
    super(message);
    this.reason = reason;
  }

  public Reason reason() {
    return reason;
  }
}
