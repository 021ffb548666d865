package io.coterie.signer.group;

import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.trust.Member;
import java.time.Instant;
import java.util.List;

/**
 * An order about a group after everything in it that can be checked without the core has been.
 *
 * @param members issuers and openers, by this party's own roster
 * @param deadline when this party ends the session
 */
record GroupPlan(
    SessionId id,
    GroupStep step,
    VerifiedIntent.GroupCreation intent,
    GroupMembers members,
    Instant deadline) {

  String group() {
    return intent.key();
  }

  int epoch() {
    return intent.epoch();
  }

  GroupRecord.Origin origin() {
    return new GroupRecord.Origin(intent.requester(), intent.requestId(), intent.digest());
  }

  /** The parties that do the step, in ascending order of their ids. */
  List<Member> doers() {
    return switch (step) {
      case GroupStep.Opening _ -> members.openers();
      case GroupStep.Issuing _, GroupStep.Publish _ -> members.issuers();
      case GroupStep.Keep _ -> members.all();
    };
  }
}
