package io.coterie.signer.party;

import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;

/**
 * Runs the work of sessions. Work comes in lanes; the tasks of a lane run in order, one at a time.
 * Everything that waits for a time waits for it here, so whoever runs the work decides when it is.
 */
public interface WorkPool extends AutoCloseable {
  /** Which work comes first. Work of equal rank is done in the order it came. */
  enum Priority {
    /** Somebody waits for it. */
    URGENT,
    /** Whenever nothing urgent waits. */
    BACKGROUND,
    /** The same, and it lies for a while first, so that several pieces are done together. */
    LEISURE,
    /** Somebody waits for it, and it takes long: it has threads of its own, and delays no other. */
    LONG,
    /** The same, whenever nothing waits there that somebody waits for. */
    LONG_BACKGROUND
  }

  /** Tasks that run one after another. */
  interface Lane extends Executor {
    /** Counts for the tasks that have not begun. */
    void priority(Priority now);
  }

  /** A new lane. */
  Lane lane();

  /** Runs a short, non-blocking task later. */
  Future<?> after(Duration delay, Runnable task);

  /** Runs a short, non-blocking task again and again, the first time after one period. */
  Future<?> every(Duration period, Runnable task);

  /** A clock that only goes forward, ns: the one by which tasks are due. */
  long nanos();

  /** Runs nothing further. */
  @Override
  void close();
}
