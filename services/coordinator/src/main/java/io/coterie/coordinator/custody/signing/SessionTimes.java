package io.coterie.coordinator.custody.signing;

import io.coterie.coordinator.custody.request.Run;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** How long the sessions of one request may take. No session goes beyond the end of the intent. */
final class SessionTimes {
  /**
   * The time after the deadline of a session after which its parties know that it may not become a
   * signature any more, in multiples of the clock skew.
   */
  private static final int SETTLING_SKEWS = 5;

  private final AdaptiveTimeout timeout;
  private final RunLimits limits;
  private final Clock clock;
  private final Run<?> run;
  private final Instant notAfter;

  /** Of any session; zero unless pairs set up and prepare in it if they have to. */
  private final Duration least;

  /**
   * @param intent that the sessions are for
   */
  SessionTimes(
      AdaptiveTimeout timeout,
      RunLimits limits,
      Clock clock,
      Run<?> run,
      VerifiedIntent.Signing intent) {
    this.least =
        intent.scheme() == Scheme.SCHEME_ED25519_EXACT ? SessionPlan.PAIR_TIME : Duration.ZERO;
    this.timeout = timeout;
    this.limits = limits;
    this.clock = clock;
    this.run = run;
    this.notAfter = intent.notAfter();
  }

  /** Whether the intent has expired. */
  boolean isExpired() {
    return clock.instant().isAfter(notAfter);
  }

  /**
   * The time that sessions take lately.
   *
   * @param attempt number of the session, from 0
   * @param presigned whether nothing is prepared in it
   * @param canRetry whether another quorum is left: then the session takes at most half of the time
   *     that the most patient caller has, so that there is a second chance inside it
   */
  Duration ofSession(Instant now, int attempt, boolean presigned, boolean canRetry) {
    Duration usual = timeout.next(attempt);
    Duration atLeast = presigned ? Duration.ZERO : AdaptiveTimeout.grown(least, attempt);
    Duration time = usual.compareTo(atLeast) < 0 ? atLeast : usual;
    long patience = run.patienceNanos();
    if (patience > 0 && canRetry && time.toNanos() > patience / 2) {
      time =
          Duration.ofNanos(
              Math.max(patience / 2, Math.max(atLeast.toNanos(), timeout.min().toNanos())));
    }
    Duration untilExpiry = Duration.between(now, notAfter);
    return time.compareTo(untilExpiry) > 0 ? untilExpiry : time;
  }

  /** A session has succeeded after so long. Those of pairs are no measure for others. */
  void succeeded(long nanos) {
    if (least.isZero()) {
      timeout.succeeded(nanos);
    }
  }

  /** The deadline that the parties of a session get. */
  Instant deadline(Instant now, Duration time) {
    Instant deadline = now.plus(time).plus(limits.clockSkew());
    return deadline.isAfter(notAfter) ? notAfter : deadline;
  }

  /** When the parties of a session know that it may not become a signature any more. */
  Instant settled(Order order, int attempt) {
    // The order may be the word of a party, and then its deadline is no better.
    Instant latest = clock.instant().plus(timeout.next(attempt));
    long seconds = Math.clamp(order.getDeadline().getSeconds(), 0, latest.getEpochSecond());
    return Instant.ofEpochSecond(seconds).plus(limits.clockSkew().multipliedBy(SETTLING_SKEWS));
  }

  /** Whether the order had come too late, rather than the request. */
  boolean wasLate(RefusalReason reason) {
    return reason == RefusalReason.REFUSAL_REASON_INTENT_EXPIRED && !isExpired();
  }

  /**
   * The parties that were asked more than they can do; a party that is gone looks the same. Of a
   * pair nobody can tell who was waited for, and each says itself what is too much for it.
   */
  Optional<Set<Integer>> overloaded(SessionOutcome outcome) {
    return switch (outcome) {
      case SessionOutcome.TimedOut timedOut ->
          least.isZero() ? Optional.of(timedOut.missing()) : Optional.empty();
      case SessionOutcome.Refused refused -> {
        Set<Integer> late =
            refused.by().entrySet().stream()
                .filter(
                    e ->
                        e.getValue() == RefusalReason.REFUSAL_REASON_OVERLOADED
                            || wasLate(e.getValue()))
                .map(Map.Entry::getKey)
                .collect(Collectors.toSet());
        yield late.isEmpty() ? Optional.empty() : Optional.of(late);
      }
      default -> Optional.empty();
    };
  }
}
