package io.coterie.channel;

import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

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

  /** The channel exception inside, or one of cause INTERNAL around what is inside. */
  public static ChannelException of(Throwable failure) {
    Throwable inner = failure;
    while ((inner instanceof CompletionException || inner instanceof ExecutionException)
        && inner.getCause() != null) {
      inner = inner.getCause();
    }
    return inner instanceof ChannelException e
        ? e
        : new ChannelException(Cause.INTERNAL, "unexpected failure in the channel", inner);
  }

  /**
   * The failure that a status of the messaging service means.
   *
   * @param what name of the answered request, for the text
   */
  public static ChannelException ofStatus(int status, String what) {
    Cause cause =
        switch (status) {
          case 401, 403 -> Cause.UNAUTHENTICATED;
          case 404 -> Cause.NOT_ESTABLISHED;
          case 413 -> Cause.TOO_LARGE;
          case 428, 429 -> Cause.RATE_LIMITED;
          default -> status >= 500 ? Cause.UNAVAILABLE : Cause.INTERNAL;
        };
    return new ChannelException(
        cause, what + ": the messaging service answered with status " + status);
  }
}
