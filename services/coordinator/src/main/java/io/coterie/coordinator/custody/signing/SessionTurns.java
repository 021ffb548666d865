package io.coterie.coordinator.custody.signing;

import io.coterie.coordinator.session.ReplicaTime;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * How many signing sessions run at once, and whose is next. More than a party can do at a time does
 * not make it faster: each session takes longer then, until none ends in time and all the work is
 * for nothing.
 *
 * <p>The capacity of each party is found out as TCP finds out that of a path (RFC 5681): its window
 * doubles from a low start until sessions that wait for it run out of time, is halved then, once
 * for all that ran at that moment, and grows by one from there each time that so many sessions have
 * ended well. A session takes a place in the window of each of its parties; so a party that is
 * silent, or only pretends to be slow, keeps sessions without it from nothing. A part of each
 * window, and no more, is for requests that nobody waits for.
 *
 * <p>A free place goes to the requester that holds the smallest part of the windows that others
 * wait for too: dominant resource fairness (Ghodsi and others, NSDI 2011), counted where places are
 * scarce. Among requests of one requester the oldest is first. Thread-safe.
 */
public final class SessionTurns {
  private static final Comparator<Waiter> AGE =
      Comparator.<Waiter>comparingLong(w -> w.sinceNanos).thenComparingLong(w -> w.number);

  private static final long LOOK_NANOS = 1_000_000_000L;

  private final int most;
  private final ReplicaTime time;

  /** For differences of ages: a clock may overflow. */
  private final long beganNanos;

  private final TurnPlaces all;
  private final Map<Integer, TurnPlaces> windows = new HashMap<>();

  /** Requests that find a place at the same moments wait in one line, the oldest first. */
  private final Map<Line, TreeSet<Waiter>> waiting = new HashMap<>();

  private long waiters;

  /**
   * @param most sessions at once, however well it goes
   */
  public SessionTurns(int most, ReplicaTime time) {
    this.most = most;
    this.time = time;
    this.beganNanos = time.nanos();
    this.all = TurnPlaces.ofReplica(most);
  }

  /** The requests that wait for the same places with the same right. */
  private record Line(String requester, List<Integer> parties, boolean attended) {}

  private static final class Waiter {
    final CompletableFuture<Void> granted = new CompletableFuture<>();
    final long sinceNanos;
    final long number;
    final Map<Integer, TurnPlaces> windows;
    Line line;
    boolean hasTurn;

    Waiter(long sinceNanos, long number, Map<Integer, TurnPlaces> windows, Line line) {
      this.sinceNanos = sinceNanos;
      this.number = number;
      this.windows = windows;
      this.line = line;
    }

    String requester() {
      return line.requester();
    }

    boolean toBeAside() {
      return !line.attended();
    }
  }

  /** The right to run one session. Ends when it is closed. */
  final class Turn implements AutoCloseable {
    private final Waiter waiter;
    private final Map<Integer, Integer> halvings = new HashMap<>();

    private Turn(Waiter waiter) {
      this.waiter = waiter;
      waiter.windows.forEach((party, window) -> halvings.put(party, window.halvings()));
    }

    /** The session has ended as it should. */
    void succeeded() {
      grow(waiter.windows.values());
    }

    /**
     * The session has run out of time, or parties had too much to do.
     *
     * @param slow whom it has waited for; if none, all of its parties
     */
    void overloaded(Collection<Integer> slow) {
      shrink(this, slow);
    }

    @Override
    public void close() {
      end(waiter);
    }
  }

  /**
   * Waits for a turn.
   *
   * @param requester whose request it is
   * @param sinceNanos when the request came, by {@link ReplicaTime#nanos()}
   * @param parties of the session
   * @param attended whether somebody waits for the request
   * @param over whether there is nothing to wait for any more
   * @return empty if it was over first
   */
  Optional<Turn> await(
      String requester,
      long sinceNanos,
      List<Integer> parties,
      BooleanSupplier attended,
      BooleanSupplier over)
      throws InterruptedException {
    Waiter waiter =
        join(sinceNanos - beganNanos, new Line(requester, parties, attended.getAsBoolean()));
    Optional<Turn> turn = Optional.empty();
    try {
      while (turn.isEmpty() && !over.getAsBoolean()) {
        if (time.await(waiter.granted, LOOK_NANOS)) {
          turn = Optional.of(take(waiter));
        } else {
          again(waiter, attended.getAsBoolean());
        }
      }
      return turn;
    } finally {
      if (turn.isEmpty()) {
        leave(waiter);
      }
    }
  }

  private synchronized Waiter join(long sinceNanos, Line line) {
    Map<Integer, TurnPlaces> own = new HashMap<>();
    for (int party : line.parties()) {
      own.put(party, windows.computeIfAbsent(party, _ -> TurnPlaces.ofParty(most)));
    }
    Waiter waiter = new Waiter(sinceNanos, waiters++, own, line);
    enter(waiter);
    own.values().forEach(window -> window.joined(waiter.requester()));
    all.joined(waiter.requester());
    give();
    return waiter;
  }

  private void enter(Waiter waiter) {
    waiting.computeIfAbsent(waiter.line, _ -> new TreeSet<>(AGE)).add(waiter);
  }

  private void exit(Waiter waiter) {
    TreeSet<Waiter> line = waiting.get(waiter.line);
    if (line != null && line.remove(waiter) && line.isEmpty()) {
      waiting.remove(waiter.line);
    }
  }

  private synchronized void again(Waiter waiter, boolean attended) {
    if (!waiter.hasTurn && waiter.line.attended() != attended) {
      exit(waiter);
      waiter.line = new Line(waiter.requester(), waiter.line.parties(), attended);
      enter(waiter);
    }
    give();
  }

  private synchronized Turn take(Waiter waiter) {
    return new Turn(waiter);
  }

  private synchronized void leave(Waiter waiter) {
    if (waiter.hasTurn) {
      end(waiter);
    } else {
      exit(waiter);
      waiter.windows.values().forEach(window -> window.left(waiter.requester()));
      all.left(waiter.requester());
      give();
    }
  }

  private synchronized void end(Waiter waiter) {
    String requester = waiter.requester();
    waiter.windows.values().forEach(window -> window.giveBack(requester, waiter.toBeAside()));
    all.giveBack(requester, false);
    give();
  }

  private void give() {
    Waiter next = next();
    while (next != null) {
      exit(next);
      String requester = next.requester();
      for (TurnPlaces window : next.windows.values()) {
        window.left(requester);
        window.take(requester, next.toBeAside());
      }
      all.left(requester);
      all.take(requester, false);
      next.hasTurn = true;
      next.granted.complete(null);
      next = next();
    }
  }

  /** The request that gets a turn now; null if none may. */
  private @Nullable Waiter next() {
    Waiter best = null;
    double least = 0;
    for (TreeSet<Waiter> line : waiting.values()) {
      Waiter oldest = line.first();
      if (!hasRoom(oldest)) {
        continue;
      }
      double share = contestedShare(oldest);
      if (best == null || share < least || (share == least && AGE.compare(oldest, best) < 0)) {
        best = oldest;
        least = share;
      }
    }
    return best;
  }

  private boolean hasRoom(Waiter waiter) {
    return all.hasRoom(waiter.requester(), false)
        && waiter.windows.values().stream()
            .allMatch(window -> window.hasRoom(waiter.requester(), waiter.toBeAside()));
  }

  private double contestedShare(Waiter waiter) {
    double largest = all.contestedShare(waiter.requester());
    for (TurnPlaces window : waiter.windows.values()) {
      largest = Math.max(largest, window.contestedShare(waiter.requester()));
    }
    return largest;
  }

  private synchronized void grow(Collection<TurnPlaces> parties) {
    parties.forEach(TurnPlaces::grow);
    give();
  }

  private synchronized void shrink(Turn turn, Collection<Integer> slow) {
    turn.waiter.windows.forEach(
        (party, window) -> {
          boolean late = slow.isEmpty() || slow.contains(party);
          if (late && turn.halvings.getOrDefault(party, -1) == window.halvings()) {
            window.shrink();
          }
        });
  }

  /** How many sessions may run at once now with the slowest party. */
  synchronized int limit() {
    return windows.values().stream()
        .mapToInt(TurnPlaces::size)
        .min()
        .orElse(TurnPlaces.ofParty(most).size());
  }

  /** Whether each of these parties could do more than it has to do now. */
  synchronized boolean hasRoom(Collection<Integer> parties) {
    return !all.isBusy()
        && parties.stream()
            .map(windows::get)
            .noneMatch(window -> window != null && window.isBusy());
  }

  /** Whether none of these parties has been late with what it was given so far, or lately. */
  synchronized boolean keepUp(Collection<Integer> parties) {
    return parties.stream()
        .map(windows::get)
        .noneMatch(window -> window != null && window.isSlowed());
  }

  /** How many sessions run. */
  synchronized int running() {
    return all.running();
  }

  /** How many requests wait for their turn. */
  synchronized int waiting() {
    return waiting.values().stream().mapToInt(TreeSet::size).sum();
  }

  /** How many requests of that requester wait for their turn. */
  synchronized int waiting(String requester) {
    return waiting.entrySet().stream()
        .filter(line -> line.getKey().requester().equals(requester))
        .mapToInt(line -> line.getValue().size())
        .sum();
  }
}
