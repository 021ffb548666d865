package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.OrderCheck;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Instant;

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

  GroupOrderCheck(PolicyGate gate, Roster roster, Member self, SessionLimits limits) {
    this.gate = gate;
    this.roster = roster;
    this.self = self;
    this.limits = limits;
  }

  /** The plan of an order, whatever the time is. */
  GroupPlan plan(SessionId id, ByteString bytes) throws NotDoneException {
    GroupOrder order = parse(bytes);
    VerifiedIntent.GroupCreation intent = admitted(order);
    agree(
        intent.installation().equals(roster.installation()),
        IntentProblem.INSTALLATION_OTHER.text());
    String unknown = GroupMembers.unknown(intent, roster).orElse(null);
    NotDoneException.unless(
        unknown == null,
        RefusalReason.REFUSAL_REASON_UNKNOWN_PARTY,
        "the roster has no party " + unknown);
    GroupMembers members = GroupMembers.of(intent, roster).orElseThrow();
    GroupPlan plan =
        new GroupPlan(id, step(order), intent, members, OrderCheck.instant(order.getDeadline()));
    agree(plan.doers().contains(self), "the step is not for this party");
    return plan;
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

  private VerifiedIntent.GroupCreation admitted(GroupOrder order) throws NotDoneException {
    VerifiedIntent intent;
    try {
      intent = gate.admit(order.getSignedIntent());
    } catch (RefusedException e) {
      throw NotDoneException.of(e);
    }
    if (intent instanceof VerifiedIntent.GroupCreation creation) {
      return creation;
    }
    throw new NotDoneException(
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, "the intent asks for no group");
  }

  private static GroupStep step(GroupOrder order) throws NotDoneException {
    return switch (order.getStepCase()) {
      case MAKE_OPENERS_KEY -> new GroupStep.Opening();
      case MAKE_ISSUING_KEY -> new GroupStep.Issuing(order.getMakeIssuingKey().getOpeners());
      case PUBLISH_GROUP -> new GroupStep.Publish(order.getPublishGroup().getOpeners());
      case KEEP_GROUP -> new GroupStep.Keep(order.getKeepGroup().getAttested());
      case STEP_NOT_SET -> throw malformed("the order names no step");
    };
  }

  /** Refuses what may not be begun any more. Apart, because what was done may be told for ever. */
  void inTime(GroupPlan plan, Instant now) throws NotDoneException {
    VerifiedIntent.GroupCreation intent = plan.intent();
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
