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
    VerifiedIntent.OfGroup intent,
    GroupMembers members,
    Instant deadline) {

  String group() {
    return intent.key();
  }

  int epoch() {
    return intent.epoch();
  }

  /** The session that its envelopes name: that of the order, or the one that a member has drawn. */
  SessionId session() {
    return step instanceof GroupStep.Join join ? join.session() : id;
  }

  /** The step of an order that makes a group. */
  GroupStep.Making making() {
    return (GroupStep.Making) step;
  }

  /** The step of an order that admits a member. */
  GroupStep.Admission admission() {
    return (GroupStep.Admission) step;
  }

  /** The step of an order that opens an approval. */
  GroupStep.Audit audit() {
    return (GroupStep.Audit) step;
  }

  GroupRecord.Origin origin() {
    return new GroupRecord.Origin(intent.requester(), intent.requestId(), intent.digest());
  }

  /** The parties that do the step, in ascending order of their ids. */
  List<Member> doers() {
    return switch (step) {
      case GroupStep.Opening _, GroupStep.Open _ -> members.openers();
      case GroupStep.Issuing _,
          GroupStep.Publish _,
          GroupStep.Reserve _,
          GroupStep.Register _,
          GroupStep.Members _ ->
          members.issuers();
      case GroupStep.Keep _ -> members.all();
      case GroupStep.Join join ->
          members.issuers().stream()
              .filter(issuer -> join.issuers().contains(issuer.partyId()))
              .toList();
    };
  }
}
