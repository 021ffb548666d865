package io.coterie.coordinator.session;

import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.trust.Member;

/** Hears what a party says of a request that its requester cancels. */
@FunctionalInterface
public interface CancelListener {

  /**
   * A party has answered, or pretends to. Does not block.
   *
   * @param party that the channel has proved as the sender
   * @param answer not checked yet
   */
  void cancelled(Member party, CancelAnswer answer);
}
