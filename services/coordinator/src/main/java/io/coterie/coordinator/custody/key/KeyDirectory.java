package io.coterie.coordinator.custody.key;

import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.custody.v1.Key;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks keys up, with the parties that are excluded from their sessions.
 *
 * <p>An ACTIVE key changes with its epoch only, so the directory remembers it, and its exclusions.
 * Another replica may change both, so the directory reads a key that is in use again now and then.
 * Work on an outdated key does no harm: the parties refuse it. Thread-safe.
 */
public final class KeyDirectory {
  private static final Logger log = LoggerFactory.getLogger(KeyDirectory.class);

  /** Keys remembered; when there are more, all are read again. */
  private static final int MAX_REMEMBERED = 10_000;

  /** After this time a key in use is read again, behind its use. */
  static final Duration FRESH = Duration.ofSeconds(3);

  /**
   * A key as it was read.
   *
   * @param readAgain whether it is being read again
   */
  private record Remembered(
      KeyRecord record, Set<Integer> excluded, long readNanos, AtomicBoolean readAgain) {

    static Remembered of(KeyRecord record, Set<Integer> excluded, long readNanos) {
      return new Remembered(record, Set.copyOf(excluded), readNanos, new AtomicBoolean());
    }

    /**
     * Joins two readings: the later epoch counts, and within an epoch exclusions are only added.
     */
    Remembered and(Remembered other) {
      if (record.epoch() != other.record.epoch()) {
        return record.epoch() > other.record.epoch() ? this : other;
      }
      Set<Integer> union = new TreeSet<>(excluded);
      union.addAll(other.excluded);
      return of(other.record, union, other.readNanos);
    }
  }

  /** Counts the changes of keys that this replica made or was told of. */
  private final AtomicLong changes = new AtomicLong();

  private final ConcurrentHashMap<String, Remembered> active = new ConcurrentHashMap<>();
  private final KeyStore store;
  private final KeyObserver observer;
  private final Executor threads;
  private final Clock clock;
  private final LongSupplier nanoTime;

  /**
   * A directory that remembers nothing yet.
   *
   * @param threads starts a thread for each reading behind a use
   * @param nanoTime monotonic clock, ns
   */
  public KeyDirectory(
      KeyStore store, KeyObserver observer, Executor threads, Clock clock, LongSupplier nanoTime) {
    this.store = store;
    this.observer = observer;
    this.threads = threads;
    this.clock = clock;
    this.nanoTime = nanoTime;
  }

  /**
   * The running or successful attempt of that name, or else its last failed one; an ACTIVE one as
   * it was a few seconds ago at the latest, if it is in use.
   */
  public Optional<KeyRecord> find(String name) {
    Remembered remembered = active.get(name);
    if (remembered == null) {
      return read(name);
    }
    if (nanoTime.getAsLong() - remembered.readNanos() > FRESH.toNanos()
        && remembered.readAgain().compareAndSet(false, true)) {
      threads.execute(() -> readAgain(name, remembered));
    }
    return Optional.of(remembered.record());
  }

  /**
   * The same for an intent that names the key's last reshare, of which another replica may have
   * told the client already: the key is read again if it is remembered without that reshare.
   *
   * @param reshareEpoch as the intent names it
   */
  public Optional<KeyRecord> find(String name, int reshareEpoch) {
    Optional<KeyRecord> known = find(name);
    boolean outdated =
        known.map(KeyRecord::made).filter(made -> made.reshareEpoch() < reshareEpoch).isPresent();
    return outdated ? read(name) : known;
  }

  private void readAgain(String name, Remembered remembered) {
    try {
      read(name);
    } catch (StoreUnavailableException e) {
      log.warn("cannot read a key again: {}", e.getMessage());
    } finally {
      remembered.readAgain().set(false);
    }
  }

  /** The running or successful attempt of that name, or else its last failed one, as it is. */
  public Optional<KeyRecord> read(String name) {
    long before = changes.get();
    Optional<KeyRecord> stored = store.find(name);
    stored
        .filter(record -> record.state() == Key.State.ACTIVE)
        .ifPresent(record -> remember(record, before));
    return stored;
  }

  /**
   * Remembers a key and its exclusions.
   *
   * @param before {@link #changes} when the reading began: if it grew since then and the key was
   *     forgotten, the reading may be outdated, and the next use reads again
   */
  private void remember(KeyRecord record, long before) {
    if (active.size() >= MAX_REMEMBERED) {
      active.clear();
    }
    String name = record.name();
    Set<Integer> excluded = store.excluded(name);
    boolean[] renewed = new boolean[1];
    Set<Integer> added = new TreeSet<>();
    active.compute(
        name,
        (key, known) -> {
          Remembered read = Remembered.of(record, excluded, nanoTime.getAsLong());
          if (known == null) {
            return changes.get() == before ? read : null;
          }
          // Another replica has changed the key, or a reading that began earlier ends later.
          Remembered latest = known.and(read);
          renewed[0] = latest.record().epoch() > known.record().epoch();
          added.addAll(latest.excluded());
          added.removeAll(known.excluded());
          return latest;
        });
    if (renewed[0]) {
      observer.renewed(name);
    }
    added.forEach(party -> observer.excluded(name, party));
  }

  /** Keys in the order of their names: see {@link KeyStore#list}. */
  public List<KeyRecord> list(String afterName, Set<String> globs, int limit) {
    return store.list(afterName, globs, limit);
  }

  /** Ids of the parties that are excluded from the sessions of a key. */
  public Set<Integer> excluded(String name) {
    Remembered remembered = active.get(name);
    return remembered != null ? remembered.excluded() : store.excluded(name);
  }

  /** The same as it is stored, or as it was last read if the database does not answer. */
  public Set<Integer> excludedByNow(String name) {
    try {
      read(name);
      return excluded(name);
    } catch (StoreUnavailableException e) {
      log.warn("cannot read a key again: {}", e.getMessage());
      Remembered remembered = active.get(name);
      return remembered == null ? Set.of() : remembered.excluded();
    }
  }

  /**
   * Excludes a party from every later session of a key, until the key has new shares.
   *
   * @param cause of the abort that showed that the party deviated
   */
  public void exclude(String name, int partyId, String cause, SessionId session) {
    store.exclude(name, partyId, cause, session.bytes().toByteArray(), clock.instant());
    forget(name);
    observer.excluded(name, partyId);
    log.error(
        "party {} is excluded from key {} for {} in session {}", partyId, name, cause, session);
  }

  /**
   * The store of a party went back to an earlier state: it takes part in no session of an ECDSA key
   * whose shares are of that time.
   */
  public void wentBack(int partyId) {
    Set<String> names = store.excludeWentBack(partyId, clock.instant());
    for (String name : names) {
      forget(name);
      observer.excluded(name, partyId);
    }
    log.error("the store of party {} went back, so it is excluded from {}", partyId, names);
  }

  /**
   * Ids of the parties that {@link #wentBack} has excluded from a key, as they are stored; none if
   * the database does not answer.
   */
  public Set<Integer> wentBack(String name) {
    try {
      return store.wentBack(name);
    } catch (StoreUnavailableException e) {
      log.warn("cannot read why parties are excluded: {}", e.getMessage());
      return Set.of();
    }
  }

  /** Forgets a key: its shares are of another epoch, here or elsewhere. */
  public void renewed(String name) {
    forget(name);
    observer.renewed(name);
  }

  /** Counts before it removes: a reading that ends in between is removed, a later one not kept. */
  private void forget(String name) {
    changes.incrementAndGet();
    active.remove(name);
  }
}
