package io.coterie.coordinator.custody;

import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How replicas hand their work to each other: each shows that it is there, and takes over what one
 * has left that is not. Any of them may do any work, since the parties bind a request to one
 * session and the store keeps one end of it; all that this does is that no two of them do the same,
 * and that nothing is left undone.
 */
public final class Handover {
  private static final Logger log = LoggerFactory.getLogger(Handover.class);

  /** Between two looks. Where somebody waits for a request, that one is looked at more often. */
  private static final Duration LOOK = Duration.ofSeconds(1);

  private final Semaphore calls = new Semaphore(0);
  private final ReplicaStore replicas;
  private final Keys keys;
  private final Renewals renewals;
  private final Signings signings;
  private final CoordinatorMetrics metrics;
  private final Duration goneAfter;
  private final Thread looking;

  /** Whether this replica can work. */
  private volatile boolean able;

  /** Whether it has taken up what an earlier process of its name had left. */
  private boolean resumed;

  private boolean unseen;
  private long seenNanos = System.nanoTime();

  /** Until when this replica cannot tell who is gone from who was as blind as itself. */
  private long blindUntilNanos = seenNanos;

  private volatile boolean stopping;
  private volatile int there;

  /**
   * The handing over of one replica, not started.
   *
   * @param goneAfter how long a replica counts as there after it was seen
   */
  public Handover(
      ReplicaStore replicas,
      Keys keys,
      Renewals renewals,
      Signings signings,
      Duration goneAfter,
      CoordinatorMetrics metrics) {
    this.goneAfter = goneAfter;
    this.replicas = replicas;
    this.keys = keys;
    this.renewals = renewals;
    this.signings = signings;
    this.metrics = metrics;
    this.looking = Thread.ofVirtual().name("handover").unstarted(this::run);
    metrics.watchReplicas(() -> there);
  }

  /** Shows from now on that this replica is there; it has done so before this returns. */
  public void start() {
    look();
    looking.start();
  }

  /** There is a channel: takes up from now on what is nobody's work. */
  public void ready() {
    able = true;
    calls.release();
  }

  /** Leaves what is not done to the others, which may begin with it before this returns. */
  public void stop() {
    stopping = true;
    calls.release();
    try {
      looking.join();
      replicas.leave();
    } catch (StoreUnavailableException e) {
      log.warn("the others find out by themselves that this replica has left: {}", e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void run() {
    try {
      while (!stopping) {
        calls.tryAcquire(LOOK.toNanos(), TimeUnit.NANOSECONDS);
        calls.drainPermits();
        if (!stopping) {
          look();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void look() {
    try {
      there = replicas.seen();
      notice();
      if (able) {
        if (!resumed || System.nanoTime() - blindUntilNanos >= 0) {
          takeOver(!resumed);
          resumed = true;
        }
        renewals.heedCancellations();
      }
      unseen = false;
    } catch (StoreUnavailableException e) {
      if (!unseen) {
        log.warn("the others do not see this replica: {}", e.getMessage());
      }
      unseen = true;
    } catch (RuntimeException e) {
      log.error("a look at what others have left failed", e);
    }
  }

  /**
   * When the database was away, nobody was seen, and the first who is back must not take the others
   * for gone.
   */
  private void notice() {
    long now = System.nanoTime();
    if (now - seenNanos > Math.max(goneAfter.toNanos() / 2, 2 * LOOK.toNanos())) {
      blindUntilNanos = now + goneAfter.toNanos();
    }
    seenNanos = now;
  }

  /**
   * Takes up what is nobody's.
   *
   * @param own also what an earlier process of this replica has left, which is no handing over
   */
  private void takeOver(boolean own) {
    int created = keys.takeOver(own);
    int renewed = renewals.takeOver(own);
    int signed = signings.takeOver(own);
    if (!own) {
      metrics.takenOver(CoordinatorMetrics.KEY_CREATION_WORK, created);
      metrics.takenOver(CoordinatorMetrics.KEY_RENEWAL_WORK, renewed);
      metrics.takenOver(CoordinatorMetrics.SIGNING_WORK, signed);
    }
  }
}
