package io.coterie.coordinator.session;

import java.time.Duration;

/**
 * How long a session may take before another quorum is tried: the recent time of sessions plus four
 * times its variation (as RFC 6298 does for retransmission), within bounds. Thread-safe.
 */
public final class AdaptiveTimeout {
  private static final double MEAN_WEIGHT = 0.125;
  private static final double VARIATION_WEIGHT = 0.25;
  private static final int VARIATIONS = 4;
  private static final double GROWTH = 1.5;

  /** Of the times that {@link #grown} gives: with a clock skew of 10 s as much as parties allow. */
  public static final Duration LONGEST = Duration.ofSeconds(110);

  private final long minNanos;
  private final long maxNanos;
  private final long initialNanos;
  private double mean;
  private double variation;
  private boolean sampled;

  /**
   * A timeout nothing is known about yet.
   *
   * @param initial until the first session has succeeded
   */
  public AdaptiveTimeout(Duration min, Duration initial, Duration max) {
    if (min.isNegative()
        || min.isZero()
        || min.compareTo(initial) > 0
        || initial.compareTo(max) > 0) {
      throw new IllegalArgumentException("session timeouts must be 0 < min <= initial <= max");
    }
    this.minNanos = min.toNanos();
    this.initialNanos = initial.toNanos();
    this.maxNanos = max.toNanos();
  }

  /** Never less than this. */
  public Duration min() {
    return Duration.ofNanos(minNanos);
  }

  /** A session succeeded after {@code nanos}. */
  public synchronized void succeeded(long nanos) {
    if (sampled) {
      variation += VARIATION_WEIGHT * (Math.abs(nanos - mean) - variation);
      mean += MEAN_WEIGHT * (nanos - mean);
    } else {
      mean = nanos;
      variation = nanos / 2.0;
      sampled = true;
    }
  }

  /**
   * The timeout of the next session.
   *
   * @param attempt 0 for the first session of a request; each later one gets half as much again, so
   *     that a network slower than it was is caught up with
   */
  public synchronized Duration next(int attempt) {
    double base = sampled ? mean + VARIATIONS * variation : initialNanos;
    double nanos = Math.max(base, minNanos) * Math.pow(GROWTH, Math.min(attempt, 10));
    return Duration.ofNanos((long) Math.min(nanos, maxNanos));
  }

  /**
   * The least time of a session that computes for seconds, whose machine may be slow: it begins
   * anew after a timeout, so that as little again would never be enough.
   *
   * @param least of the first session
   * @param attempt as in {@link #next}
   */
  public static Duration grown(Duration least, int attempt) {
    double nanos = least.toNanos() * Math.pow(GROWTH, Math.min(attempt, 10));
    return Duration.ofNanos((long) Math.min(nanos, LONGEST.toNanos()));
  }
}
