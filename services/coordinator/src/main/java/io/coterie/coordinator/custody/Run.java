package io.coterie.coordinator.custody;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.Session;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.TraceContext;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The work on one request in this replica. It belongs to nobody: everyone who asks for the same
 * request waits here, and it goes on when they have all gone. If another replica does the work,
 * what goes on here is only the waiting, and ends when they have gone.
 *
 * @param <R> the record of the request
 */
final class Run<R> {
  /**
   * Work on one intent. Another intent under the same request id is other work: the store refuses
   * it.
   *
   * @param digest SHA-256 of the intent's payload
   */
  record Key(String requester, String requestId, ByteString digest) {
    static Key of(VerifiedIntent intent) {
      return new Key(intent.requester(), intent.requestId(), intent.digest());
    }
  }

  /** What somebody who waits sees of a request. */
  enum Look {
    /** It has become this replica's work. */
    MINE,
    /** Another replica works on it. */
    ANOTHERS,
    /** There is nothing more to wait for. */
    OVER
  }

  /** Nobody waited any more. */
  private static final class Left extends RuntimeException {
    private static final long serialVersionUID = 1;

    Left() {
      super("nobody waits", null, false, false);
    }
  }

  final String resource;
  final TraceContext trace;
  final long startedNanos = System.nanoTime();
  private final CompletableFuture<R> result = new CompletableFuture<>();
  private final AtomicLong latestDeadline;
  private volatile @Nullable Trouble trouble;
  private volatile @Nullable Session session;
  private volatile boolean cancelled;

  /** Work for a caller; a resumed request has none and gives a deadline that has passed. */
  Run(String resource, Caller first) {
    this.resource = resource;
    this.trace = first.trace();
    this.latestDeadline = new AtomicLong(first.deadlineNanos());
  }

  /**
   * Waits for the result of a request: of the work in progress if there is some, else of what
   * {@code start} does.
   *
   * @param runs the work in progress; a new run stays in it for as long as it goes on
   * @param start finishes the new run at once, or begins work that will, and says whether work goes
   *     on
   * @throws CustodyException as {@link #await}, or as {@code start}, and then nothing goes on
   */
  static <R> R joinOrStart(
      ConcurrentMap<Key, Run<R>> runs,
      Key key,
      String resource,
      Caller caller,
      Predicate<Run<R>> start)
      throws InterruptedException {
    while (true) {
      Run<R> fresh = new Run<>(resource, caller);
      Run<R> run = runs.putIfAbsent(key, fresh);
      if (run != null) {
        run.join(caller);
      } else {
        run = fresh;
        boolean goesOn = false;
        try {
          goesOn = start.test(fresh);
        } catch (RuntimeException e) {
          fresh.fail(e);
          throw e;
        } finally {
          if (!goesOn) {
            runs.remove(key, fresh);
          }
        }
      }
      try {
        return run.await(caller);
      } catch (Left e) {
        if (caller.deadlineNanos() - System.nanoTime() <= 0) {
          throw run.whyNotYet().toException();
        }
        // It was left at the moment in which this caller came.
      }
    }
  }

  /**
   * Waits until this replica is to work on the request, while another one does.
   *
   * @param look at the request; finishes this run when it has a result
   * @param watched whether somebody else than callers waits for the end
   * @return false if it is over, nobody waits any more, or this replica stops
   */
  boolean awaitTurn(Supplier<Look> look, BooleanSupplier watched, CompletableFuture<Void> stopping)
      throws InterruptedException {
    Pace pace = Pace.ofLooks(stopping);
    while (!stopping.isDone()) {
      switch (look.get()) {
        case MINE -> {
          return true;
        }
        case OVER -> {
          return false;
        }
        case ANOTHERS -> {
          if (patienceNanos() < 0 && !watched.getAsBoolean()) {
            return false;
          }
          pace.pause();
        }
      }
    }
    fail(Trouble.of(ErrorReason.DRAINING, resource).toException());
    return false;
  }

  /**
   * Nothing goes on here any more. Whoever has come meanwhile starts anew.
   *
   * @return whether there was no end
   */
  boolean leave() {
    return result.completeExceptionally(new Left());
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
    if (cancelled) {
      current.cancel();
    }
  }

  /** Nobody wants the result any more, if it can be kept from coming about. */
  void cancel() {
    cancelled = true;
    Session current = session;
    if (current != null) {
      current.cancel();
    }
  }

  boolean isCancelled() {
    return cancelled;
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
   * @throws StoreUnavailableException if the work stopped there; the same request goes on with it
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
      if (e.getCause() instanceof Left left) {
        throw left;
      }
      if (e.getCause() instanceof StoreUnavailableException unavailable) {
        throw new StoreUnavailableException("a run stopped in its middle", unavailable);
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
    if (last == null) {
      return Trouble.of(ErrorReason.DEADLINE_TOO_SHORT, resource);
    }
    // The work goes on: what one session ended with must not keep the caller from asking again.
    return last.reason().isTransient() ? last : last.as(ErrorReason.SESSION_FAILED);
  }
}
