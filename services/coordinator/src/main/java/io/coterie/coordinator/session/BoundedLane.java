package io.coterie.coordinator.session;

import java.util.ArrayDeque;
import java.util.concurrent.Executor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs tasks one after another on a shared pool, holding at most so many. A session of the core is
 * confined to one thread at a time; its lane is that thread.
 */
final class BoundedLane {
  private static final Logger log = LoggerFactory.getLogger(BoundedLane.class);

  private final Executor pool;
  private final int capacity;
  private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
  private boolean running;

  BoundedLane(Executor pool, int capacity) {
    this.pool = pool;
    this.capacity = capacity;
  }

  /** Takes a task, or returns false because the lane is full: the task is dropped. */
  boolean offer(Runnable task) {
    synchronized (waiting) {
      if (waiting.size() >= capacity) {
        return false;
      }
      waiting.add(task);
      if (running) {
        return true;
      }
      running = true;
    }
    pool.execute(this::drain);
    return true;
  }

  /** Takes a task whatever the lane holds: for the one that releases what the others use. */
  void last(Runnable task) {
    synchronized (waiting) {
      waiting.add(task);
      if (running) {
        return;
      }
      running = true;
    }
    pool.execute(this::drain);
  }

  private void drain() {
    while (true) {
      Runnable task;
      synchronized (waiting) {
        task = waiting.poll();
        if (task == null) {
          running = false;
          return;
        }
      }
      try {
        task.run();
      } catch (RuntimeException | Error e) {
        // An error too: the lane must go on, at least to its last task.
        log.error("a step of a session failed", e);
      }
    }
  }
}
