package io.coterie.coordinator.custody.request;

import java.util.concurrent.CompletableFuture;

/** Tells everything that works on requests that this replica stops. Thread-safe. */
public final class Stopping {
  private final CompletableFuture<Void> begun = new CompletableFuture<>();

  /**
   * Nothing new starts; each request stops at its next step, and another replica goes on with it.
   */
  public void begin() {
    begun.complete(null);
  }

  /** Whether {@link #begin} was called. */
  public boolean hasBegun() {
    return begun.isDone();
  }

  /** Completes with {@link #begin}. */
  CompletableFuture<Void> event() {
    return begun;
  }
}
