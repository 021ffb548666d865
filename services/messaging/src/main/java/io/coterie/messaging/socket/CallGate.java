package io.coterie.messaging.socket;

import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;

/** Counts the calls of one connection that are in progress, and admits none once it is shut. */
final class CallGate {
  /** Calls of one connection that may wait for the database at once; more wait in the socket. */
  private static final int MAX_BLOCKING_CALLS = 16;

  private final Executor executor;
  private final Semaphore blocking = new Semaphore(MAX_BLOCKING_CALLS);
  private int inProgress;
  private boolean shut;

  /**
   * @param executor where calls that may wait run
   */
  CallGate(Executor executor) {
    this.executor = executor;
  }

  /** Begins a call, to be followed by {@link #end}; false if no more are taken. */
  synchronized boolean begin() {
    if (shut) {
      return false;
    }
    inProgress++;
    return true;
  }

  /** The call has been answered. */
  synchronized void end() {
    inProgress--;
  }

  /** Takes no more calls. */
  synchronized void shut() {
    shut = true;
  }

  /** Whether no more calls are taken and those that were taken have been answered. */
  synchronized boolean isEmptied() {
    return shut && inProgress == 0;
  }

  /**
   * Runs a call that may wait for the database. If too many run, this waits, and so stops reading
   * from this client and from no other.
   *
   * @throws RejectedExecutionException if the service is stopping; the call does not run
   */
  void runBlocking(Runnable call) {
    blocking.acquireUninterruptibly();
    try {
      executor.execute(
          () -> {
            try {
              call.run();
            } finally {
              blocking.release();
            }
          });
    } catch (RejectedExecutionException e) {
      blocking.release();
      throw e;
    }
  }
}
