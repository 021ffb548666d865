package io.coterie.signer.claim;

import io.coterie.signer.claim.ClaimLedger.Room;
import java.util.HashMap;
import java.util.Map;

/**
 * How much of this party's disk each requester may take. Every session leaves rows that are kept
 * for weeks, so the file is divided among requesters by the sessions that were claimed for them,
 * and one that has taken seven times as much as is free gets no more: alone it leaves an eighth,
 * and however many there are, something stays free for one that has taken little (docs/adr/0044).
 * Thread-safe.
 */
public final class DiskShares {
  private static final int TIMES_THE_FREE = 7;

  private final ClaimLedger ledger;
  private Map<String, Long> claimed;
  private long all;
  private Room room;

  /** Reads from the ledger what was claimed until now. */
  public DiskShares(ClaimLedger ledger) {
    this.ledger = ledger;
    this.claimed = new HashMap<>(ledger.claimed());
    this.all = sum(claimed);
    this.room = ledger.room();
  }

  private static long sum(Map<String, Long> claimed) {
    return claimed.values().stream().mapToLong(Long::longValue).sum();
  }

  /** Whether a requester may have one more session claimed. */
  public synchronized boolean mayClaim(String requester) {
    double own = all == 0 ? 0 : (double) room.usedBytes() * of(requester) / all;
    return own < TIMES_THE_FREE * (double) room.freeBytes();
  }

  /** A session was claimed for a requester, or for nobody: {@link ClaimLedger#NOBODY}. */
  public synchronized void claimed(String requester) {
    claimed.merge(requester, 1L, Long::sum);
    all++;
  }

  /** Looks how much is free now. Reads the disk. */
  public void look() {
    Room now = ledger.room();
    synchronized (this) {
      room = now;
    }
  }

  /**
   * Counts anew, as after old sessions were forgotten. Reads the disk. A session that is claimed
   * meanwhile may be missed until the next time.
   */
  public void recount() {
    Map<String, Long> now = new HashMap<>(ledger.claimed());
    synchronized (this) {
      claimed = now;
      all = sum(now);
    }
  }

  private long of(String requester) {
    return claimed.getOrDefault(requester, 0L);
  }
}
