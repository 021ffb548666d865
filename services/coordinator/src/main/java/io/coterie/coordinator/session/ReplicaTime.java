package io.coterie.coordinator.session;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The time by which a replica measures, and in which its threads wait. */
public interface ReplicaTime {

  /** A clock that only goes forward, ns. */
  long nanos();

  /**
   * Waits until something has happened, or for so long.
   *
   * @param event completes when it has happened, also with a failure
   * @return whether it has happened
   */
  boolean await(CompletableFuture<?> event, long nanos) throws InterruptedException;

  /** The time of this machine. */
  static ReplicaTime ofMachine() {
    return new ReplicaTime() {
      @Override
      public long nanos() {
        return System.nanoTime();
      }

      @Override
      public boolean await(CompletableFuture<?> event, long nanos) throws InterruptedException {
        try {
          event.get(nanos, TimeUnit.NANOSECONDS);
          return true;
        } catch (TimeoutException e) {
          return false;
        } catch (ExecutionException | CancellationException e) {
          return true;
        }
      }
    };
  }
}
