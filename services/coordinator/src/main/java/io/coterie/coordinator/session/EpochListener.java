package io.coterie.coordinator.session;

import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.trust.Member;

/** Hears which epoch of a key a party says that it uses. */
@FunctionalInterface
public interface EpochListener {

  /**
   * A party has answered, or pretends to. Does not block.
   *
   * @param party that the channel has proved as the sender
   * @param answer not checked yet
   */
  void answered(Member party, EpochAnswer answer);
}
