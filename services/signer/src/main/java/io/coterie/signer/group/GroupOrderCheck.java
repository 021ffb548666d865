package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.JoinGroup;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.OrderCheck;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Instant;
import java.util.List;

/**
 * Checks an order about a group before this party believes it: its form, the requester's signature
 * over the intent, this party's policy, and its roster. Does not judge what other parties have
 * made: that is the core's.
 */
final class GroupOrderCheck {
  private static final int NONCE_BYTES = 32;

  private final PolicyGate gate;
  private final Roster roster;
  private final Member self;
  private final SessionLimits limits;
  private final GroupStore store;

  GroupOrderCheck(
      PolicyGate gate, Roster roster, Member self, SessionLimits limits, GroupStore store) {
    this.gate = gate;
    this.roster = roster;
    this.self = self;
    this.limits = limits;
    this.store = store;
  }

  /** The plan of an order, whatever the time is. */
  GroupPlan plan(SessionId id, ByteString bytes) throws NotDoneException {
    GroupOrder order = parse(bytes);
    GroupStep step = step(order);
    VerifiedIntent.OfGroup intent = admitted(order);
    agree(
        intent.installation().equals(roster.installation()),
        IntentProblem.INSTALLATION_OTHER.text());
    GroupMembers members =
        switch (intent) {
          case VerifiedIntent.GroupCreation creation -> {
            agree(step instanceof GroupStep.Making, "the intent makes a group");
            yield members(creation);
          }
          case VerifiedIntent.Ticket ticket -> {
            agree(step instanceof GroupStep.Admission, "the intent admits a member");
            yield kept(ticket);
          }
          case VerifiedIntent.Opening opening -> {
            agree(step instanceof GroupStep.Audit, "the intent opens an approval");
            yield kept(opening);
          }
        };
    GroupPlan plan =
        new GroupPlan(id, step, intent, members, OrderCheck.instant(order.getDeadline()));
    agree(plan.doers().contains(self), "the step is not for this party");
    if (step instanceof GroupStep.Join join) {
      agree(
          plan.doers().size() == join.issuers().size()
              && join.issuers().size() >= members.issuerThreshold(),
          "the issuers of the join are not enough issuers of the group");
    }
    return plan;
  }

  private GroupMembers members(VerifiedIntent.GroupCreation intent) throws NotDoneException {
    String unknown = GroupMembers.unknown(intent, roster).orElse(null);
    NotDoneException.unless(
        unknown == null,
        RefusalReason.REFUSAL_REASON_UNKNOWN_PARTY,
        "the roster has no party " + unknown);
    return GroupMembers.of(intent, roster).orElseThrow();
  }

  /** Those of the group that this party keeps: the intent names nobody. */
  private GroupMembers kept(VerifiedIntent.OfGroup intent) throws NotDoneException {
    GroupRecord kept =
        store
            .find(intent.key(), intent.epoch())
            .filter(record -> !record.attested().isEmpty())
            .orElse(null);
    if (kept == null) {
      throw new NotDoneException(
          RefusalReason.REFUSAL_REASON_GROUP_STEP, "this party keeps no such epoch of the group");
    }
    return GroupMembers.of(kept.parties(), roster)
        .orElseThrow(
            () ->
                new NotDoneException(
                    RefusalReason.REFUSAL_REASON_GROUP_STEP,
                    "the roster has changed since the epoch was made"));
  }

  private static GroupOrder parse(ByteString bytes) throws NotDoneException {
    require(bytes.size() <= SessionLimits.MAX_ORDER_BYTES, "the order is too large");
    GroupOrder order;
    try {
      order = GroupOrder.parseFrom(bytes);
    } catch (InvalidProtocolBufferException e) {
      throw malformed("the order does not decode");
    }
    require(order.getUnknownFields().isEmpty(), "the order has unknown fields");
    require(order.getCoordinatorNonce().size() == NONCE_BYTES, "the nonce does not have 32 bytes");
    require(order.hasSignedIntent(), "the order has no intent");
    require(
        order.hasDeadline() && OrderCheck.isValid(order.getDeadline()),
        "the order has no valid deadline");
    return order;
  }

  private VerifiedIntent.OfGroup admitted(GroupOrder order) throws NotDoneException {
    VerifiedIntent intent;
    try {
      intent = gate.admit(order.getSignedIntent());
    } catch (RefusedException e) {
      throw NotDoneException.of(e);
    }
    if (intent instanceof VerifiedIntent.OfGroup ofGroup) {
      return ofGroup;
    }
    throw new NotDoneException(
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, "the intent is about no group");
  }

  private static GroupStep step(GroupOrder order) throws NotDoneException {
    return switch (order.getStepCase()) {
      case MAKE_OPENERS_KEY -> new GroupStep.Opening();
      case MAKE_ISSUING_KEY -> new GroupStep.Issuing(order.getMakeIssuingKey().getOpeners());
      case PUBLISH_GROUP -> new GroupStep.Publish(order.getPublishGroup().getOpeners());
      case KEEP_GROUP -> new GroupStep.Keep(order.getKeepGroup().getAttested());
      case RESERVE_TICKET -> new GroupStep.Reserve(order.getReserveTicket().getApplication());
      case REGISTER_MEMBER ->
          new GroupStep.Register(
              order.getRegisterMember().getSharesList(), order.getRegisterMember().getAcceptance());
      case JOIN_GROUP -> join(order.getJoinGroup());
      case OPEN_APPROVAL -> new GroupStep.Open();
      case LIST_MEMBERS -> new GroupStep.Members(order.getListMembers().getAfter());
      case STEP_NOT_SET -> throw malformed("the order names no step");
    };
  }

  private static GroupStep join(JoinGroup join) throws NotDoneException {
    require(
        join.getRunSessionId().size() == SessionId.LENGTH,
        "the id of the join's session does not have 32 bytes");
    List<Integer> issuers = join.getIssuersList();
    require(
        issuers.size() <= SessionLimits.MAX_PARTIES
            && issuers.stream().sorted().distinct().toList().equals(issuers),
        "the issuers of the join are not in ascending order");
    return new GroupStep.Join(join.getRunOrder(), new SessionId(join.getRunSessionId()), issuers);
  }

  /** Refuses what may not be begun any more. Apart, because what was done may be told for ever. */
  void inTime(GroupPlan plan, Instant now) throws NotDoneException {
    VerifiedIntent.OfGroup intent = plan.intent();
    NotDoneException.unless(
        !now.isAfter(intent.notAfter().plus(limits.clockSkew())),
        RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
        "the intent has expired");
    NotDoneException.unless(
        !intent.isAhead(now, limits.clockSkew()),
        RefusalReason.REFUSAL_REASON_FORBIDDEN,
        IntentProblem.REQUEST_ID_AHEAD.text());
    agree(
        !plan.deadline().isAfter(intent.notAfter()),
        "the deadline is later than the intent allows");
    deadlineInTime(plan, now);
  }

  /** The same of an order that follows from what was begun in time: only its deadline counts. */
  void deadlineInTime(GroupPlan plan, Instant now) throws NotDoneException {
    NotDoneException.unless(
        !plan.deadline().isAfter(now.plus(limits.maxSessionTime()).plus(limits.clockSkew())),
        RefusalReason.REFUSAL_REASON_DEADLINE_TOO_FAR,
        "the deadline is later than this party lets a session run");
    NotDoneException.unless(
        plan.deadline().isAfter(now),
        RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
        "the order's deadline has passed");
  }

  private static NotDoneException malformed(String detail) {
    return new NotDoneException(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, detail);
  }

  private static void require(boolean condition, String detail) throws NotDoneException {
    NotDoneException.unless(condition, RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, detail);
  }

  private static void agree(boolean condition, String detail) throws NotDoneException {
    NotDoneException.unless(condition, RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, detail);
  }
}
