package io.coterie.simulation;

/**
 * A rule that is taken out of the honest parties, or of the coordinator, on purpose: a simulation
 * that does not miss it checks nothing.
 */
enum Mutant {
  /** The product as it is. */
  NONE(""),
  /** A session may be claimed again. */
  CLAIMS_TWICE(Checker.SESSION_TWICE),
  /** A request id may be used for another intent. */
  FORGETS_REQUESTS(Checker.TWO_INTENTS),
  /** A request is bound to no session on disk. */
  BINDS_NOTHING(Checker.TWO_SIGNATURES),
  /** The claim is believed before it is on disk. */
  CLAIMS_BEFORE_DISK(Checker.SESSION_TWICE),
  /** A claim is believed that could not be written. */
  BELIEVES_FAILED_COMMITS(Ending.AUDIT_BROKEN),
  /** An exclusion is kept in memory only. */
  ERASES_EXCLUSIONS(Checker.EXCLUSION_FORGOTTEN),
  /** Exclusions are written down, and nobody looks at them. */
  MEETS_EXCLUDED(Checker.EXCLUSION_FORGOTTEN),
  /** A witness of a ledger says what it is told, and holds nothing against it. */
  FORGETS_LEDGERS(Checker.ROLLBACK_UNNOTICED),
  /** A party that knows that its own store went back multiplies all the same. */
  IGNORES_OWN_ROLLBACK(Checker.ROLLBACK_UNNOTICED),
  /** A party that was restored claims requests of before. */
  IGNORES_FENCE(Checker.FENCE_PASSED),
  /** A party says that it takes no part in a session, and writes down nothing. */
  DECLINES_IN_WORDS(Checker.DECLINE_BROKEN),
  /** Every intent is admitted, signed or not. */
  ADMITS_ALL(Checker.FORBIDDEN),
  /** The holds of the operator are not looked at. */
  IGNORES_HOLDS(Checker.HOLD_IGNORED),
  /** A peer is excluded when its party has died with it so often that people are warned. */
  EXCLUDES_EARLY(Checker.HONEST_CONVICTED),
  /** That a multiplication is over is not written down. */
  LEAVES_MULTIPLICATIONS_OPEN(Ending.MISCOUNTED),
  /** That a session multiplies is not written down. */
  CLAIMS_NO_MULTIPLICATION(Ending.MISCOUNTED),
  /** A peer whose message comes twice is named as a culprit. */
  CONVICTS_FOR_DUPLICATES(Checker.HONEST_CONVICTED),
  /** The disk forgets the last commits when the process is killed. */
  LOSES_COMMITS(Checker.HONEST_CONVICTED),
  /** The one-time values of a process are those of the process before it. */
  REPEATS_ONE_TIME_VALUES(Checker.ONE_TIME_TWICE),
  /** A message for one party goes to all of them. */
  LEAKS_PRIVATE(Checker.PRIVATE_LEAKED),
  /** A share is reported before it is on disk. */
  TELLS_OF_SHARES_EARLY(Checker.TOLD_EARLY),
  /** The share of an older epoch is used on. */
  USES_OLD_SHARES(Checker.OLD_SHARE),
  /** A share that a peer says it has none of is never taken up again. */
  LOSES_ABANDONED_SHARES(Ending.SPLIT),
  /** The audit trail does not say which session was accepted. */
  AUDITS_NO_SESSION(Ending.AUDIT_BROKEN),
  /** The coordinator takes the first contribution for the signature. */
  COMBINES_EARLY(Checker.NOT_SIGNED),
  /** The time of a session is never up for the coordinator. */
  WAITS_FOREVER(Ending.NO_END),
  /** A session of a request begins although an earlier one may still become its signature. */
  LEAVES_UNSETTLED(OrderChecker.UNSETTLED),
  /** A replica takes over a request although the one that works on it is there. */
  TAKES_OVER_AT_ONCE(OrderChecker.WORKED_TWICE),
  /**
   * A replica takes up all of its own requests at each look; and a request that such a look has
   * locked does not look like its own.
   */
  TAKES_UP_ALL(OrderChecker.UNSETTLED),
  /** The end of a request is told before it is stored, and never stored. */
  LOSES_ENDS(RequestChecker.CHANGED),
  /** A party that gives no receipt counts as one that gave one. */
  TAKES_REFUSALS_FOR_RECEIPTS(RequestChecker.NO_PROOF);

  private final String violation;

  Mutant(String violation) {
    this.violation = violation;
  }

  /** The promise that is broken without the rule. */
  String violation() {
    return violation;
  }
}
