package io.coterie.coordinator.custody.presignature;

import io.coterie.coordinator.custody.presignature.PresignatureStock.Presignature;
import io.coterie.coordinator.session.ReplicaTime;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** One of the presignatures in the making, for the request that holds this. */
public final class Promise {
  private final CompletableFuture<Optional<Presignature>> made = new CompletableFuture<>();
  private final PresignatureStock stock;
  private final Shelf shelf;

  Promise(PresignatureStock stock, Shelf shelf) {
    this.stock = stock;
    this.shelf = shelf;
  }

  /** Completes with the presignature; empty if there will be none. */
  CompletableFuture<Optional<Presignature>> made() {
    return made;
  }

  Shelf shelf() {
    return shelf;
  }

  /** Waits for the presignature: empty if there will be none, or none in that time. */
  public Optional<Presignature> await(ReplicaTime time, Duration patience)
      throws InterruptedException {
    try {
      return time.await(made, patience.toNanos()) ? made.join() : stock.abandon(this);
    } catch (InterruptedException e) {
      stock.abandon(this);
      throw e;
    }
  }
}
