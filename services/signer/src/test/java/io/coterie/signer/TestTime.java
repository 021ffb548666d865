package io.coterie.signer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The timers of parties. Time passes for them as for everybody, and a test need not wait for it:
 * {@link #pass} runs at once the tasks that would have run by then. Clocks go on as they do.
 */
public final class TestTime {
  private final List<Timer> timers = new CopyOnWriteArrayList<>();

  /** The timer of a party. */
  public ScheduledExecutorService timer(String party) {
    Timer timer = new Timer(party);
    timers.add(timer);
    return timer;
  }

  /**
   * Runs the tasks that are to run once within this time, such as the end of a session at its
   * deadline, and returns when they have run. Not called by a timer.
   */
  public void pass(Duration time) {
    timers.forEach(timer -> timer.pass(time));
  }

  /** The same for one party alone. */
  public void pass(String party, Duration time) {
    timers.stream().filter(timer -> timer.party.equals(party)).forEach(timer -> timer.pass(time));
  }

  /** Whether a task is to run in between. */
  public boolean isDue(Duration from, Duration to) {
    return timers.stream().anyMatch(timer -> timer.isDue(from, to));
  }

  private static final class Timer extends ScheduledThreadPoolExecutor {
    private final String party;
    private final List<Due> all = new CopyOnWriteArrayList<>();

    private record Due(Runnable task, ScheduledFuture<?> future) {}

    Timer(String party) {
      super(1, Thread.ofPlatform().daemon().name(party + "-timer").factory());
      this.party = party;
      setRemoveOnCancelPolicy(true);
      setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, long delay, TimeUnit unit) {
      ScheduledFuture<?> future = super.schedule(task, delay, unit);
      all.removeIf(due -> due.future().isDone());
      all.add(new Due(task, future));
      return future;
    }

    boolean isDue(Duration from, Duration to) {
      return all.stream()
          .filter(due -> !due.future().isDone())
          .mapToLong(due -> due.future().getDelay(TimeUnit.NANOSECONDS))
          .anyMatch(delay -> delay > from.toNanos() && delay <= to.toNanos());
    }

    void pass(Duration time) {
      List<Future<?>> passed = new ArrayList<>();
      for (Due due : all) {
        if (due.future().getDelay(TimeUnit.NANOSECONDS) <= time.toNanos()
            && due.future().cancel(false)) {
          passed.add(super.schedule(due.task(), 0, TimeUnit.NANOSECONDS));
        }
      }
      for (Future<?> each : passed) {
        try {
          each.get();
        } catch (ExecutionException e) {
          throw new AssertionError("a task of a timer failed", e.getCause());
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new IllegalStateException(e);
        }
      }
    }
  }
}
