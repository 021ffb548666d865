package io.coterie.channel.signal;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs tasks one after another, in the order they were added, on threads of a shared pool. */
public final class MessageLane implements Executor {
  private static final Logger LOG = LoggerFactory.getLogger(MessageLane.class);

  /** Tasks run in one go before the thread is given back to the pool. */
  private static final int TURN = 32;

  private final Executor pool;
  private final ConcurrentLinkedQueue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final AtomicInteger waiting = new AtomicInteger();

  MessageLane(Executor pool) {
    this.pool = pool;
  }

  @Override
  public void execute(Runnable task) {
    if (add(task)) {
      pool.execute(this::drain);
    }
  }

  /**
   * Adds a task without starting it.
   *
   * @return whether the caller must see to it that {@link #drain} runs
   */
  boolean add(Runnable task) {
    tasks.add(task);
    return waiting.getAndIncrement() == 0;
  }

  /** Runs the waiting tasks on the calling thread. Only for callers that {@link #add} told to. */
  void drain() {
    for (int turn = 0; ; turn++) {
      if (turn == TURN) {
        pool.execute(this::drain);
        return;
      }
      Runnable task = tasks.poll();
      if (task != null) {
        try {
          task.run();
        } catch (RuntimeException | Error e) {
          // A step reports its failures itself; one that comes here is a bug and stops no other
          // step.
          LOG.error("a step of the channel failed", e);
        }
        if (waiting.decrementAndGet() == 0) {
          return;
        }
      }
    }
  }
}
