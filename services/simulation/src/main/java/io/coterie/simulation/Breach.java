package io.coterie.simulation;

/**
 * A promise that was not kept. Each has a {@link Mutant} that breaks it, so that a check that
 * checks nothing is seen.
 */
enum Breach {
  SESSION_TWICE("a session ran twice"),
  FORBIDDEN("an order ran that nobody may give"),
  TWO_INTENTS("two intents under one request id"),
  TWO_SIGNATURES("two signatures of one request"),
  PRESIGNATURE_TWICE("a presignature was used twice"),
  EXCLUSION_FORGOTTEN("an exclusion was forgotten"),
  HONEST_CONVICTED("an honest party was convicted"),
  ROLLBACK_UNNOTICED("a store that went back was not noticed"),
  FAILED("a party failed by itself"),
  FENCE_PASSED("a request of before a restore was served"),
  DECLINE_BROKEN("a party contributed to what it had declined"),
  HOLD_IGNORED("an order ran that was held"),
  ONE_TIME_TWICE("a one-time value was used twice"),
  PRIVATE_LEAKED("a private message went to another party"),
  TOLD_EARLY("a share was reported before it was on disk"),
  USED_EARLY("a share was used before all had stored theirs"),
  SIGNED_BY_NOBODY("the coordinator has a signature that nobody made"),
  STORED_BY_NOBODY("the coordinator uses shares that nobody stored"),
  OLD_SHARE("a share of an older epoch was used"),
  NO_PROGRESS("honest parties cannot sign"),
  SPLIT("parties use different epochs"),
  AUDIT_BROKEN("the audit trail does not tell what was done"),
  SESSION_WITHOUT_END("a session has no end"),
  FROZEN("a key is frozen for no reason"),
  MISCOUNTED("ends in a multiplication are counted wrongly"),
  FENCED("a store that never went back is fenced"),
  FALSE_SIGNATURE("a client has a signature that nobody made"),
  NO_PROOF("a request is never signed for no reason"),
  SIGNED_AFTER_ALL("a request that is never signed is signed"),
  CHANGED("a request has two ends"),
  LATE("a client was not answered in time"),
  REQUEST_WITHOUT_END("a request has no end"),
  REQUEST_NOT_SIGNED("a request of honest parties alone is not signed"),
  UNSETTLED("a session began while an earlier one was not settled"),
  NO_WITNESS("a session began without a party of the one that is in doubt"),
  WORKED_TWICE("two replicas that were there worked on one request");

  private final String text;

  Breach(String text) {
    this.text = text;
  }

  /** Begins each violation of it. */
  @Override
  public String toString() {
    return text;
  }
}
