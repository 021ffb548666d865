package io.coterie.coordinator.storage.memory;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.party.v1.ClaimCount;

/** Ledgers of parties, in memory, as one replica sees them. */
final class MemoryLedgerStore implements LedgerStore {
  private final MemoryDatabase database;

  MemoryLedgerStore(MemoryDatabase database) {
    this.database = database;
  }

  @Override
  public Remembered remember(
      LedgerPosition position, ClaimCount statement, ByteString evidenceKey) {
    synchronized (database) {
      ByteString party =
          evidenceKey.concat(ByteString.copyFromUtf8(String.valueOf(statement.getParty())));
      Remembered latest = database.ledgers.get(party);
      if (latest == null || position.against(latest.position()) == LedgerPosition.Judgement.LATER) {
        ByteString before = latest == null ? ByteString.EMPTY : latest.beforeNext(position);
        latest = new Remembered(position, statement.toByteString(), before);
        database.ledgers.put(party, latest);
        database.written();
      }
      return latest;
    }
  }
}
