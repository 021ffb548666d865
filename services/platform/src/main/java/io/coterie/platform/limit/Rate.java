package io.coterie.platform.limit;

/** Allows something so many times at once, and so many times a second after that. Thread-safe. */
public final class Rate {
  private static final double NANOS = 1e9;

  private final int burst;
  private final int perSecond;
  private double tokens;
  private long beforeNanos;

  /** A rate of which nothing is used yet. The clock is monotonic, in nanoseconds. */
  public Rate(int burst, int perSecond, long nowNanos) {
    this.burst = burst;
    this.perSecond = perSecond;
    this.tokens = burst;
    this.beforeNanos = nowNanos;
  }

  /** Whether it is allowed once more now. */
  public synchronized boolean take(long nowNanos) {
    if (!mayTake(nowNanos)) {
      return false;
    }
    tokens--;
    return true;
  }

  /** Whether it would be allowed now; nothing is used. */
  public synchronized boolean mayTake(long nowNanos) {
    tokens = Math.min(burst, tokens + (nowNanos - beforeNanos) / NANOS * perSecond);
    beforeNanos = nowNanos;
    return tokens >= 1;
  }
}
