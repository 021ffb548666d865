package io.coterie.simulation;

/** One way of a corrupt member to deviate: the names say what it does with what is due. */
enum Lie {
  /** A party sends an envelope to nobody. */
  WITHHOLDS,
  /** A party changes a body, the same for all. */
  ALTERS,
  /** A party changes a body for one recipient. */
  EQUIVOCATES,
  /** A party puts the body of another envelope into it. */
  SWAPS,
  /** A party sends an older message as well. */
  REPLAYS,
  /** A party sends a hundred more messages that nobody has asked for. */
  FLOODS,
  /** A party claims to be in another run. */
  CLAIMS_OTHER_RUN,
  /** A party says that it will not contribute, to one that waits for it. */
  DECLINES_FALSELY,
  /** A party sends an answer or a statement of its ledger that it gave before. */
  REMEMBERS_OLD,
  /** The coordinator gives an order again, to some or to all. */
  REPLAYS_ORDER,
  /** The coordinator orders one request twice, with different signing sets. */
  ORDERS_TWICE,
  /** The coordinator orders another intent under a request id that was used. */
  ORDERS_OTHER_INTENT,
  /** The coordinator gives different orders of one request to different parties. */
  EQUIVOCATES_ORDER,
  /** The coordinator orders an intent that no requester has signed. */
  FORGES_INTENT,
  /** The coordinator orders an intent that its requester has signed and may not. */
  ORDERS_FORBIDDEN,
  /** The coordinator orders a signature in the epoch before the latest, or the one after it. */
  ORDERS_OTHER_EPOCH,
  /** The coordinator cancels a session that somebody waits for. */
  CANCELS,
  /** The coordinator keeps an order from a party of its signing set. */
  ORDERS_SOME,
  /** The coordinator answers a statement of a ledger as if it remembered nothing. */
  FORGETS_LEDGER,
  /** The coordinator orders one presignature for two requests. */
  SPENDS_TWICE;

  String label() {
    return "lie " + name();
  }
}
