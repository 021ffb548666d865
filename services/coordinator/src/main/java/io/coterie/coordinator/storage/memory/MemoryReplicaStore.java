package io.coterie.coordinator.storage.memory;

import io.coterie.coordinator.custody.request.ReplicaStore;

/** The replicas that are there, by the clock of the database. */
final class MemoryReplicaStore implements ReplicaStore {
  private final MemoryDatabase database;
  private final String replica;

  MemoryReplicaStore(MemoryDatabase database, String replica) {
    this.database = database;
    this.replica = replica;
  }

  @Override
  public int seen() {
    return database.seen(replica);
  }

  @Override
  public void leave() {
    database.left(replica);
  }
}
