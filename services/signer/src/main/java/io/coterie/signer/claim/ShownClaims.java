package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** This party's memory of how far the ledgers of others, and its own, have come. */
public interface ShownClaims {
  /** The position of each peer that is remembered. */
  List<Shown> shown();

  /** Remembers the position of a peer in place of its older one; durable when it completes. */
  CompletionStage<Boolean> show(Shown shown);

  /**
   * The store of a peer went back to an earlier state: nothing multiplies with it, by any share
   * that is here now. At once in memory, for every ECDSA key until it is on disk; tried again until
   * then.
   *
   * @return the keys that this is about; completes when it is on disk
   */
  CompletionStage<List<String>> wentBack(int party);

  /**
   * This party's own ledger was at a head that it has forgotten: the same for itself, and in the
   * same transaction the ledger goes on in a new log, and no request id of before this start, or of
   * before the head was signed, is claimed any more.
   */
  CompletionStage<List<String>> wentBack(LedgerHead forgotten);

  /**
   * This party's own ledger was at a head of a log before the current one, which it has forgotten:
   * no request id of before the head was signed is claimed any more.
   */
  CompletionStage<?> forgotten(LedgerHead earlier);

  /**
   * @param statement {@code coterie.party.v1.ClaimCount} with the peer's signature
   * @param before the same of the last position at the start before; empty if there was none
   */
  record Shown(int party, LedgerPosition position, ByteString statement, ByteString before) {}
}
