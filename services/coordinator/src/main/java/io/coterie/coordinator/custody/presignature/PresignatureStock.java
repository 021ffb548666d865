package io.coterie.coordinator.custody.presignature;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.key.KeyObserver;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.SessionId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiPredicate;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The presignatures that are ready, by combination. It only keeps the books: the parties hold the
 * presignatures themselves. Books and presignatures are in memory only, so a new process knows of
 * none. Thread-safe.
 *
 * <p>Presignatures are made on demand: a signing makes its combination known, and each further one
 * doubles the number that is kept ready. A key that is used once at each of many derivation paths
 * costs little, and a busy one soon has {@link Limits#target}.
 */
public final class PresignatureStock implements KeyObserver {
  /**
   * Presignatures wanted after the first signing of a combination. Each use of one adds one, and
   * each signing that found none doubles the number.
   */
  private static final int FIRST_WANTED = 4;

  private static final Duration FIRST_PAUSE = Duration.ofMillis(250);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(30);

  /**
   * Bounds.
   *
   * @param target ready presignatures wanted for one combination that is in use; it may lack fewer
   *     than one session makes. 0: none are made
   * @param targetBlocks the same in blocks of messages, for presignatures that are for messages of
   *     one length; one presignature is wanted even if it has more
   * @param lowMark below so many, they are made although signings are waiting, and also singly
   * @param maxTotal ready and in the making, over all combinations
   * @param maxCombinations that are remembered; beyond, the one unused for longest is forgotten
   * @param maxAge after which one is not used any more; less than at the parties
   * @param idleTime after which an unused combination is not filled any more
   * @param yieldTo signings being worked on from which on the parties count as busy: only what is
   *     nearly used up is made then, and signings wait for it
   */
  public record Limits(
      int target,
      int targetBlocks,
      int lowMark,
      int maxTotal,
      int maxCombinations,
      Duration maxAge,
      Duration idleTime,
      int yieldTo) {
    /**
     * Whether the parties are busy.
     *
     * @param signings being worked on, or sessions of signings that run: those of requests that
     *     wait for presignatures do not
     */
    public boolean isBusy(int signings) {
      return signings >= yieldTo;
    }
  }

  /**
   * The only use of a presignature.
   *
   * @param signingSet party ids in ascending order
   * @param target which key signs
   * @param messageBlocks of the messages that are signed; 0 if they may have any length
   */
  public record Combination(
      String key, int epoch, List<Integer> signingSet, KeyTarget target, int messageBlocks) {
    public Combination {
      signingSet = List.copyOf(signingSet);
    }

    /** Whether two parties prepare it with circuits, which takes each half a second and more. */
    boolean isOfPair() {
      return messageBlocks > 0;
    }
  }

  /**
   * A presignature that all parties of its signing set hold.
   *
   * @param id 32 bytes
   * @param session that made it
   */
  public record Presignature(Combination combination, ByteString id, SessionId session) {}

  /** Why presignatures were abandoned unused: labels of a metric. */
  public enum Dropped {
    /** A party does not hold its share any more: its process is another one. */
    UNKNOWN,
    /** The key has new shares. */
    EPOCH,
    /** A party may not take part in signatures of the key any more. */
    EXCLUDED,
    /** A party cannot be reached. */
    UNREACHABLE,
    /** Too old. */
    EXPIRED,
    /** Too many combinations are in use. */
    CROWDED,
    /** The combination of parties was abandoned while the presignature was made. */
    LATE,
    /** This coordinator stops. */
    STOPPED
  }

  /**
   * The use of a presignature by any signing set.
   *
   * @param target which key signs
   * @param messageBlocks of the messages that are signed; 0 if they may have any length
   */
  public record Purpose(String key, int epoch, KeyTarget target, int messageBlocks) {
    /** That of a combination. */
    public static Purpose of(Combination combination) {
      return new Purpose(
          combination.key(),
          combination.epoch(),
          combination.target(),
          combination.messageBlocks());
    }
  }

  private final Map<Purpose, Map<List<Integer>, Shelf>> shelves = new HashMap<>();
  private final Limits limits;
  private final CoordinatorMetrics metrics;
  private final LongSupplier nanoTime;
  private int ready;
  private int making;

  /** Null before it is known. */
  private @Nullable Set<Integer> reachable;

  private Runnable demand = () -> {};
  private Consumer<List<Presignature>> abandoned = dropped -> {};

  /**
   * An empty stock.
   *
   * @param nanoTime monotonic clock, ns
   */
  public PresignatureStock(Limits limits, CoordinatorMetrics metrics, LongSupplier nanoTime) {
    this.limits = limits;
    this.metrics = metrics;
    this.nanoTime = nanoTime;
    metrics.watchPresignatures(this::ready, this::making, this::wanted);
  }

  /**
   * Sets the listeners. Neither may block.
   *
   * @param demand there may be something to make
   * @param abandoned these will not be used
   */
  synchronized void listen(Runnable demand, Consumer<List<Presignature>> abandoned) {
    this.demand = demand;
    this.abandoned = abandoned;
  }

  /**
   * Takes a presignature out for ever, whatever becomes of the signature; from the signing set that
   * has most of them.
   *
   * @param usable whether that signing set would do now
   */
  public synchronized Optional<Presignature> take(
      Purpose purpose, Predicate<List<Integer>> usable) {
    if (limits.target() == 0) {
      return Optional.empty();
    }
    expire();
    Optional<Shelf> fullest =
        shelves.getOrDefault(purpose, Map.of()).values().stream()
            .filter(s -> !s.ready.isEmpty() && usable.test(s.combination.signingSet()))
            .max(Comparator.comparingInt(s -> s.ready.size()));
    if (fullest.isEmpty()) {
      metrics.presignatureMissed();
      return Optional.empty();
    }
    Shelf shelf = fullest.get();
    Presignature taken = shelf.ready.removeFirst().presignature();
    ready--;
    metrics.presignatureUsed();
    use(shelf, 1 + shelf.wanted);
    return Optional.of(taken);
  }

  /**
   * A signature was made without presignature: later ones of the same kind shall find one.
   *
   * @param batch most presignatures that one session of the scheme makes
   */
  public synchronized void want(Combination combination, int batch) {
    if (limits.target() == 0) {
      return;
    }
    Shelf shelf =
        shelves
            .computeIfAbsent(Purpose.of(combination), p -> new HashMap<>())
            .computeIfAbsent(
                combination.signingSet(), s -> new Shelf(combination, batch, nanoTime.getAsLong()));
    use(shelf, 2 * shelf.wanted);
    if (combinations() > limits.maxCombinations()) {
      shelves.values().stream()
          .flatMap(sets -> sets.values().stream())
          .filter(s -> s != shelf)
          .min(Comparator.comparingLong(s -> s.usedNanos - shelf.usedNanos))
          .ifPresent(oldest -> remove(s -> s == oldest, Dropped.CROWDED));
    }
  }

  /** Bounds of this stock. */
  public Limits limits() {
    return limits;
  }

  /**
   * Reserves a presignature that is being made, if one is to spare. It is used up like one that was
   * {@linkplain #take taken}.
   *
   * @param usable whether that signing set would do now
   */
  public synchronized Optional<Promise> promise(Purpose purpose, Predicate<List<Integer>> usable) {
    Optional<Promise> promise =
        shelves.getOrDefault(purpose, Map.of()).values().stream()
            .filter(s -> s.making > s.promised.size() && usable.test(s.combination.signingSet()))
            .max(Comparator.comparingInt(s -> s.making - s.promised.size()))
            .map(s -> new Promise(this, s));
    promise.ifPresent(
        p -> {
          p.shelf().promised.addLast(p);
          use(p.shelf(), 1 + p.shelf().wanted);
        });
    return promise;
  }

  /** Waits no longer: the presignature, if it was made at this very moment. */
  synchronized Optional<Presignature> abandon(Promise promise) {
    promise.shelf().promised.remove(promise);
    return promise.made().getNow(Optional.empty());
  }

  private void use(Shelf shelf, int wanted) {
    shelf.usedNanos = nanoTime.getAsLong();
    shelf.wanted = Math.min(most(shelf.combination), Math.max(FIRST_WANTED, wanted));
    // The signature that takes one has not begun yet: work that must wait for it is seen later.
    if (!shelf.takesLong() || isLow(shelf)) {
      demand.run();
    }
  }

  private int most(Combination combination) {
    int blocks = combination.messageBlocks();
    return blocks == 0
        ? limits.target()
        : Math.min(limits.target(), Math.max(1, limits.targetBlocks() / blocks));
  }

  private int combinations() {
    return shelves.values().stream().mapToInt(Map::size).sum();
  }

  /** A place for presignatures that one session is making. */
  static final class Place {
    private final Shelf shelf;
    private final int count;

    private Place(Shelf shelf, int count) {
      this.shelf = shelf;
      this.count = count;
    }

    Combination combination() {
      return shelf.combination;
    }

    /** How many there is room for. */
    int count() {
      return count;
    }
  }

  /**
   * A place to make presignatures in next: for the emptiest combination, as many as one session
   * makes. The caller makes them and then calls {@link #made} or {@link #failed}, once.
   *
   * <p>A session costs the parties about as much for one presignature as for several. So above the
   * low mark none is made for fewer than it can make, and below not only up to the mark.
   *
   * <p>Work that takes the parties' processors for long waits until nothing is signed, unless none
   * is left.
   *
   * <p>Of several that are as empty, the one that has failed least is next: those that nothing
   * comes of keep no other one waiting.
   *
   * @param signings being worked on, as {@link Limits#isBusy} takes them: while the parties are
   *     busy only what is nearly used up is made
   * @param hasRoom whether this can be made now; true with it if so few are left that signings will
   *     soon find none
   */
  synchronized Optional<Place> next(int signings, BiPredicate<Combination, Boolean> hasRoom) {
    expire();
    int room = limits.maxTotal() - ready - making;
    if (room <= 0) {
      return Optional.empty();
    }
    long now = nanoTime.getAsLong();
    Optional<Shelf> emptiest =
        shelves.values().stream()
            .flatMap(sets -> sets.values().stream())
            .filter(s -> isLow(s) || !mustWait(s, signings) && s.lacksASession())
            .filter(s -> s.pausedUntilNanos - now <= 0)
            .filter(s -> reachable == null || reachable.containsAll(s.combination.signingSet()))
            // After a failure one at a time, so that a silent party does not take all places. So
            // is what takes a party long.
            .filter(s -> s.making == 0 || s.failures == 0 && !s.takesLong())
            .filter(s -> now - s.usedNanos < limits.idleTime().toNanos())
            .filter(s -> hasRoom.test(s.combination, isLow(s)))
            .min(Comparator.comparingDouble(Shelf::filled).thenComparingInt(s -> s.failures));
    return emptiest.map(
        s -> {
          int count = Math.min(room, Math.min(s.batch, s.wanted - s.stock()));
          s.making += count;
          making += count;
          return new Place(s, count);
        });
  }

  private boolean isLow(Shelf shelf) {
    return shelf.takesLong()
        ? shelf.stock() == 0
        : shelf.stock() < Math.min(shelf.wanted, limits.lowMark());
  }

  private boolean mustWait(Shelf shelf, int signings) {
    return shelf.takesLong() ? signings > 0 : limits.isBusy(signings);
  }

  /**
   * All parties hold their shares.
   *
   * @param ids {@link Place#count} of them
   */
  synchronized void made(Place place, List<ByteString> ids, SessionId session) {
    making -= place.count;
    place.shelf.making -= place.count;
    place.shelf.failures = 0;
    metrics.presignaturesMade(ids.size());
    List<Presignature> made =
        ids.stream().map(id -> new Presignature(place.combination(), id, session)).toList();
    if (!holds(place.shelf)) {
      tell(made, Dropped.LATE);
      return;
    }
    // Of one age, so that the rest of a session is abandoned as a whole: the parties are told the
    // session.
    long now = nanoTime.getAsLong();
    for (Presignature presignature : made) {
      Promise promise = place.shelf.promised.pollFirst();
      if (promise == null) {
        place.shelf.ready.addLast(new Shelf.Ready(presignature, now));
        ready++;
      } else {
        metrics.presignatureUsed();
        promise.made().complete(Optional.of(presignature));
      }
    }
    place.shelf.keepPromises(place.shelf.making);
  }

  /** They were not made; the next attempt comes after a pause that grows. */
  synchronized void failed(Place place) {
    making -= place.count;
    place.shelf.making -= place.count;
    place.shelf.keepPromises(place.shelf.making);
    long pause =
        Math.min(
            LONGEST_PAUSE.toNanos(), FIRST_PAUSE.toNanos() << Math.min(place.shelf.failures++, 10));
    place.shelf.pausedUntilNanos = nanoTime.getAsLong() + pause;
  }

  /** Whether the shelf is still in use; a combination that is wanted again has another one. */
  private boolean holds(Shelf shelf) {
    return shelves
            .getOrDefault(Purpose.of(shelf.combination), Map.of())
            .get(shelf.combination.signingSet())
        == shelf;
  }

  /**
   * A party does not know a presignature that it had made: it has started again, and knows none of
   * before. But a pair that has prepared a signature may have set up anew with that key alone,
   * which either of the two can have come about: it says nothing of what they have made with
   * others.
   */
  public synchronized void unknown(int party, Combination combination) {
    boolean ofPair = combination.isOfPair();
    empty(
        c ->
            ofPair
                ? c.key().equals(combination.key())
                    && c.signingSet().equals(combination.signingSet())
                : c.signingSet().contains(party),
        Dropped.UNKNOWN);
  }

  /** The parties of a key have new shares, or none can be made with them: nothing is wanted. */
  @Override
  public synchronized void renewed(String key) {
    remove(s -> s.combination.key().equals(key), Dropped.EPOCH);
  }

  /** A party may not sign with that key any more. */
  @Override
  public synchronized void excluded(String key, int party) {
    remove(
        s -> s.combination.key().equals(key) && s.combination.signingSet().contains(party),
        Dropped.EXCLUDED);
  }

  /** These parties would not make presignatures together: not until they sign together again. */
  public synchronized void refused(Combination combination) {
    remove(s -> s.combination.equals(combination), Dropped.EXCLUDED);
  }

  /** Notes which parties can be reached, until the next call. */
  synchronized void reachable(Set<Integer> parties) {
    reachable = Set.copyOf(parties);
    empty(c -> !parties.containsAll(c.signingSet()), Dropped.UNREACHABLE);
  }

  /** Drops all presignatures, because this process signs nothing more. */
  synchronized void close() {
    remove(s -> true, Dropped.STOPPED);
  }

  private void expire() {
    long now = nanoTime.getAsLong();
    List<Presignature> expired = new ArrayList<>();
    for (Iterator<Map<List<Integer>, Shelf>> purposes = shelves.values().iterator();
        purposes.hasNext(); ) {
      Map<List<Integer>, Shelf> sets = purposes.next();
      for (Iterator<Shelf> all = sets.values().iterator(); all.hasNext(); ) {
        Shelf shelf = all.next();
        while (!shelf.ready.isEmpty()
            && now - shelf.ready.getFirst().madeNanos() >= limits.maxAge().toNanos()) {
          expired.add(shelf.ready.removeFirst().presignature());
        }
        if (shelf.ready.isEmpty()
            && shelf.making == 0
            && now - shelf.usedNanos >= limits.idleTime().toNanos()) {
          all.remove();
        }
      }
      if (sets.isEmpty()) {
        purposes.remove();
      }
    }
    drop(expired, Dropped.EXPIRED);
  }

  /**
   * Abandons the presignatures that are ready. A few are made again, and more as they are used: a
   * party that comes back has other things to do.
   */
  private void empty(Predicate<Combination> which, Dropped reason) {
    List<Presignature> dropped = new ArrayList<>();
    for (Shelf shelf : matching(s -> which.test(s.combination))) {
      shelf.ready.forEach(r -> dropped.add(r.presignature()));
      shelf.ready.clear();
      shelf.keepPromises(0);
      shelf.wanted = Math.min(shelf.wanted, FIRST_WANTED);
    }
    drop(dropped, reason);
  }

  /** Abandons the presignatures that are ready, and the demand for more. */
  private void remove(Predicate<Shelf> which, Dropped reason) {
    List<Presignature> dropped = new ArrayList<>();
    for (Shelf shelf : matching(which)) {
      shelf.ready.forEach(r -> dropped.add(r.presignature()));
      shelf.keepPromises(0);
      Purpose purpose = Purpose.of(shelf.combination);
      Map<List<Integer>, Shelf> sets = shelves.getOrDefault(purpose, new HashMap<>());
      sets.remove(shelf.combination.signingSet());
      if (sets.isEmpty()) {
        shelves.remove(purpose);
      }
    }
    drop(dropped, reason);
  }

  private List<Shelf> matching(Predicate<Shelf> which) {
    List<Shelf> found = new ArrayList<>();
    shelves.values().forEach(sets -> sets.values().stream().filter(which).forEach(found::add));
    return found;
  }

  private void drop(List<Presignature> dropped, Dropped reason) {
    ready -= dropped.size();
    tell(dropped, reason);
  }

  private void tell(List<Presignature> dropped, Dropped reason) {
    if (!dropped.isEmpty()) {
      metrics.presignaturesDropped(reason.name(), dropped.size());
      abandoned.accept(dropped);
    }
  }

  /** Presignatures ready for use. */
  public synchronized int ready() {
    return ready;
  }

  /** Presignatures being made. */
  public synchronized int making() {
    return making;
  }

  /** Presignatures that should be ready for what is in use. */
  public synchronized int wanted() {
    long now = nanoTime.getAsLong();
    return shelves.values().stream()
        .flatMap(sets -> sets.values().stream())
        .filter(s -> now - s.usedNanos < limits.idleTime().toNanos())
        .mapToInt(s -> s.wanted)
        .sum();
  }
}
