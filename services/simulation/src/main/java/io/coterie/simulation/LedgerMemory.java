package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.party.v1.ClaimCount;
import java.util.HashMap;
import java.util.Map;

/** The memory of all replicas of how far the ledgers of parties have come. */
final class LedgerMemory implements LedgerStore {
  private final Coverage coverage;
  private final Map<ByteString, Remembered> ledgers = new HashMap<>();
  private boolean forgets;

  /**
   * @param forgets whether it answers as if it remembered nothing
   */
  LedgerMemory(Coverage coverage, boolean forgets) {
    this.coverage = coverage;
    this.forgets = forgets;
  }

  /** From now on it remembers. */
  void remember() {
    forgets = false;
  }

  /** Takes over all that another one remembers. */
  void learn(LedgerMemory other) {
    ledgers.putAll(other.ledgers);
  }

  @Override
  public Remembered remember(
      LedgerPosition position, ClaimCount statement, ByteString evidenceKey) {
    if (forgets) {
      coverage.count(Lie.FORGETS_LEDGER.label());
      return new Remembered(position, statement.toByteString(), ByteString.EMPTY);
    }
    Remembered latest = ledgers.get(evidenceKey);
    if (latest == null) {
      latest = new Remembered(position, statement.toByteString(), ByteString.EMPTY);
    } else if (position.against(latest.position()) == LedgerPosition.Judgement.LATER) {
      latest = new Remembered(position, statement.toByteString(), latest.beforeNext(position));
    }
    ledgers.put(evidenceKey, latest);
    return latest;
  }
}
