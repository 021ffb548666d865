package io.coterie.channel.signal;

import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Callers that wait until peers are ready. Their futures complete on the pool, except at the end of
 * the channel: a caller of this class may hold a lock that their continuations want.
 */
public final class Waiters {
  private final Executor pool;
  private final List<Waiter> waiters = new CopyOnWriteArrayList<>();
  private volatile boolean closed;

  /** A caller that waits until all of these peers are ready. */
  private record Waiter(
      Collection<Peer> peers,
      Predicate<Peer> ready,
      long deadlineNanos,
      CompletableFuture<Void> done) {

    boolean isReady() {
      return peers.stream().allMatch(ready);
    }
  }

  Waiters(Executor pool) {
    this.pool = pool;
  }

  /**
   * Completes when all of the peers are ready.
   *
   * @param patience fails after it, with the cause that the last hello failed with or else
   *     NOT_ESTABLISHED; null waits for ever
   */
  CompletableFuture<Void> when(
      Collection<Peer> needed, Predicate<Peer> ready, @Nullable Duration patience) {
    if (closed) {
      return CompletableFuture.failedFuture(
          new ChannelException(Cause.CLOSED, "the channel is closed"));
    }
    if (needed.stream().allMatch(ready)) {
      return CompletableFuture.completedFuture(null);
    }
    long deadline = patience == null ? Long.MAX_VALUE : System.nanoTime() + patience.toNanos();
    Waiter waiter = new Waiter(List.copyOf(needed), ready, deadline, new CompletableFuture<>());
    waiters.add(waiter);
    check();
    if (closed) {
      // Closed since the question above: close may have missed this waiter.
      close();
    }
    return waiter.done;
  }

  /** Whether {@link #close} has been called. */
  boolean closed() {
    return closed;
  }

  /** Completes the callers whose peers are ready. */
  void check() {
    for (Waiter waiter : waiters) {
      if (waiter.done.isDone() || waiter.isReady()) {
        waiters.remove(waiter);
        pool.execute(() -> waiter.done.complete(null));
      }
    }
  }

  /** Fails the callers whose patience is over. */
  void expire(long now) {
    for (Waiter waiter : waiters) {
      if (waiter.deadlineNanos != Long.MAX_VALUE && now - waiter.deadlineNanos >= 0) {
        waiters.remove(waiter);
        List<Peer> missing = waiter.peers.stream().filter(waiter.ready.negate()).toList();
        Cause cause =
            missing.stream()
                .map(peer -> peer.keys.lastFailure())
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(Cause.NOT_ESTABLISHED);
        fail(waiter, new ChannelException(cause, "no keys exchanged with " + missing));
      }
    }
  }

  /** Fails the callers that wait for one of these peers, which have left the roster. */
  void left(List<Peer> gone) {
    for (Waiter waiter : waiters) {
      if (waiter.peers.stream().anyMatch(gone::contains) && waiters.remove(waiter)) {
        fail(waiter, new ChannelException(Cause.UNTRUSTED, gone + " left the roster"));
      }
    }
  }

  private void fail(Waiter waiter, ChannelException failure) {
    pool.execute(() -> waiter.done.completeExceptionally(failure));
  }

  /** Fails every caller that waits, or will wait. */
  void close() {
    closed = true;
    for (Waiter waiter : waiters) {
      if (waiters.remove(waiter)) {
        waiter.done.completeExceptionally(
            new ChannelException(Cause.CLOSED, "the channel was closed meanwhile"));
      }
    }
  }
}
