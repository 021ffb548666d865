package io.coterie.signer.party;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that run sessions: platform threads, as many as configured, because the core's work
 * pins a thread. Work comes in lanes; the tasks of a lane run in order, one at a time, and no lock
 * is held while they do.
 */
public final class WorkPool implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(WorkPool.class);

  /** Threads that are idle this long end. */
  private static final long KEEP_ALIVE_SECONDS = 30;

  private final ThreadPoolExecutor threads;
  private final ScheduledThreadPoolExecutor timer;
  private final AtomicLong sequence = new AtomicLong();
  private final Duration leisureDelay;

  /** Which work comes first. Work of equal rank is done in the order it came. */
  public enum Priority {
    /** Somebody waits for it. */
    URGENT,
    /** Whenever nothing urgent waits. */
    BACKGROUND,
    /** The same, and it lies for a while first, so that several pieces are done together. */
    LEISURE
  }

  /**
   * @param name of the party, for thread names
   * @param leisureDelay how long work of {@link Priority#LEISURE} lies before it may start
   */
  public WorkPool(String name, int size, Duration leisureDelay) {
    this.leisureDelay = leisureDelay;
    this.threads =
        new ThreadPoolExecutor(
            size,
            size,
            KEEP_ALIVE_SECONDS,
            TimeUnit.SECONDS,
            new PriorityBlockingQueue<>(),
            Thread.ofPlatform().daemon().name(name + "-session-", 0).factory());
    threads.allowCoreThreadTimeOut(true);
    this.timer =
        new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().daemon().name(name + "-timer").factory());
    timer.setRemoveOnCancelPolicy(true);
    timer.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  /** A new lane. */
  public Lane lane() {
    return new Lane();
  }

  /** Runs a short, non-blocking task later, on the timer's thread. */
  public ScheduledFuture<?> after(Duration delay, Runnable task) {
    return timer.schedule(task, Math.max(0, delay.toNanos()), TimeUnit.NANOSECONDS);
  }

  /** Runs a short, non-blocking task again and again, on the timer's thread. */
  public ScheduledFuture<?> every(Duration period, Runnable task) {
    return timer.scheduleWithFixedDelay(
        task, period.toNanos(), period.toNanos(), TimeUnit.NANOSECONDS);
  }

  @Override
  public void close() {
    timer.shutdownNow();
    threads.shutdown();
    try {
      if (!threads.awaitTermination(10, TimeUnit.SECONDS)) {
        log.warn("session threads did not end in time");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private record Turn(boolean yields, long number, Runnable work)
      implements Runnable, Comparable<Turn> {
    private static final Comparator<Turn> ORDER =
        Comparator.comparing(Turn::yields).thenComparingLong(Turn::number);

    @Override
    public int compareTo(Turn other) {
      return ORDER.compare(this, other);
    }

    @Override
    public void run() {
      work.run();
    }
  }

  /** Tasks that run one after another. */
  public final class Lane implements Executor {
    private final Queue<Runnable> tasks = new ArrayDeque<>();
    private boolean scheduled;
    private volatile Priority priority = Priority.URGENT;

    private Lane() {}

    @Override
    public void execute(Runnable task) {
      synchronized (tasks) {
        tasks.add(task);
        if (scheduled) {
          return;
        }
        scheduled = true;
      }
      schedule();
    }

    /** Counts for the tasks that have not begun. */
    public void priority(Priority now) {
      priority = now;
    }

    private void schedule() {
      Priority as = priority;
      Turn turn = new Turn(as != Priority.URGENT, sequence.getAndIncrement(), () -> drain(as));
      try {
        if (as == Priority.LEISURE && !leisureDelay.isZero()) {
          timer.schedule(() -> threads.execute(turn), leisureDelay.toNanos(), TimeUnit.NANOSECONDS);
        } else {
          threads.execute(turn);
        }
      } catch (RejectedExecutionException e) {
        // The pool is closed: whatever was left is dropped with the process.
        log.debug("work dropped, the pool is closed");
      }
    }

    private void drain(Priority as) {
      while (true) {
        Runnable task;
        boolean ours;
        synchronized (tasks) {
          task = tasks.peek();
          if (task == null) {
            scheduled = false;
            return;
          }
          ours = as == priority;
          if (ours) {
            tasks.remove();
          }
        }
        if (!ours) {
          schedule();
          return;
        }
        try {
          task.run();
        } catch (RuntimeException | Error e) {
          // An error too: the lane must go on, at least to its session's deadline.
          log.error("a task of a session failed", e);
        }
      }
    }
  }
}
