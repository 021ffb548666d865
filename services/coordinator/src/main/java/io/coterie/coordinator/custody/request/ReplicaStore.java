package io.coterie.coordinator.custody.request;

import java.time.Duration;

/**
 * Which replicas of this coordinator are there, as all of them see it.
 *
 * <p>A replica takes another one for gone that was not seen for gone-after, while it was itself
 * seen for that long without interruption. So after the database was away for all, and after its
 * own start, it takes only what is free, its own, or left.
 */
public interface ReplicaStore {
  /** Between two heartbeats of a replica. */
  Duration HEARTBEAT = Duration.ofSeconds(1);

  /**
   * How long a replica is not seen that has missed heartbeats, and was not only late. With a
   * gone-after of more than 3 s the difference to that is more than a heartbeat: of an outage for
   * which another one would count as gone, this one notices that it was not seen either.
   *
   * @param goneAfter how long a replica is not seen that is gone
   */
  static Duration interruption(Duration goneAfter) {
    Duration half = goneAfter.dividedBy(2);
    Duration least = HEARTBEAT.multipliedBy(2);
    return half.compareTo(least) > 0 ? half : least;
  }

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
