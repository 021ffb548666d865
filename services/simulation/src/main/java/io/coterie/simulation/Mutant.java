package io.coterie.simulation;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A rule that is taken out of the honest parties, or of the coordinator, on purpose: a simulation
 * that does not miss it checks nothing.
 */
enum Mutant {
  /** The product as it is. */
  NONE,
  /** A session may be claimed again. */
  CLAIMS_TWICE(Breach.SESSION_TWICE),
  /** A request id may be used for another intent. */
  FORGETS_REQUESTS(Breach.TWO_INTENTS),
  /** A request is bound to no session on disk. */
  BINDS_NOTHING(Breach.TWO_SIGNATURES),
  /** The claim is believed before it is on disk. */
  CLAIMS_BEFORE_DISK(Breach.SESSION_TWICE),
  /** A claim is believed that could not be written. */
  BELIEVES_FAILED_COMMITS(Breach.AUDIT_BROKEN),
  /** An exclusion is kept in memory only. */
  ERASES_EXCLUSIONS(Breach.EXCLUSION_FORGOTTEN),
  /** Exclusions are written down, and nobody looks at them. */
  MEETS_EXCLUDED(Breach.EXCLUSION_FORGOTTEN),
  /** A witness of a ledger says what it is told, and holds nothing against it. */
  FORGETS_LEDGERS(Breach.ROLLBACK_UNNOTICED),
  /** A party that knows that its own store went back multiplies all the same. */
  IGNORES_OWN_ROLLBACK(Breach.ROLLBACK_UNNOTICED),
  /** A party that was restored claims requests of before. */
  IGNORES_FENCE(Breach.FENCE_PASSED),
  /** A party says that it takes no part in a session, and writes down nothing. */
  DECLINES_IN_WORDS(Breach.DECLINE_BROKEN),
  /** Every intent is admitted, signed or not. */
  ADMITS_ALL(Breach.FORBIDDEN),
  /** The holds of the operator are not looked at. */
  IGNORES_HOLDS(Breach.HOLD_IGNORED),
  /** A peer is excluded when its party has died with it so often that people are warned. */
  EXCLUDES_EARLY(Breach.HONEST_CONVICTED),
  /** That a multiplication is over is not written down. */
  LEAVES_MULTIPLICATIONS_OPEN(Breach.MISCOUNTED),
  /** That a session multiplies is not written down. */
  CLAIMS_NO_MULTIPLICATION(Breach.MISCOUNTED),
  /** A peer whose message comes twice is named as a culprit. */
  CONVICTS_FOR_DUPLICATES(Breach.HONEST_CONVICTED),
  /** The disk forgets the last commits when the process is killed. */
  LOSES_COMMITS(Breach.FENCED),
  /** The one-time values of a process are those of the process before it. */
  REPEATS_ONE_TIME_VALUES(Breach.ONE_TIME_TWICE),
  /** A message for one party goes to all of them. */
  LEAKS_PRIVATE(Breach.PRIVATE_LEAKED),
  /** A share is reported before it is on disk. */
  TELLS_OF_SHARES_EARLY(Breach.TOLD_EARLY),
  /** The share of an older epoch is used on. */
  USES_OLD_SHARES(Breach.OLD_SHARE),
  /** A share is used as soon as it is stored here. */
  USES_SHARES_EARLY(Breach.USED_EARLY),
  /** A share that a peer says it has none of is never taken up again. */
  LOSES_ABANDONED_SHARES(Breach.SPLIT),
  /** The audit trail does not say which session was accepted. */
  AUDITS_NO_SESSION(Breach.AUDIT_BROKEN),
  /** The coordinator takes the first contribution for the signature. */
  COMBINES_EARLY(Breach.SIGNED_BY_NOBODY),
  /** The time of a session is never up for the coordinator. */
  WAITS_FOREVER(Breach.SESSION_WITHOUT_END),
  /** A session of a request begins although an earlier one may still become its signature. */
  LEAVES_UNSETTLED(Breach.UNSETTLED),
  /** A replica takes over a request although the one that works on it is there. */
  TAKES_OVER_AT_ONCE(Breach.WORKED_TWICE),
  /**
   * A replica takes up all of its own requests at each look; and a request that such a look has
   * locked does not look like its own.
   */
  TAKES_UP_ALL(Breach.UNSETTLED),
  /** The end of a request is told before it is stored, and never stored. */
  LOSES_ENDS(Breach.CHANGED),
  /** A party that gives no receipt counts as one that gave one. */
  TAKES_REFUSALS_FOR_RECEIPTS(Breach.NO_PROOF),
  /** A presignature has the name of an earlier one of the same parties. */
  REPEATS_PRESIGNATURE_NAMES(Breach.PRESIGNATURE_TWICE),
  /** A message that comes twice is an error of the party that gets it. */
  FAILS_ON_DUPLICATES(Breach.FAILED),
  /** The word of one party that it has stored its share counts as that of all. */
  BELIEVES_ONE_FOR_ALL(Breach.STORED_BY_NOBODY),
  /** A hold that was lifted goes on until the process ends. */
  KEEPS_HOLDS(Breach.NO_PROGRESS),
  /** A key is frozen where one party is to be excluded from it. */
  FREEZES_FOR_ONE(Breach.FROZEN),
  /** A replica takes the first contribution to the request of a client for the signature. */
  ANSWERS_EARLY(Breach.FALSE_SIGNATURE),
  /** A party says that it never signs for a request, and writes down nothing. */
  SAYS_NEVER_IN_WORDS(Breach.SIGNED_AFTER_ALL),
  /** A client waits longer than it has said. */
  WAITS_LONGER(Breach.LATE),
  /** A replica takes up nothing that another one, or its own process before, has left. */
  TAKES_UP_NOTHING(Breach.REQUEST_WITHOUT_END),
  /** A replica that messaging has once refused an order gives no order any more. */
  GIVES_UP_ORDERING(Breach.REQUEST_NOT_SIGNED),
  /** A replica does not remember who has contributed to an order that was given again. */
  FORGETS_WITNESSES(Breach.NO_WITNESS);

  private final @Nullable Breach breach;

  Mutant() {
    this.breach = null;
  }

  Mutant(Breach breach) {
    this.breach = breach;
  }

  /** The promise that is broken without the rule; of the product, none is. */
  Optional<Breach> breach() {
    return Optional.ofNullable(breach);
  }
}
