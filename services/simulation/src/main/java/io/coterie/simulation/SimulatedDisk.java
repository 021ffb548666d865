package io.coterie.simulation;

import io.coterie.signer.storage.CommitRunner;
import java.sql.SQLException;
import java.time.Duration;

/**
 * The disk under the store of one process: commits are steps of the schedule that take their time,
 * and fail while the disk is full. A killed process commits nothing further.
 */
final class SimulatedDisk implements CommitRunner {
  private static final long MAX_COMMIT_NANOS = 4_000_000;
  private static final long SLOW_COMMIT_NANOS = 400_000_000;

  /** Of 1000 commits so many are slow. */
  private static final int SLOW = 5;

  private final Timeline timeline;
  private final Chance chance;

  /** While the store opens: it waits for its own writes. */
  private boolean opening = true;

  private boolean killed;
  private boolean full;

  /** When the last task that was given runs: tasks run in order. */
  private long busyUntilNanos;

  private int failures;
  private int commits;

  /** Called once, when the next task is given. */
  private Runnable onGiven = () -> {};

  /** Tasks that were given and have not run. */
  private int waiting;

  SimulatedDisk(Timeline timeline, Chance chance) {
    this.timeline = timeline;
    this.chance = chance;
  }

  /** The store is open: from now on its writes are steps of the schedule. */
  void opened() {
    opening = false;
  }

  /** Whether commits fail. */
  void full(boolean now) {
    full = now;
  }

  /** Nothing that was not durable ever will be. */
  void kill() {
    killed = true;
  }

  /** Calls once when something is given to write. */
  void whenGiven(Runnable call) {
    onGiven = call;
  }

  /** Whether something was given to write and is not on disk. */
  boolean isBusy() {
    return waiting > 0;
  }

  /** Commits that have failed while the process lived. */
  int failures() {
    return failures;
  }

  /** Commits that have not failed. */
  int commits() {
    return commits;
  }

  @Override
  public void execute(Runnable task) {
    if (opening) {
      task.run();
      return;
    }
    long most = chance.perMille(SLOW) ? SLOW_COMMIT_NANOS : MAX_COMMIT_NANOS;
    busyUntilNanos = Math.max(busyUntilNanos, timeline.nanos()) + chance.between(0, most);
    waiting++;
    Runnable call = onGiven;
    onGiven = () -> {};
    call.run();
    timeline.in(
        busyUntilNanos - timeline.nanos(),
        () -> {
          waiting--;
          ifAlive(task);
        });
  }

  @Override
  public void after(Duration delay, Runnable task) {
    timeline.in(delay.toNanos(), () -> ifAlive(task));
  }

  @Override
  public long nanos() {
    return timeline.nanos();
  }

  @Override
  public boolean close(Runnable last, Duration time) {
    last.run();
    killed = true;
    return true;
  }

  @Override
  public void committing() throws SQLException {
    if (killed) {
      throw new SQLException("the process was killed");
    }
    if (full) {
      failures++;
      throw new SQLException("database or disk is full");
    }
    commits++;
  }

  private void ifAlive(Runnable task) {
    if (!killed) {
      task.run();
    }
  }
}
