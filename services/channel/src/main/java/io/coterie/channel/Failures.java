package io.coterie.channel;

import io.coterie.channel.ChannelException.Cause;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/** From what went wrong to what the caller is told. */
final class Failures {
  private Failures() {}

  /** The channel exception inside, or one of cause INTERNAL around what is inside. */
  static ChannelException of(Throwable failure) {
    Throwable inner = failure;
    while ((inner instanceof CompletionException || inner instanceof ExecutionException)
        && inner.getCause() != null) {
      inner = inner.getCause();
    }
    return inner instanceof ChannelException e
        ? e
        : new ChannelException(Cause.INTERNAL, "unexpected failure in the channel", inner);
  }

  /** The failure that a status of the messaging service means. */
  static ChannelException status(int status, String what) {
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
