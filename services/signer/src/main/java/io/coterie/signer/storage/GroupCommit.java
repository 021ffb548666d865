package io.coterie.signer.storage;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The only writer of the party's file. All writes that wait when the disk is free go into one
 * transaction and one fsync, so the rate of writes is not bounded by the disk's latency.
 */
final class GroupCommit implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(GroupCommit.class);

  /** Writes of one transaction. */
  static final int MAX_BATCH = 256;

  /** Writes that wait; more are refused, but for those that keep a key from being used. */
  static final int MAX_WAITING = 16_384;

  /** How long a write that nobody waits for may wait for company. */
  static final Duration LINGER = Duration.ofMillis(50);

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

  /** Told of transactions, in the runner's tasks. */
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
  private final CommitRunner runner;

  /** In the order given; the lock of the fields below too. */
  private final Queue<Waiting<?>> queue = new ArrayDeque<>();

  /** Whether the runner has been told to commit what waits. */
  private boolean called;

  /** Whether a delayed commit will come. */
  private boolean lingering;

  private boolean closed;

  /**
   * @param database handed over: used and closed in the runner's tasks
   */
  GroupCommit(CommitRunner runner, Database database, Listener listener) {
    this.runner = runner;
    this.database = database;
    this.listener = listener;
  }

  /** Writes at once; completes, in the runner's task, when it is on disk. */
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

  /** The same; deleted and replaced rows are nowhere in the file or its journal when it is done. */
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
    String refusal = add(waiting);
    if (refusal != null) {
      waiting.done.completeExceptionally(new StoreException(refusal));
    }
    return waiting.done;
  }

  /** Adds a write and sees to it that it is committed; says why not otherwise. */
  private @Nullable String add(Waiting<?> waiting) {
    synchronized (queue) {
      if (closed) {
        return "the store is closed";
      }
      if (!waiting.vital && queue.size() >= MAX_WAITING) {
        return "too many writes wait";
      }
      queue.add(waiting);
      if (waiting.urgent) {
        call();
      } else if (!called && !lingering) {
        lingering = true;
        runner.after(LINGER, this::commitAfterLinger);
      }
      return null;
    }
  }

  /** Has what waits committed. With the lock held, so that calls come in the order of writes. */
  private void call() {
    if (!called) {
      called = true;
      runner.execute(this::commitWaiting);
    }
  }

  private void commitAfterLinger() {
    synchronized (queue) {
      lingering = false;
    }
    commitWaiting();
  }

  private void commitWaiting() {
    List<Waiting<?>> batch = take();
    if (!batch.isEmpty()) {
      commit(batch);
    }
  }

  /** Takes what waits, as much as one transaction holds, and calls for the rest. */
  private List<Waiting<?>> take() {
    List<Waiting<?>> batch = new ArrayList<>();
    synchronized (queue) {
      called = false;
      while (batch.size() < MAX_BATCH && !queue.isEmpty()) {
        batch.add(queue.remove());
      }
      if (!queue.isEmpty() && !closed) {
        call();
      }
    }
    return batch;
  }

  /** Commits all that waits and closes the file. */
  private void finish() {
    for (List<Waiting<?>> batch = take(); !batch.isEmpty(); batch = take()) {
      commit(batch);
    }
    try {
      database.close();
    } catch (SQLException e) {
      log.warn("the party's file could not be closed", e);
    }
  }

  private void commit(List<Waiting<?>> batch) {
    Throwable failure = tryCommit(batch);
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
        log.warn("the journal keeps deleted rows until the next checkpoint: the database was busy");
      }
    } catch (SQLException e) {
      log.warn("the journal keeps deleted rows until the next checkpoint", e);
    }
  }

  /**
   * Commits all or nothing. An error in one write counts as its failure too: it must not leave half
   * a transaction for the next commit, nor writers that wait for ever.
   */
  private @Nullable Throwable tryCommit(List<Waiting<?>> batch) {
    long began = runner.nanos();
    try {
      database.requireTransaction();
      for (Waiting<?> waiting : batch) {
        waiting.run(database);
      }
      runner.committing();
      database.commit();
      listener.committed(batch.size(), runner.nanos() - began);
      return null;
    } catch (SQLException | RuntimeException | Error e) {
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
    synchronized (queue) {
      if (closed) {
        return;
      }
      closed = true;
    }
    try {
      if (!runner.close(this::finish, CLOSE_TIME)) {
        log.warn("the store's writer did not end in time");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
