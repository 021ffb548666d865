package io.coterie.simulation;

/**
 * A rule that is taken out of the honest parties on purpose: a simulation that does not miss it
 * checks nothing.
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
  /** An exclusion is kept in memory only. */
  ERASES_EXCLUSIONS(Checker.EXCLUSION_FORGOTTEN),
  /** A witness of a ledger says what it is told, and holds nothing against it. */
  FORGETS_LEDGERS(Checker.ROLLBACK_UNNOTICED),
  /** Every intent is admitted, signed or not. */
  ADMITS_ALL(Checker.FORBIDDEN),
  /** A peer whose message comes twice is named as a culprit. */
  CONVICTS_FOR_DUPLICATES(Checker.HONEST_CONVICTED),
  /** The disk forgets the last commits when the process is killed. */
  LOSES_COMMITS(Checker.HONEST_CONVICTED);

  private final String violation;

  Mutant(String violation) {
    this.violation = violation;
  }

  /** The promise that is broken without the rule. */
  String violation() {
    return violation;
  }
}
