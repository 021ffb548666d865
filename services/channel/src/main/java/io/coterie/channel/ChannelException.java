package io.coterie.channel;

/**
 * Why a message could not be handed to the messaging service. The text names members and causes,
 * never content.
 */
public final class ChannelException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Stable causes, also the values of the metric label {@code cause}. */
  public enum Cause {
    /** No session or sender key with a recipient yet. */
    NOT_ESTABLISHED,
    /** The messaging service cannot be reached, or answered 5xx. */
    UNAVAILABLE,
    /** The messaging service answered 429. */
    RATE_LIMITED,
    /** The body is larger than the channel carries. */
    TOO_LARGE,
    /** A recipient is not in the roster, or its keys are not the pinned ones. */
    UNTRUSTED,
    /** The messaging service refused the credentials. */
    UNAUTHENTICATED,
    CLOSED,
    INTERNAL
  }

  private final Cause reason;

  public ChannelException(Cause reason, String message) {
    super(message);
    this.reason = reason;
  }

  public ChannelException(Cause reason, String message, Throwable cause) {
    super(message, cause);
    this.reason = reason;
  }

  public Cause reason() {
    return reason;
  }
}
