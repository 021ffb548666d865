package io.coterie.coordinator.session;

import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.trust.Member;

/** Hears how parties did orders about groups, and the issuers of a join talk to its member. */
public interface GroupListener {

  /**
   * A party has reported, or pretends to. Does not block.
   *
   * @param party that the channel has proved as the sender
   * @param report not checked yet
   */
  void reported(Member party, GroupReport report);

  /**
   * A party sends an envelope for the member of a join, or pretends to. Does not block.
   *
   * @param party that the channel has proved as the sender
   */
  void enveloped(Member party, SessionEnvelope envelope);
}
