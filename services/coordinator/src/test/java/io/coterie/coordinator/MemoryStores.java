package io.coterie.coordinator;

import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.coordinator.custody.request.ReplicaStore;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.storage.memory.MemoryDatabase;
import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * One database in memory, as several replicas see it. {@link StoreContractTest} holds it to that.
 */
public final class MemoryStores {
  private final MemoryDatabase database;

  /** Replicas are there until they leave. */
  public MemoryStores() {
    this(Duration.ofMinutes(10));
  }

  MemoryStores(Duration goneAfter) {
    this(System::nanoTime, goneAfter);
  }

  /**
   * Replicas are there for so long after they were seen.
   *
   * @param nanoTime monotonic clock, ns
   */
  public MemoryStores(LongSupplier nanoTime, Duration goneAfter) {
    this.database = new MemoryDatabase(nanoTime, goneAfter);
  }

  /** The stores of the replica of that name. */
  public Replica replica(String name) {
    return new Replica(
        database.keys(name),
        database.renewals(name),
        database.signings(name),
        database.presence(name),
        database.ledgers());
  }

  /** The stores of one replica. */
  public record Replica(
      KeyStore keys,
      RenewalStore renewals,
      SigningStore signings,
      ReplicaStore presence,
      LedgerStore ledgers) {}
}
