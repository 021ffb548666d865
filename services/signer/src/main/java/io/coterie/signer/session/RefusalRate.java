package io.coterie.signer.session;

import io.coterie.platform.limit.Rate;

/**
 * How many refusals are logged one by one, and audited if a requester has signed for them. A
 * coordinator that floods this party with orders must fill neither its disk nor its log: beyond the
 * rate they are counted, and the next line or record says how many there were. Thread-safe.
 */
final class RefusalRate {
  static final int BURST = 1000;
  static final int PER_SECOND = 1;

  private final Rate rate;
  private long unrecorded;

  RefusalRate(long nowNanos) {
    this.rate = new Rate(BURST, PER_SECOND, nowNanos);
  }

  /**
   * One refusal.
   *
   * @return how many were not recorded since the last one that was; -1 if this one is not to be
   *     recorded or logged
   */
  synchronized long next(long nowNanos) {
    if (!rate.take(nowNanos)) {
      unrecorded++;
      return -1;
    }
    long missing = unrecorded;
    unrecorded = 0;
    return missing;
  }
}
