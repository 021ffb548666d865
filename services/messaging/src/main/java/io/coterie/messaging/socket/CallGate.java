package io.coterie.messaging.socket;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/** Counts the calls of one connection that are in progress, and admits none once it is shut. */
final class CallGate {
  /** Calls of one connection that may wait for the database at once; more wait here. */
  private static final int MAX_BLOCKING_CALLS = 16;

  private final Executor executor;

  // Guarded by this.
  private final Deque<Runnable> waiting = new ArrayDeque<>();
  private int blocking;
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

  /** The connection is closed: calls that have not started never do. */
  synchronized void close() {
    shut = true;
    waiting.clear();
  }

  /** Whether no more calls are taken and those that were taken have been answered. */
  synchronized boolean isEmptied() {
    return shut && inProgress == 0;
  }

  /**
   * Runs a call that may wait for the database, when few enough of this connection run. The thread
   * that read the call does not wait for it: it reads for others as well.
   *
   * @throws RejectedExecutionException if the service is stopping; the call does not run
   */
  void runBlocking(Runnable call) {
    synchronized (this) {
      if (blocking == MAX_BLOCKING_CALLS) {
        waiting.addLast(call);
        return;
      }
      blocking++;
    }
    try {
      executor.execute(() -> runAll(call));
    } catch (RejectedExecutionException e) {
      synchronized (this) {
        blocking--;
      }
      throw e;
    }
  }

  /** The calls neither throw nor fail. */
  private void runAll(Runnable first) {
    @Nullable Runnable call = first;
    while (call != null) {
      call.run();
      call = next();
    }
  }

  /** The next call in line; null if there is none, and then one call less runs. */
  private synchronized @Nullable Runnable next() {
    @Nullable Runnable call = waiting.pollFirst();
    if (call == null) {
      blocking--;
    }
    return call;
  }
}
