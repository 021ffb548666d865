package io.coterie.coordinator.custody.request;

import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands work over between replicas: each shows that it is there, and takes over the requests of a
 * replica that is gone. Any replica may do any work, since the parties bind a request to one
 * session and the store keeps one end of it. The handover only sees to it that no two replicas do
 * the same work and that none is left undone.
 */
public final class Handover {
  private static final Logger log = LoggerFactory.getLogger(Handover.class);

  /** The requests of one kind. */
  public interface Work {
    /** As in metrics: a constant of {@code CoordinatorMetrics}. */
    String metricLabel();

    /**
     * Takes up all requests that have not ended and are the work of no replica.
     *
     * @param own also those that an earlier process of this replica has left
     * @return how many
     */
    int takeOver(boolean own);

    /** Cancels the work on requests that were cancelled at another replica. */
    default void heedCancellations() {}
  }

  /** Between two looks. A request that a caller waits for is looked at more often. */
  private static final Duration LOOK = ReplicaStore.HEARTBEAT;

  /** Completes when it is to look at once. */
  private final AtomicReference<CompletableFuture<Void>> call =
      new AtomicReference<>(new CompletableFuture<>());

  private final ReplicaStore replicas;
  private final List<? extends Work> work;
  private final CoordinatorMetrics metrics;
  private final Executor threads;
  private final ReplicaTime time;

  /** Completes when it looks no more. */
  private volatile CompletableFuture<Void> looking = CompletableFuture.completedFuture(null);

  /**
   * Completes when no work is being taken over. On a thread of its own: that may wait for a
   * connection, and this replica is there meanwhile.
   */
  private volatile CompletableFuture<Void> taking = CompletableFuture.completedFuture(null);

  /** While the first looks, the statement that had no answer may still have the rows locked. */
  private static final int OWN_LOOKS = 2;

  /** Whether this replica can work. */
  private volatile boolean able;

  /** Whether it has taken up the work of an earlier process of its name. */
  private boolean resumed;

  /**
   * By work of which a look had no answer, in how many answered ones this replica's own requests
   * are taken up too: the lost look may have made them its own.
   */
  private final Map<Work, Integer> due = new HashMap<>();

  private boolean unseen;
  private boolean untaken;

  private volatile boolean stopping;
  private volatile int there;

  /**
   * The handing over of one replica, not started.
   *
   * @param threads starts the thread that looks
   */
  public Handover(
      ReplicaStore replicas,
      List<? extends Work> work,
      Executor threads,
      ReplicaTime time,
      CoordinatorMetrics metrics) {
    this.replicas = replicas;
    this.work = List.copyOf(work);
    this.metrics = metrics;
    this.threads = threads;
    this.time = time;
    metrics.watchReplicas(() -> there);
  }

  /** Shows from now on that this replica is there, for the first time before this returns. */
  public void start() {
    look();
    CompletableFuture<Void> ended = new CompletableFuture<>();
    looking = ended;
    try {
      threads.execute(() -> run(ended));
    } catch (RejectedExecutionException e) {
      ended.complete(null);
      throw e;
    }
  }

  /** There is a channel: takes up from now on the work that no replica does. */
  public void ready() {
    able = true;
    call.get().complete(null);
  }

  /** Leaves unfinished work to the other replicas, which may begin with it before this returns. */
  public void stop() {
    stopping = true;
    call.get().complete(null);
    try {
      boolean _ = time.await(looking, Long.MAX_VALUE);
      boolean _ = time.await(taking, Long.MAX_VALUE);
      replicas.leave();
    } catch (StoreUnavailableException e) {
      log.warn(
          "the other replicas notice only after gone-after that this one has left: {}",
          e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void run(CompletableFuture<Void> ended) {
    try {
      while (!stopping) {
        if (time.await(call.get(), LOOK.toNanos())) {
          // Before it looks: a call that comes from here on leads to another look.
          call.set(new CompletableFuture<>());
        }
        if (!stopping) {
          look();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      ended.complete(null);
    }
  }

  private void look() {
    try {
      there = replicas.seen();
      unseen = false;
      if (able && taking.isDone()) {
        CompletableFuture<Void> ended = new CompletableFuture<>();
        threads.execute(() -> lookForWork(ended));
        taking = ended;
      }
    } catch (StoreUnavailableException e) {
      if (!unseen) {
        log.warn("cannot show the other replicas that this one is there: {}", e.getMessage());
      }
      unseen = true;
    } catch (RuntimeException e) {
      log.error("this replica failed to show the others that it is there", e);
    }
  }

  private void lookForWork(CompletableFuture<Void> ended) {
    try {
      takeOver(!resumed);
      resumed = true;
      work.forEach(Work::heedCancellations);
      untaken = false;
    } catch (StoreUnavailableException e) {
      if (!untaken) {
        log.warn("cannot take over the work of other replicas: {}", e.getMessage());
      }
      untaken = true;
    } catch (RuntimeException e) {
      log.error("this replica failed to take over the work of others", e);
    } finally {
      ended.complete(null);
    }
  }

  private void takeOver(boolean resuming) {
    StoreUnavailableException unanswered = null;
    for (Work requests : work) {
      int looks = due.getOrDefault(requests, 0);
      boolean own = looks > 0 || resuming;
      try {
        int taken = requests.takeOver(own);
        due.put(requests, Math.max(0, looks - 1));
        // A replica that resumes its own work after a restart takes nothing over.
        if (!own) {
          metrics.takenOver(requests.metricLabel(), taken);
        }
      } catch (StoreUnavailableException e) {
        due.put(requests, OWN_LOOKS);
        unanswered = e;
      }
    }
    if (unanswered != null) {
      throw unanswered;
    }
  }
}
