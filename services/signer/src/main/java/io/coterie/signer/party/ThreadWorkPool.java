package io.coterie.signer.party;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Queue;
import java.util.concurrent.Future;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Platform threads, as many as configured, because the core's work pins a thread; and half as many
 * for work that takes long. No lock is held while a task runs.
 */
public final class ThreadWorkPool implements WorkPool {
  private static final Logger log = LoggerFactory.getLogger(ThreadWorkPool.class);

  /** Threads that are idle this long end. */
  private static final long KEEP_ALIVE_SECONDS = 30;

  private final ThreadPoolExecutor threads;
  private final ThreadPoolExecutor longThreads;
  private final ScheduledExecutorService timer;
  private final AtomicLong sequence = new AtomicLong();
  private final Duration leisureDelay;

  /**
   * @param name of the party, for thread names
   * @param leisureDelay how long work of {@link Priority#LEISURE} lies before it may start
   */
  public ThreadWorkPool(String name, int size, Duration leisureDelay) {
    this(name, size, leisureDelay, timer(name));
  }

  /**
   * @param name of the party, for thread names
   * @param leisureDelay how long work of {@link Priority#LEISURE} lies before it may start
   * @param timer runs on one thread what is to happen later; ended with this pool
   */
  public ThreadWorkPool(
      String name, int size, Duration leisureDelay, ScheduledExecutorService timer) {
    this.leisureDelay = leisureDelay;
    this.timer = timer;
    this.threads = threads(name + "-session-", size);
    this.longThreads = threads(name + "-long-", Math.max(1, size / 2));
  }

  private static ThreadPoolExecutor threads(String name, int size) {
    ThreadPoolExecutor threads =
        new ThreadPoolExecutor(
            size,
            size,
            KEEP_ALIVE_SECONDS,
            TimeUnit.SECONDS,
            new PriorityBlockingQueue<>(),
            Thread.ofPlatform().daemon().name(name, 0).factory());
    threads.allowCoreThreadTimeOut(true);
    return threads;
  }

  private static ScheduledExecutorService timer(String name) {
    ScheduledThreadPoolExecutor timer =
        new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().daemon().name(name + "-timer").factory());
    timer.setRemoveOnCancelPolicy(true);
    timer.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    return timer;
  }

  @Override
  public Lane lane() {
    return new ThreadLane();
  }

  /** Runs the task on the timer's thread. */
  @Override
  public Future<?> after(Duration delay, Runnable task) {
    return timer.schedule(task, Math.max(0, delay.toNanos()), TimeUnit.NANOSECONDS);
  }

  /** Runs the task on the timer's thread. */
  @Override
  public Future<?> every(Duration period, Runnable task) {
    return timer.scheduleWithFixedDelay(
        task, period.toNanos(), period.toNanos(), TimeUnit.NANOSECONDS);
  }

  @Override
  public long nanos() {
    return System.nanoTime();
  }

  @Override
  public void close() {
    timer.shutdownNow();
    threads.shutdown();
    longThreads.shutdown();
    try {
      if (!threads.awaitTermination(10, TimeUnit.SECONDS)
          || !longThreads.awaitTermination(10, TimeUnit.SECONDS)) {
        log.warn("this party's threads for sessions did not end in time");
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

  private final class ThreadLane implements Lane {
    private final Queue<Runnable> tasks = new ArrayDeque<>();
    private boolean scheduled;
    private volatile Priority priority = Priority.URGENT;

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

    @Override
    public void priority(Priority now) {
      priority = now;
    }

    private void schedule() {
      Priority as = priority;
      boolean yields = as != Priority.URGENT && as != Priority.LONG;
      Turn turn = new Turn(yields, sequence.getAndIncrement(), () -> drain(as));
      try {
        switch (as) {
          case LEISURE -> {
            if (leisureDelay.isZero()) {
              threads.execute(turn);
            } else {
              timer.schedule(
                  () -> threads.execute(turn), leisureDelay.toNanos(), TimeUnit.NANOSECONDS);
            }
          }
          case URGENT, BACKGROUND -> threads.execute(turn);
          case LONG, LONG_BACKGROUND -> longThreads.execute(turn);
        }
      } catch (RejectedExecutionException e) {
        // The pool is closed: the remaining work is dropped with the process.
        log.debug("the pool is closed, so work is dropped");
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
          log.error("a step of a session failed", e);
        }
      }
    }
  }
}
