package io.coterie.simulation;

import io.coterie.signer.party.WorkPool;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/**
 * The threads of one process, as steps of the schedule: each task is one event, and tasks of
 * different lanes come in an order that the seed decides. A killed process runs nothing further.
 */
final class SimulatedPool implements WorkPool {
  private static final long MAX_STEP_NANOS = 300_000;

  private final Timeline timeline;
  private final Chance chance;
  private final Duration leisureDelay;
  private boolean closed;

  /** Whether tasks run as soon as they are given. */
  private boolean hurries;

  SimulatedPool(Timeline timeline, Chance chance, Duration leisureDelay) {
    this.timeline = timeline;
    this.chance = chance;
    this.leisureDelay = leisureDelay;
  }

  @Override
  public Lane lane() {
    return new SimulatedLane();
  }

  @Override
  public Future<?> after(Duration delay, Runnable task) {
    return timeline.cancellable(delay.toNanos(), () -> ifOpen(task));
  }

  @Override
  public Future<?> every(Duration period, Runnable task) {
    CompletableFuture<Void> ticking = new CompletableFuture<>();
    tick(period, task, ticking);
    return ticking;
  }

  private void tick(Duration period, Runnable task, CompletableFuture<Void> ticking) {
    timeline.in(
        period.toNanos(),
        () -> {
          if (!closed && !ticking.isCancelled()) {
            task.run();
            tick(period, task, ticking);
          }
        });
  }

  @Override
  public long nanos() {
    return timeline.nanos();
  }

  /** The process waits for the end of each task from now on, and of those that wait. */
  void hurry() {
    hurries = true;
  }

  @Override
  public void close() {
    closed = true;
  }

  private void ifOpen(Runnable task) {
    if (!closed) {
      task.run();
    }
  }

  private final class SimulatedLane implements Lane {
    private final Queue<Runnable> tasks = new ArrayDeque<>();
    private Priority priority = Priority.URGENT;
    private boolean running;

    @Override
    public void execute(Runnable task) {
      tasks.add(task);
      if (hurries) {
        runAll();
      } else if (tasks.size() == 1) {
        plan();
      }
    }

    @Override
    public void priority(Priority now) {
      priority = now;
    }

    private void plan() {
      long delay = chance.between(0, MAX_STEP_NANOS);
      if (priority == Priority.LEISURE) {
        delay += leisureDelay.toNanos();
      }
      timeline.in(delay, () -> ifOpen(this::runPlanned));
    }

    private void runPlanned() {
      if (!hurries) {
        runNext();
      }
    }

    private void runAll() {
      if (!running) {
        while (!tasks.isEmpty() && !closed) {
          runNext();
        }
      }
    }

    private void runNext() {
      // It stays in the queue while it runs, so that what it adds is planned after it.
      Runnable task = tasks.element();
      running = true;
      try {
        task.run();
      } finally {
        running = false;
        tasks.remove();
        if (!tasks.isEmpty() && !hurries) {
          plan();
        }
      }
    }
  }
}
