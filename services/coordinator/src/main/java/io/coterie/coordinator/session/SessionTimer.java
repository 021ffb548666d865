package io.coterie.coordinator.session;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/** The time by which the sessions of a replica end. */
public interface SessionTimer extends ReplicaTime {

  /** Runs a task later; not at once, even if the delay is zero. */
  void after(Duration delay, Runnable task);

  /**
   * The time of this machine.
   *
   * @param pool where tasks run
   */
  static SessionTimer of(Executor pool) {
    ReplicaTime machine = ReplicaTime.ofMachine();
    return new SessionTimer() {
      @Override
      public long nanos() {
        return machine.nanos();
      }

      @Override
      public boolean await(CompletableFuture<?> event, long nanos) throws InterruptedException {
        return machine.await(event, nanos);
      }

      @Override
      public void after(Duration delay, Runnable task) {
        CompletableFuture.delayedExecutor(delay.toNanos(), TimeUnit.NANOSECONDS, pool)
            .execute(task);
      }
    };
  }
}
