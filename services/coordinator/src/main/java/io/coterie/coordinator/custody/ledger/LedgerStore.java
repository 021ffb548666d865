package io.coterie.coordinator.custody.ledger;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.party.v1.ClaimCount;

/** How far the ledger of each party has come, for all replicas. Never less than before. */
public interface LedgerStore {

  /**
   * Remembers a statement if it is later than the one that is remembered of the same party and
   * evidence key, as {@link LedgerPosition#against} decides, or the first one. Concurrent calls
   * count one after another.
   *
   * @param position that the statement states
   * @param statement of a party, with a signature that was verified
   * @param evidenceKey of the party, 32 bytes: one that has enrolled anew begins a new ledger
   * @return as it is remembered afterwards; durable
   * @throws StoreUnavailableException if it is perhaps not remembered
   */
  Remembered remember(LedgerPosition position, ClaimCount statement, ByteString evidenceKey);

  /**
   * The ledger of a party, in its own statements.
   *
   * @param position the latest one
   * @param statement the same, signed
   * @param before the last one of the start before, as {@code ClaimCount}; empty if there was none
   */
  record Remembered(LedgerPosition position, ByteString statement, ByteString before) {

    /** The last statement of the start before, once a later position has taken the place. */
    public ByteString beforeNext(LedgerPosition next) {
      return next.mark().equals(position.mark()) ? before : statement;
    }
  }
}
