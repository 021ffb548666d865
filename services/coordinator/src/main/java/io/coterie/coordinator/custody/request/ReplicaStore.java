package io.coterie.coordinator.custody.request;

/** Which replicas of this coordinator are there, as all of them see it. */
public interface ReplicaStore {

  /**
   * Notes that this replica is there: for a while, what it works on is nobody else's.
   *
   * @return how many are there, this one included
   */
  int seen();

  /**
   * This replica works no more: others may take over at once the requests that it has not ended.
   */
  void leave();
}
