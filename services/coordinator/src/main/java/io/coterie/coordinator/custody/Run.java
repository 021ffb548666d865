package io.coterie.coordinator.custody;

import io.coterie.coordinator.session.Session;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.telemetry.TraceContext;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The work on one request. It belongs to nobody: everyone who asks for the same request waits here,
 * and it goes on when they have all gone.
 *
 * @param <R> the record of the request
 */
final class Run<R> {
  final String resource;
  final TraceContext trace;
  final long startedNanos = System.nanoTime();
  private final CompletableFuture<R> result = new CompletableFuture<>();
  private final AtomicLong latestDeadline;
  private volatile @Nullable Trouble trouble;
  private volatile @Nullable Session session;

  /** Work for a caller; a resumed request has none and gives a deadline that has passed. */
  Run(String resource, Caller first) {
    this.resource = resource;
    this.trace = first.trace();
    this.latestDeadline = new AtomicLong(first.deadlineNanos());
  }

  /** Another caller waits for the same. */
  void join(Caller caller) {
    latestDeadline.accumulateAndGet(caller.deadlineNanos(), (a, b) -> a - b >= 0 ? a : b);
  }

  /** Until the most patient caller leaves, ns; negative when nobody waits. */
  long patienceNanos() {
    return latestDeadline.get() - System.nanoTime();
  }

  void trying(Session current) {
    session = current;
  }

  void troubled(Trouble last) {
    trouble = last;
    session = null;
  }

  /** What has kept this request from its result so far. */
  @Nullable Trouble trouble() {
    return trouble;
  }

  void finish(R record) {
    result.complete(record);
  }

  void fail(RuntimeException cause) {
    result.completeExceptionally(cause);
  }

  /**
   * Waits for the result.
   *
   * @throws CustodyException if the request was refused, or naming party, round and cause if the
   *     caller's time is up first
   */
  R await(Caller caller) throws InterruptedException {
    try {
      return result.get(
          Math.max(0, caller.deadlineNanos() - System.nanoTime()), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw whyNotYet().toException();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof CustodyException refused) {
        throw new CustodyException(refused.reason(), refused.metadata());
      }
      throw new IllegalStateException("a run failed", e.getCause());
    }
  }

  private Trouble whyNotYet() {
    Session current = session;
    if (current != null) {
      return Trouble.of(resource, current, current.waitingFor());
    }
    Trouble last = trouble;
    return last != null ? last : Trouble.of(ErrorReason.DEADLINE_TOO_SHORT, resource);
  }
}
