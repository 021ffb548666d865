package io.coterie.signer.storage;

import java.sql.SQLException;
import java.time.Duration;

/**
 * Runs the writes of a party's file, one task at a time. The store decides what a task writes; the
 * runner decides when it runs.
 */
public interface CommitRunner {
  /** Runs a task after those that were given before. */
  void execute(Runnable task);

  /** Runs a task this much later. */
  void after(Duration delay, Runnable task);

  /** A clock that only goes forward, ns. */
  long nanos();

  /**
   * Runs a last task after those that were given before, without the delayed ones, and none after
   * it.
   *
   * @param time how long to wait for it
   * @return whether it has run
   */
  boolean close(Runnable last, Duration time) throws InterruptedException;

  /**
   * A transaction is about to be made durable.
   *
   * @throws SQLException if the disk refuses it: the transaction is rolled back
   */
  default void committing() throws SQLException {}
}
