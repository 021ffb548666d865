package io.coterie.coordinator.custody.request;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.ObservedSession;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.TraceContext;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The work on one request in this replica. It belongs to no caller: all callers with the same
 * request wait here, and the work goes on when they have left. If another replica does the work,
 * only the waiting goes on here, and it ends when they have left. Thread-safe.
 *
 * @param <R> the result of the request
 */
public final class Run<R> {
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

    static Key of(StoredRequest request) {
      return new Key(request.requester(), request.requestId(), request.intentDigest());
    }
  }

  /** Ends a run whose waiting ended before the request did. */
  private static final class Abandoned extends RuntimeException {
    private static final long serialVersionUID = 1;

    Abandoned() {
      super("no caller waits", null, false, false);
    }
  }

  /** Name of the resource that the request makes or changes. */
  public final String resource;

  /** Trace context of the first caller. */
  public final TraceContext trace;

  /** By {@link ReplicaTime#nanos()}: when the first caller came. */
  public final long startedNanos;

  /** Whether it has a place of its requester: one that only waits for another replica has none. */
  final AtomicBoolean placed = new AtomicBoolean();

  private final CompletableFuture<R> result = new CompletableFuture<>();
  private final ReplicaTime time;
  private final Consumer<Run<R>> ending;
  private final AtomicLong latestDeadline;
  private volatile @Nullable Failure lastFailure;
  private volatile @Nullable ObservedSession session;
  private volatile boolean cancelled;

  /**
   * Work for a caller; a resumed request has none and gives a deadline that has passed.
   *
   * @param ending called before the callers learn the end
   */
  Run(String resource, Caller first, ReplicaTime time, Consumer<Run<R>> ending) {
    this.resource = resource;
    this.time = time;
    this.startedNanos = time.nanos();
    this.trace = first.trace();
    this.latestDeadline = new AtomicLong(first.deadlineNanos());
    this.ending = ending;
  }

  /** Another caller waits for the same. */
  void join(Caller caller) {
    latestDeadline.accumulateAndGet(caller.deadlineNanos(), (a, b) -> a - b >= 0 ? a : b);
  }

  /** Until the most patient caller leaves, ns; negative when nobody waits. */
  public long patienceNanos() {
    return latestDeadline.get() - time.nanos();
  }

  /** A session has begun. */
  public void trying(ObservedSession current) {
    session = current;
    if (cancelled) {
      current.cancel();
    }
  }

  /** The result is not wanted any more, if it can be kept from coming about. */
  void cancel() {
    cancelled = true;
    ObservedSession current = session;
    if (current != null) {
      current.cancel();
    }
  }

  /** Whether the result is not wanted any more. */
  public boolean isCancelled() {
    return cancelled;
  }

  /** A session has failed, or none could begin; the work goes on. */
  public void failedFor(Failure why) {
    lastFailure = why;
    session = null;
  }

  /** Why the request has no result so far; null if nothing failed yet. */
  public @Nullable Failure lastFailure() {
    return lastFailure;
  }

  /** The same, for a request whose time is up: without a failure, its intent expired. */
  public Failure lastFailureOrExpiry() {
    Failure last = lastFailure;
    return last != null ? last : Failure.of(ErrorReason.INTENT_EXPIRED, resource);
  }

  /** The request has its result. */
  public void finish(R record) {
    ending.accept(this);
    result.complete(record);
  }

  /** The request has no result, or the work cannot go on. */
  public void fail(RuntimeException cause) {
    ending.accept(this);
    result.completeExceptionally(cause);
  }

  /** This replica stops; another one goes on with the request, and callers are to ask again. */
  public void drain() {
    fail(Failure.of(ErrorReason.DRAINING, resource).toException());
  }

  /**
   * Nothing goes on here any more. A caller who came meanwhile starts anew.
   *
   * @return whether the request had not ended
   */
  boolean abandon() {
    ending.accept(this);
    return result.completeExceptionally(new Abandoned());
  }

  /**
   * Waits for the result.
   *
   * @return empty if the run was abandoned, and the caller has time to start anew
   * @throws CustodyException if the request was refused, or naming party, round and cause if the
   *     caller's time is up first
   * @throws StoreUnavailableException if the work stopped there; the same request goes on with it
   */
  Optional<R> await(Caller caller) throws InterruptedException {
    if (!time.await(result, Math.max(0, caller.deadlineNanos() - time.nanos()))) {
      throw whyNotYet().toException();
    }
    try {
      return Optional.of(result.join());
    } catch (CompletionException e) {
      Throwable cause = Objects.requireNonNull(e.getCause());
      return switch (cause) {
        // A copy: several callers throw it.
        case CustodyException refused -> throw Failure.of(refused).toException();
        case Abandoned _ -> {
          if (caller.deadlineNanos() - time.nanos() <= 0) {
            throw whyNotYet().toException();
          }
          yield Optional.empty();
        }
        case StoreUnavailableException unavailable ->
            throw new StoreUnavailableException(
                "the work on a request stopped before its end", unavailable);
        default -> throw new IllegalStateException("the work on a request failed", cause);
      };
    }
  }

  private Failure whyNotYet() {
    ObservedSession current = session;
    if (current != null) {
      return Failure.of(resource, current, current.waitingFor());
    }
    Failure last = lastFailure;
    if (last == null) {
      return Failure.of(ErrorReason.DEADLINE_TOO_SHORT, resource);
    }
    // The work goes on: the end of one session must not keep the caller from asking again.
    return last.reason().isTransient() ? last : last.as(ErrorReason.SESSION_FAILED);
  }
}
