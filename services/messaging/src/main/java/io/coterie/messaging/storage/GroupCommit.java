package io.coterie.messaging.storage;

import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import io.coterie.messaging.limit.Shares;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.Delivery;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.transaction.CannotCreateTransactionException;

/**
 * Stores deliveries in the order in which they came, as many in one transaction as have come while
 * the transaction before was being made durable. Senders do not wait in line for long: once the
 * first in line has waited for its time, only senders with less than their share of the line may
 * join it.
 */
final class GroupCommit implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(GroupCommit.class);

  /** Most deliveries of one transaction. */
  private static final int MAX_GROUP = 256;

  /** Bytes after which a transaction takes no more deliveries. */
  private static final long MAX_GROUP_BYTES = 1 << 20;

  /** When to come back to a line that is too long. */
  private static final Duration RETRY = Duration.ofSeconds(1);

  private final Store store;
  private final Limits limits;
  private final LongSupplier nanos;
  private final Thread writer;

  // Guarded by this.
  private final Deque<Waiting> line = new ArrayDeque<>();
  private final Shares shares = new Shares();
  private boolean closed;

  /** Stores deliveries in one transaction. */
  @FunctionalInterface
  interface Store {
    /**
     * @return for each delivery the recipients whose queues are full, who do not get it
     */
    List<Set<DeviceAddress>> store(List<Delivery> deliveries);
  }

  /**
   * @param patience how long the first in line may have waited before the line is closed to those
   *     who have their share of it
   * @param bytes most bytes of deliveries in line; senders with less than their share may fill
   *     twice as much
   */
  record Limits(Duration patience, long bytes) {}

  private record Waiting(
      Delivery delivery,
      Source source,
      long bytes,
      long sinceNanos,
      CompletableFuture<Set<DeviceAddress>> stored) {}

  /**
   * @param nanos monotonic nanoseconds
   */
  GroupCommit(Store store, Limits limits, LongSupplier nanos) {
    this.store = store;
    this.limits = limits;
    this.nanos = nanos;
    this.writer = Thread.ofPlatform().name("messaging-stored").start(this::write);
  }

  /**
   * Takes a delivery into the line.
   *
   * @return completed when the delivery is durable, with the recipients whose queues were full
   * @throws RateLimitedException if the line is too long for this source
   */
  CompletableFuture<Set<DeviceAddress>> add(Delivery delivery, Source source) {
    long bytes = delivery.bytes();
    synchronized (this) {
      if (closed) {
        throw new CannotCreateTransactionException("the service is stopping");
      }
      long now = nanos.getAsLong();
      Waiting first = line.peekFirst();
      boolean late = first != null && now - first.sinceNanos() > limits.patience().toNanos();
      boolean large = shares.bytes() + bytes > limits.bytes();
      boolean tooLarge = shares.bytes() + bytes > 2 * limits.bytes();
      if (tooLarge || ((late || large) && !shares.isBelowShare(source, bytes))) {
        throw new RateLimitedException(RETRY);
      }
      Waiting waiting = new Waiting(delivery, source, bytes, now, new CompletableFuture<>());
      line.addLast(waiting);
      shares.add(source, bytes);
      notifyAll();
      return waiting.stored();
    }
  }

  private void write() {
    List<Waiting> group = next();
    while (!group.isEmpty()) {
      store(group);
      group = next();
    }
  }

  /** Waits for deliveries; none if there will be none. */
  private synchronized List<Waiting> next() {
    while (line.isEmpty()) {
      if (closed) {
        return List.of();
      }
      try {
        wait();
      } catch (InterruptedException e) {
        LOG.warn("the writer of the queue was interrupted and stores nothing any more", e);
        closed = true;
        return List.of();
      }
    }
    List<Waiting> group = new ArrayList<>();
    long bytes = 0;
    while (!line.isEmpty() && group.size() < MAX_GROUP && bytes < MAX_GROUP_BYTES) {
      Waiting waiting = line.removeFirst();
      shares.remove(waiting.source(), waiting.bytes());
      bytes += waiting.bytes();
      group.add(waiting);
    }
    return group;
  }

  private void store(List<Waiting> group) {
    try {
      List<Set<DeviceAddress>> full = store.store(group.stream().map(Waiting::delivery).toList());
      // Answering takes as long as all the recipients' sockets do; the next group does not wait.
      Thread.startVirtualThread(
          () -> {
            for (int i = 0; i < group.size(); i++) {
              group.get(i).stored().complete(full.get(i));
            }
          });
    } catch (CannotCreateTransactionException | DataAccessResourceFailureException e) {
      fail(group, e);
    } catch (RuntimeException e) {
      if (group.size() == 1) {
        fail(group, e);
      } else {
        // One delivery that the database does not take must not take the others with it.
        group.forEach(waiting -> store(List.of(waiting)));
      }
    }
  }

  private static void fail(List<Waiting> group, RuntimeException cause) {
    Thread.startVirtualThread(() -> group.forEach(w -> w.stored().completeExceptionally(cause)));
  }

  /** Stores those that are in line, and takes no more. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    try {
      writer.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
