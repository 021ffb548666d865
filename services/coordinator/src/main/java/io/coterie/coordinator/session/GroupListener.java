package io.coterie.coordinator.session;

import io.coterie.proto.party.v1.GroupReport;
import io.coterie.trust.Member;

/** Hears how parties did orders about groups. */
@FunctionalInterface
public interface GroupListener {

  /**
   * A party has reported, or pretends to. Does not block.
   *
   * @param party that the channel has proved as the sender
   * @param report not checked yet
   */
  void reported(Member party, GroupReport report);
}
