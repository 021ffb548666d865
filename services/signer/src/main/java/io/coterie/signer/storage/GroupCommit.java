package io.coterie.signer.storage;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The only writer of the party's file. Whatever is waiting when the disk is free goes into one
 * transaction and one fsync, so the rate of writes is not bounded by the disk's latency.
 */
final class GroupCommit implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(GroupCommit.class);

  /** Writes of one transaction. */
  static final int MAX_BATCH = 256;

  /** Writes that wait; more are refused, but for those that keep a key from being used. */
  static final int MAX_WAITING = 16_384;

  /** How long a write that nobody waits for may wait for company. */
  static final long LINGER_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  /** How long {@link #close} waits for what was submitted. */
  private static final Duration CLOSE_TIME = Duration.ofSeconds(10);

  /**
   * Some statements of a transaction. They run a second time if the transaction was rolled back, so
   * they change nothing but the database: memory follows from the result, after the commit.
   */
  @FunctionalInterface
  interface Write<T> {
    T run(Database database) throws SQLException;
  }

  /** Told of transactions, on the writer's thread. */
  interface Listener {
    /** A transaction is on disk. */
    void committed(int writes, long nanos);

    /** A transaction was rolled back: nothing of it counts. */
    void rolledBack();
  }

  private static final class Waiting<T> {
    final Write<T> write;
    final boolean urgent;
    final boolean erasing;
    final boolean vital;
    final CompletableFuture<T> done = new CompletableFuture<>();
    @Nullable T result;

    Waiting(Write<T> write, boolean urgent, boolean erasing, boolean vital) {
      this.write = write;
      this.urgent = urgent;
      this.erasing = erasing;
      this.vital = vital;
    }

    void run(Database database) throws SQLException {
      result = write.run(database);
    }

    @SuppressWarnings("NullAway") // a result is null only if the write made it so
    void complete() {
      done.complete(result);
    }
  }

  private final Database database;
  private final Listener listener;
  private final BlockingQueue<Waiting<?>> queue = new LinkedBlockingQueue<>();
  private final Thread thread;
  private volatile boolean closed;

  /**
   * @param database handed over: used and closed by the writer's thread
   */
  GroupCommit(String name, Database database, Listener listener) {
    this.database = database;
    this.listener = listener;
    this.thread = Thread.ofPlatform().daemon().name(name + "-store").start(this::run);
  }

  /** Writes at once; completes, on the writer's thread, when it is on disk. */
  <T> CompletionStage<T> submit(Write<T> write) {
    return enqueue(new Waiting<>(write, true, false, false));
  }

  /**
   * The same, however many writes wait: for what must not be lost because somebody has filled the
   * queue. The caller bounds the number of such writes.
   */
  <T> CompletionStage<T> submitVital(Write<T> write) {
    return enqueue(new Waiting<>(write, true, false, true));
  }

  /**
   * The same; what it deletes or replaces is nowhere in the file or its journal when it is done.
   */
  <T> CompletionStage<T> submitErasing(Write<T> write) {
    return enqueue(new Waiting<>(write, true, true, true));
  }

  /** Writes soon, with the next urgent write or alone. A failure is logged. */
  void submitLazily(Write<?> write) {
    enqueue(new Waiting<>(write, false, false, false))
        .whenComplete(
            (_, failure) -> {
              if (failure != null) {
                log.error("a record could not be written", failure);
              }
            });
  }

  private <T> CompletionStage<T> enqueue(Waiting<T> waiting) {
    if (closed) {
      waiting.done.completeExceptionally(new StoreException("the store is closed"));
    } else if (!waiting.vital && queue.size() >= MAX_WAITING) {
      waiting.done.completeExceptionally(new StoreException("too many writes wait"));
    } else {
      queue.add(waiting);
    }
    return waiting.done;
  }

  private void run() {
    try {
      while (!(closed && queue.isEmpty())) {
        commit(collect());
      }
    } catch (InterruptedException e) {
      log.debug("the store's writer was interrupted");
    } finally {
      closed = true;
      queue.forEach(w -> w.done.completeExceptionally(new StoreException("the store is closed")));
      try {
        database.close();
      } catch (SQLException e) {
        log.warn("the party's file could not be closed", e);
      }
    }
  }

  /** Takes what waits, at least one. */
  private List<Waiting<?>> collect() throws InterruptedException {
    List<Waiting<?>> batch = new ArrayList<>();
    Waiting<?> first = queue.take();
    batch.add(first);
    boolean urgent = first.urgent;
    long until = System.nanoTime() + LINGER_NANOS;
    while (batch.size() < MAX_BATCH) {
      Waiting<?> next =
          urgent || closed
              ? queue.poll()
              : queue.poll(until - System.nanoTime(), TimeUnit.NANOSECONDS);
      if (next == null) {
        break;
      }
      batch.add(next);
      urgent |= next.urgent;
    }
    return batch;
  }

  private void commit(List<Waiting<?>> batch) {
    Exception failure = tryCommit(batch);
    if (failure == null) {
      if (batch.stream().anyMatch(w -> w.erasing)) {
        erase();
      }
      batch.forEach(Waiting::complete);
    } else if (batch.size() == 1) {
      batch
          .getFirst()
          .done
          .completeExceptionally(
              new StoreException("the party's file could not be written", failure));
    } else {
      // One bad write must not fail its neighbours.
      log.warn("a transaction of {} writes failed, trying each alone", batch.size(), failure);
      batch.forEach(w -> commit(List.of(w)));
    }
  }

  private void erase() {
    try {
      if (!database.checkpoint()) {
        log.warn("what was deleted stays in the journal until the next checkpoint: it was busy");
      }
    } catch (SQLException e) {
      log.warn("what was deleted stays in the journal until the next checkpoint", e);
    }
  }

  private @Nullable Exception tryCommit(List<Waiting<?>> batch) {
    long began = System.nanoTime();
    try {
      for (Waiting<?> waiting : batch) {
        waiting.run(database);
      }
      database.commit();
      listener.committed(batch.size(), System.nanoTime() - began);
      return null;
    } catch (SQLException | RuntimeException e) {
      try {
        database.rollback();
      } catch (SQLException again) {
        e.addSuppressed(again);
      }
      listener.rolledBack();
      return e;
    }
  }

  /** Writes what was submitted, then closes the file. */
  @Override
  public void close() {
    closed = true;
    try {
      // Something to do, in case the writer waits for it.
      queue.add(new Waiting<>(_ -> true, true, false, true));
      if (!thread.join(CLOSE_TIME)) {
        log.warn("the store's writer did not end in time");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
