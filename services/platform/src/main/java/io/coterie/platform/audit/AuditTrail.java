package io.coterie.platform.audit;

import java.time.Clock;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * The append-only, hash-chained record of what a service decided. Nobody can change, drop, insert
 * or reorder a record without changing every later hash; cutting off the end shows when the head
 * was noted elsewhere. Thread-safe; one writer a trail.
 */
public final class AuditTrail {
  private static final int PAGE = 500;

  /** How a chain looks. */
  public sealed interface Verification {
    /**
     * Every link holds.
     *
     * @param records how many there have been
     * @param head hash of the last one (of the trail's name if there is none), 32 bytes, to be
     *     noted elsewhere
     */
    record Intact(long records, byte[] head) implements Verification {}

    /**
     * The chain is broken.
     *
     * @param sequence where a good record was expected
     */
    record Broken(long sequence, String problem) implements Verification {}
  }

  private final AuditStore store;
  private final Clock clock;
  private final byte[] genesis;
  private long sequence;
  private byte[] head;

  /** After a failed append the record may or may not be there. */
  private boolean endUnknown;

  /**
   * Opens a trail at its end.
   *
   * @param name of the trail, for example {@code signer/alpha}: the same for its whole life
   */
  public AuditTrail(String name, AuditStore store, Clock clock) {
    this.store = store;
    this.clock = clock;
    this.genesis = AuditRecord.genesis(name);
    this.head = genesis;
    readEnd();
  }

  private void readEnd() {
    Optional<AuditRecord> last = store.last();
    sequence = last.map(AuditRecord::sequence).orElse(0L);
    head = last.map(AuditRecord::hash).orElse(genesis);
  }

  /**
   * Appends an event; durable when this returns. When it throws, the storage's own failure decides
   * whether it was recorded.
   */
  public synchronized AuditRecord append(AuditEvent event) {
    if (endUnknown) {
      readEnd();
    }
    endUnknown = true;
    AuditRecord next =
        AuditRecord.link(sequence + 1, clock.instant().truncatedTo(ChronoUnit.MILLIS), event, head);
    store.append(next);
    sequence = next.sequence();
    head = next.hash();
    endUnknown = false;
    return next;
  }

  /** Reads what is kept of the chain and checks every link. */
  public Verification verify() {
    Optional<AuditStore.Beginning> beginning = store.beginning();
    long expected = beginning.map(AuditStore.Beginning::sequence).orElse(0L) + 1;
    byte[] previous = beginning.map(AuditStore.Beginning::hash).orElse(genesis);
    while (true) {
      List<AuditRecord> page = store.read(expected, PAGE);
      if (page.isEmpty()) {
        return new Verification.Intact(expected - 1, previous);
      }
      for (AuditRecord record : page) {
        if (record.sequence() != expected) {
          return new Verification.Broken(expected, "missing, found " + record.sequence());
        }
        if (!Arrays.equals(record.previousHash(), previous)) {
          return new Verification.Broken(expected, "does not follow the record before");
        }
        if (!record.isConsistent()) {
          return new Verification.Broken(expected, "content does not match its hash");
        }
        previous = record.hash();
        expected++;
      }
    }
  }
}
