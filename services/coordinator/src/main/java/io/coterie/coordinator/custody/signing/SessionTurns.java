package io.coterie.coordinator.custody.signing;

import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * How many signing sessions run at once. More than a party can do at a time does not make it
 * faster: each session takes longer then, until none ends in time and all the work is for nothing.
 *
 * <p>What each party can do is found out as TCP finds out what a path can carry (RFC 5681): its
 * window doubles from a low start until sessions that wait for it run out of time, is halved then,
 * once for all that ran at that moment, and grows by one from there each time that so many sessions
 * have ended well. A session takes a place in the window of each of its parties; so a party that is
 * silent, or only pretends to be slow, keeps sessions without it from nothing. A part of each
 * window, and no more, is for requests that nobody waits for. Thread-safe.
 */
public final class SessionTurns {
  /** One of so many is for requests that nobody waits for. */
  private static final int UNATTENDED_SHARE = 4;

  /** Where a window begins. */
  private static final int FIRST = 16;

  /** Where halving ends. */
  private static final int FEWEST = 2;

  private static final long LOOK_SECONDS = 1;

  private final int most;
  private final Map<Integer, Window> windows = new HashMap<>();
  private final TreeSet<Waiter> waiting =
      new TreeSet<>(
          Comparator.<Waiter>comparingLong(w -> w.sinceNanos).thenComparingLong(w -> w.number));
  private long waiters;
  private int running;

  /**
   * @param most sessions at once, however well it goes
   */
  public SessionTurns(int most) {
    this.most = most;
  }

  /** The number of sessions that one party can do at once, as far as is known. */
  private static final class Window {
    double size;

    /** Up to here it doubles. */
    double slowStartThreshold;

    int running;
    int aside;

    /** Counts the halvings: a turn that was given before the last one says nothing new. */
    int halvings;

    Window(int most) {
      size = Math.min(FIRST, most);
      slowStartThreshold = most;
    }

    boolean isFull() {
      return running >= (int) size;
    }

    boolean hasRoom(boolean toBeAside) {
      return !isFull() && !(toBeAside && aside >= Math.max(1, (int) size / UNATTENDED_SHARE));
    }
  }

  private static final class Waiter {
    final CountDownLatch granted = new CountDownLatch(1);
    final long sinceNanos;
    final Map<Integer, Window> windows;
    long number;
    boolean attended;
    boolean hasTurn;
    boolean wasAside;

    Waiter(long sinceNanos, Map<Integer, Window> windows) {
      this.sinceNanos = sinceNanos;
      this.windows = windows;
    }
  }

  /** The right to run one session. Ends when it is closed. */
  final class Turn implements AutoCloseable {
    private final Waiter waiter;
    private final Map<Integer, Integer> halvings = new HashMap<>();

    private Turn(Waiter waiter) {
      this.waiter = waiter;
      waiter.windows.forEach((party, window) -> halvings.put(party, window.halvings));
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
   * Waits for a turn. The oldest request whose parties have room is the first, whether or not it
   * has had one before.
   *
   * @param sinceNanos when the request came, monotonic, ns from a moment of this process
   * @param parties of the session
   * @param attended whether somebody waits for the request
   * @param over whether there is nothing to wait for any more
   * @return empty if it was over first
   */
  Optional<Turn> await(
      long sinceNanos, List<Integer> parties, BooleanSupplier attended, BooleanSupplier over)
      throws InterruptedException {
    Waiter waiter = join(sinceNanos, parties, attended.getAsBoolean());
    Optional<Turn> turn = Optional.empty();
    try {
      while (turn.isEmpty() && !over.getAsBoolean()) {
        if (waiter.granted.await(LOOK_SECONDS, TimeUnit.SECONDS)) {
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

  private synchronized Waiter join(long sinceNanos, List<Integer> parties, boolean attended) {
    Map<Integer, Window> own = new HashMap<>();
    for (int party : parties) {
      own.put(party, windows.computeIfAbsent(party, p -> new Window(most)));
    }
    Waiter waiter = new Waiter(sinceNanos, own);
    waiter.attended = attended;
    waiter.number = waiters++;
    waiting.add(waiter);
    give();
    return waiter;
  }

  private synchronized void again(Waiter waiter, boolean attended) {
    waiter.attended = attended;
    give();
  }

  private synchronized Turn take(Waiter waiter) {
    return new Turn(waiter);
  }

  private synchronized void leave(Waiter waiter) {
    if (waiter.hasTurn) {
      end(waiter);
    } else {
      waiting.remove(waiter);
    }
  }

  private synchronized void end(Waiter waiter) {
    running--;
    for (Window window : waiter.windows.values()) {
      window.running--;
      if (waiter.wasAside) {
        window.aside--;
      }
    }
    give();
  }

  private void give() {
    Iterator<Waiter> all = waiting.iterator();
    while (running < most && all.hasNext()) {
      Waiter next = all.next();
      boolean toBeAside = !next.attended;
      if (!next.windows.values().stream().allMatch(window -> window.hasRoom(toBeAside))) {
        continue;
      }
      all.remove();
      running++;
      for (Window window : next.windows.values()) {
        window.running++;
        if (toBeAside) {
          window.aside++;
        }
      }
      next.wasAside = toBeAside;
      next.hasTurn = true;
      next.granted.countDown();
    }
  }

  private synchronized void grow(Collection<Window> parties) {
    for (Window window : parties) {
      // A window that was not full has shown nothing.
      if (window.isFull()) {
        double more = window.size < window.slowStartThreshold ? 1 : 1 / window.size;
        window.size = Math.min(most, window.size + more);
      }
    }
    give();
  }

  private synchronized void shrink(Turn turn, Collection<Integer> slow) {
    turn.waiter.windows.forEach(
        (party, window) -> {
          boolean late = slow.isEmpty() || slow.contains(party);
          if (late && turn.halvings.getOrDefault(party, -1) == window.halvings) {
            window.halvings++;
            window.size = Math.min(most, Math.max(FEWEST, window.size / 2));
            window.slowStartThreshold = window.size;
          }
        });
  }

  /** How many sessions may run at once now with the slowest party. */
  synchronized int limit() {
    return windows.values().stream()
        .mapToInt(window -> (int) window.size)
        .min()
        .orElse(Math.min(FIRST, most));
  }

  /** Whether each of these parties could do more than it has to do now. */
  synchronized boolean hasRoom(Collection<Integer> parties) {
    return running < most
        && parties.stream()
            .map(windows::get)
            .noneMatch(window -> window != null && window.isFull());
  }

  /** How many requests wait for their turn. */
  synchronized int waiting() {
    return waiting.size();
  }
}
