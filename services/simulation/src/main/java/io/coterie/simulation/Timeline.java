package io.coterie.simulation;

import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;

/**
 * Virtual time, and everything that is to happen in it. One event after another, on the thread of
 * the caller. Of events of the same time the one that was planned first comes first.
 */
final class Timeline {
  /** 2027-01-15, so that no clock stands at zero. */
  static final long START_SECONDS = 1_800_000_000L;

  private final PriorityQueue<Event> events = new PriorityQueue<>();
  private long nowNanos;
  private long planned;
  private long happened;

  /**
   * @param beginNanos the time now
   */
  Timeline(long beginNanos) {
    this.nowNanos = beginNanos;
  }

  /** One thing that is to happen; cancelled like any future. */
  final class Event extends CompletableFuture<Void> implements Comparable<Event> {
    private final long atNanos;
    private final long number;
    private final Runnable task;

    private Event(long atNanos, Runnable task) {
      this.atNanos = atNanos;
      this.number = planned++;
      this.task = task;
    }

    @Override
    public int compareTo(Event other) {
      int byTime = Long.compare(atNanos, other.atNanos);
      return byTime != 0 ? byTime : Long.compare(number, other.number);
    }
  }

  /** A clock that only goes forward, ns. */
  long nanos() {
    return nowNanos;
  }

  /** How many events have happened. */
  long happened() {
    return happened;
  }

  /** Plans a task. */
  void in(long delayNanos, Runnable task) {
    events.add(new Event(nowNanos + Math.max(0, delayNanos), task));
  }

  /** The same; the task can be cancelled. */
  Event cancellable(long delayNanos, Runnable task) {
    Event event = new Event(nowNanos + Math.max(0, delayNanos), task);
    events.add(event);
    return event;
  }

  /**
   * Lets everything happen that is due by then.
   *
   * @param untilNanos the time afterwards
   */
  void runUntil(long untilNanos) {
    for (Event next = events.peek();
        next != null && next.atNanos <= untilNanos;
        next = events.peek()) {
      events.remove();
      if (next.isCancelled()) {
        continue;
      }
      nowNanos = next.atNanos;
      happened++;
      next.task.run();
      next.complete(null);
    }
    nowNanos = Math.max(nowNanos, untilNanos);
  }
}
