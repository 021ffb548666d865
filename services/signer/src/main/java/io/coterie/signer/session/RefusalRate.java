package io.coterie.signer.session;

/**
 * How many refusals are logged and audited one by one. A member that floods this party with orders
 * must not fill its disk: beyond the rate they are counted, and the next record says how many there
 * were. Thread-safe.
 */
final class RefusalRate {
  static final int BURST = 1000;
  static final int PER_SECOND = 100;

  private static final double NANOS = 1e9;

  private double tokens = BURST;
  private long beforeNanos;
  private long unrecorded;

  RefusalRate(long nowNanos) {
    this.beforeNanos = nowNanos;
  }

  /**
   * One refusal.
   *
   * @return how many were not recorded since the last one that was; -1 if this one is not to be
   *     recorded
   */
  synchronized long next(long nowNanos) {
    tokens = Math.min(BURST, tokens + (nowNanos - beforeNanos) / NANOS * PER_SECOND);
    beforeNanos = nowNanos;
    if (tokens < 1) {
      unrecorded++;
      return -1;
    }
    tokens--;
    long missing = unrecorded;
    unrecorded = 0;
    return missing;
  }
}
