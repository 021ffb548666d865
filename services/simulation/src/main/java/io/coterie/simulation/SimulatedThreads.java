package io.coterie.simulation;

import io.coterie.coordinator.session.ReplicaTime;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import org.jspecify.annotations.Nullable;

/**
 * The threads of one process that may block, as steps of the schedule. Each is a thread of its own,
 * but it runs only while the schedule waits for it, from one wait to the next. So one thread runs
 * at a time, and the seed decides when each goes on. The threads of a killed process never do.
 */
final class SimulatedThreads implements Executor, ReplicaTime {
  private static final long MAX_STEP_NANOS = 300_000;

  /** Longer than any schedule. */
  private static final long FOR_EVER_NANOS = 1_000_000_000_000_000L;

  private final Timeline timeline;
  private final Chance chance;
  private final Set<Strand> living = new LinkedHashSet<>();
  private @Nullable Strand running;
  private boolean killed;

  SimulatedThreads(Timeline timeline, Chance chance) {
    this.timeline = timeline;
    this.chance = chance;
  }

  /** Unwinds a thread of a process that is gone. */
  static final class Killed extends Error {
    private static final long serialVersionUID = 1L;

    Killed() {
      super("the process is gone", null, false, false);
    }
  }

  /** Takes effect on what a thread does next. */
  void requireAlive() {
    if (killed) {
      throw new Killed();
    }
  }

  /** Ends all threads. Called by the schedule. */
  void kill() {
    killed = true;
    List.copyOf(living).forEach(Strand::go);
  }

  @Override
  public void execute(Runnable task) {
    soon(() -> new Strand(task).go());
  }

  /** Runs a task of the process that does not block, as a step of its own. */
  void soon(Runnable task) {
    after(0, task);
  }

  /** The same, later. */
  void after(long nanos, Runnable task) {
    timeline.in(
        nanos + chance.between(0, MAX_STEP_NANOS),
        () -> {
          if (!killed) {
            task.run();
          }
        });
  }

  @Override
  public long nanos() {
    return timeline.nanos();
  }

  @Override
  public boolean await(CompletableFuture<?> event, long nanos) {
    requireAlive();
    Strand self = running;
    if (self == null) {
      throw new IllegalStateException("a step that must not block waits");
    }
    return event.isDone() || (nanos > 0 && self.await(event, nanos));
  }

  private final class Strand {
    private final Semaphore turn = new Semaphore(0);
    private final Semaphore pause = new Semaphore(0);
    private final Thread thread;
    private @Nullable Throwable failure;

    /** Numbers the waits, so that nothing ends another wait than it was planned for. */
    private long waits;

    Strand(Runnable task) {
      this.thread = Thread.ofVirtual().unstarted(() -> run(task));
    }

    private void run(Runnable task) {
      try {
        task.run();
      } catch (Killed e) {
        // A killed process ends its threads so.
      } catch (Throwable e) {
        failure = e;
      } finally {
        living.remove(this);
        pause.release();
      }
    }

    /** Lets it run until it waits or ends. Called by the schedule. */
    void go() {
      running = this;
      if (living.add(this)) {
        thread.start();
      } else {
        turn.release();
      }
      pause.acquireUninterruptibly();
      running = null;
      if (failure != null) {
        throw new IllegalStateException("a thread of the coordinator failed", failure);
      }
    }

    boolean await(CompletableFuture<?> event, long nanos) {
      long wait = ++waits;
      Timeline.@Nullable Event timeout =
          nanos < FOR_EVER_NANOS ? timeline.cancellable(nanos, () -> end(wait)) : null;
      event.whenComplete((_, _) -> end(wait));
      pause.release();
      turn.acquireUninterruptibly();
      if (timeout != null) {
        timeout.cancel(false);
      }
      requireAlive();
      return event.isDone();
    }

    /** Ends a wait, once. */
    private void end(long wait) {
      if (wait == waits) {
        waits++;
        soon(this::go);
      }
    }
  }
}
