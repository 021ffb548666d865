package io.coterie.signer.order;

import java.time.Duration;

/**
 * How much this party does at once, and for how long.
 *
 * @param maxSessions sessions from order to last own message; and as many that only wait to see
 *     their result, beyond which a session ends with its last own message
 * @param maxSessionsPerRequester the same, for one requester, which never gets more than seven
 *     times as many as are free: {@link io.coterie.platform.limit.FairPlaces}
 * @param maxSessionTime an order with a later deadline is refused
 * @param clockSkew by how much this party's clock and a requester's may differ
 * @param combineDelay how long a session that only waits to see its result lets messages lie, so
 *     that the work of others comes first
 * @param presignatures limits of the pool
 */
public record SessionLimits(
    int maxSessions,
    int maxSessionsPerRequester,
    Duration maxSessionTime,
    Duration clockSkew,
    Duration combineDelay,
    PresignatureLimits presignatures) {

  /** Parties of one key, as the core allows. */
  public static final int MAX_PARTIES = 20;

  /** A serialised order: an intent of 128 KiB and everything around it. */
  public static final int MAX_ORDER_BYTES = 160 * 1024;

  /**
   * One core envelope, as it is accepted from a peer. The largest of an undisturbed run, in the
   * second round of a session that makes four ECDSA presignatures, has 165 KB; the longest notice
   * that the core sends or judges, among 20 parties, has less than 200 KB.
   */
  public static final int MAX_ENVELOPE_BYTES = 256 * 1024;

  /**
   * Messages of one peer that wait for the lanes of running sessions: the largest round of 40
   * signings, and of 8 sessions that make presignatures.
   */
  public static final int MAX_QUEUED_BYTES = 3 * 1024 * 1024;

  /** The same of a session of a pair: a frame of 1 MiB with its header. */
  public static final int MAX_PAIR_ENVELOPE_BYTES = 1024 * 1024 + 4096;

  /** Messages of one peer that wait for the lanes of sessions of pairs: the frames of eight. */
  public static final int MAX_PAIR_QUEUED_BYTES = 8 * (MAX_PAIR_ENVELOPE_BYTES + 4096);

  /** The public data of a key in a peer's report: 20 verification shares take 1.2 KB. */
  public static final int MAX_KEY_PUBLIC_BYTES = 8 * 1024;

  public SessionLimits {
    if (maxSessions < 1 || maxSessionsPerRequester < 1) {
      throw new IllegalArgumentException("limits of sessions must be positive");
    }
    if (maxSessionTime.isNegative() || maxSessionTime.isZero()) {
      throw new IllegalArgumentException("max-session-time must be positive");
    }
    if (clockSkew.isNegative() || combineDelay.isNegative()) {
      throw new IllegalArgumentException("clock-skew and combine-delay must not be negative");
    }
  }
}
