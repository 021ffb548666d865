package io.coterie.coordinator.storage.memory;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.coordinator.custody.request.ReplicaStore;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** One database in memory, as several replicas see it. Thread-safe: each call is a transaction. */
public final class MemoryDatabase {
  /**
   * A commit that does not wait is on the disk after that: three times {@code wal_writer_delay}.
   */
  public static final Duration WRITTEN_AFTER = Duration.ofMillis(600);

  /**
   * A row that is work of a replica until it has ended.
   *
   * @param <R> the record in it
   */
  static final class Row<R> {
    R record;

    /** Name of the replica; null if it is the work of none. */
    @Nullable String worker;

    Row(R record, @Nullable String worker) {
      this.record = record;
      this.worker = worker;
    }
  }

  final Map<Long, Row<KeyRecord>> keys = new TreeMap<>();
  final Map<Long, Row<Renewal>> renewals = new TreeMap<>();
  final Map<UUID, Row<SigningRecord>> signings = new LinkedHashMap<>();
  final Map<String, Set<Integer>> exclusions = new TreeMap<>();
  final Map<String, Set<Integer>> behind = new TreeMap<>();
  final Map<ByteString, LedgerStore.Remembered> ledgers = new LinkedHashMap<>();

  /**
   * When a replica was seen.
   *
   * @param sinceNanos since then without interruption
   */
  private record Presence(long lastNanos, long sinceNanos) {}

  private final Map<String, Presence> presences = new HashMap<>();

  /** Whether a statement in progress has the row of a record locked. */
  private Predicate<Object> locked = _ -> false;

  /**
   * Something that a transaction has done whose commit does not wait for the disk.
   *
   * @param undo takes it back
   */
  private record Unwritten(long nanos, Runnable undo) {}

  /** In the order of the commits; those of the last {@link #WRITTEN_AFTER} alone. */
  private final Deque<Unwritten> unwritten = new ArrayDeque<>();

  private final LongSupplier nanoTime;
  private final Duration goneAfter;
  private long ids;

  /**
   * An empty database.
   *
   * @param nanoTime monotonic clock, ns
   * @param goneAfter how long a replica counts as there after it was seen
   */
  public MemoryDatabase(LongSupplier nanoTime, Duration goneAfter) {
    this.nanoTime = nanoTime;
    this.goneAfter = goneAfter;
  }

  /** Keys, for the replica of that name. */
  public KeyStore keys(String replica) {
    return new MemoryKeyStore(this, replica);
  }

  /** Renewals, for the replica of that name. */
  public RenewalStore renewals(String replica) {
    return new MemoryRenewalStore(this, replica);
  }

  /** Signings, for the replica of that name. */
  public SigningStore signings(String replica) {
    return new MemorySigningStore(this, replica);
  }

  /** The replicas that are there, for the one of that name. */
  public ReplicaStore presence(String replica) {
    return new MemoryReplicaStore(this, replica);
  }

  /** The memory of the ledgers of parties. */
  public LedgerStore ledgers() {
    return new MemoryLedgerStore(this);
  }

  /** A commit that does not wait for the disk. */
  void unwritten(Runnable undo) {
    long now = nanoTime.getAsLong();
    while (!unwritten.isEmpty() && now - unwritten.getFirst().nanos() > WRITTEN_AFTER.toNanos()) {
      unwritten.removeFirst();
    }
    unwritten.addLast(new Unwritten(now, undo));
  }

  /** A commit that waits for the disk. Those before it are on the disk then, too. */
  void written() {
    unwritten.clear();
  }

  /**
   * Crashes and is there again at once. The commits of last that no disk has are as if they had
   * never been.
   *
   * @param sinceNanos commits until then are on the disk, ns
   * @return how many commits are lost
   */
  public synchronized int crash(long sinceNanos) {
    int lost = 0;
    while (!unwritten.isEmpty() && unwritten.getLast().nanos() - sinceNanos > 0) {
      unwritten.removeLast().undo().run();
      lost++;
    }
    unwritten.clear();
    return lost;
  }

  long nextId() {
    return ++ids;
  }

  /** A replica shows that it is there; returns how many are. */
  synchronized int seen(String replica) {
    long now = nanoTime.getAsLong();
    Presence known = presences.get(replica);
    unwritten(() -> put(replica, known));
    presences.merge(
        replica,
        new Presence(now, now),
        (before, first) ->
            now - before.lastNanos >= 0
                    && now - before.lastNanos < ReplicaStore.interruption(goneAfter).toNanos()
                ? new Presence(now, before.sinceNanos)
                : first);
    return (int)
        presences.values().stream()
            .filter(presence -> now - presence.lastNanos < goneAfter.toNanos())
            .count();
  }

  synchronized void left(String replica) {
    Presence known = presences.remove(replica);
    unwritten(() -> put(replica, known));
  }

  private void put(String replica, @Nullable Presence presence) {
    if (presence == null) {
      presences.remove(replica);
    } else {
      presences.put(replica, presence);
    }
  }

  private boolean isFree(Row<?> row, String replica, boolean own) {
    String worker = row.worker;
    return worker == null || (own && worker.equals(replica)) || isGone(worker, replica);
  }

  /** Whether a replica has left, or was not seen for long while the one that asks was. */
  private boolean isGone(String worker, String replica) {
    Presence other = presences.get(worker);
    Presence self = presences.get(replica);
    return other == null
        || (self != null
            && self.lastNanos - self.sinceNanos >= goneAfter.toNanos()
            && Math.abs(self.lastNanos - other.lastNanos) > goneAfter.toNanos());
  }

  <R> Optional<R> take(@Nullable Row<R> row, boolean ended, String replica) {
    if (row == null || ended || !isFree(row, replica, true)) {
      return Optional.empty();
    }
    row.worker = replica;
    return Optional.of(row.record);
  }

  /** Has statements that skip locked rows skip these, as {@code for update skip locked} does. */
  public synchronized void skip(Predicate<Object> rows) {
    locked = rows;
  }

  <R> List<R> takeAll(Collection<Row<R>> rows, Predicate<R> running, String replica, boolean own) {
    List<R> taken = new ArrayList<>();
    for (Row<R> row : rows) {
      if (running.test(row.record) && isFree(row, replica, own) && !locked.test(row.record)) {
        row.worker = replica;
        taken.add(row.record);
      }
    }
    return taken;
  }
}
