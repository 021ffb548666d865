package io.coterie.coordinator.session;

import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.trust.Member;

/** Remembers how far the ledgers of parties have come, and tells them. */
@FunctionalInterface
public interface LedgerKeeper {

  /**
   * A party states how far its ledger has come; it gets its answer, soon. Does not block.
   *
   * @param party that the channel has proved as the sender
   * @param count not checked yet
   */
  void stated(Member party, ClaimCount count);
}
