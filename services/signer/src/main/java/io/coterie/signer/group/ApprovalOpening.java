package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.opening.ShareSeal;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.ShareOpening;
import io.coterie.proto.custody.v1.GroupMember;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.ApprovalOpened;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.MembersListed;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The opening of approvals, one at a time: an opener shares that of an approval which holds for the
 * intent's request, and an issuer tells the registry. The request is claimed with an audit record
 * before anything is told, so an opening leaves a trace at each party that took part in it. The
 * share is sealed to the requester: the coordinator learns nothing from it.
 */
final class ApprovalOpening implements GroupWork {
  private static final Logger log = LoggerFactory.getLogger(ApprovalOpening.class);

  /** Entries of the registry in one report. */
  static final int PAGE = 100;

  private final GroupPorts ports;
  private final GroupOrderCheck check;
  private final RunControl control;
  private final Member self;
  private final GroupCalls core;
  private final GroupClaims claims;

  ApprovalOpening(GroupPorts ports, GroupOrderCheck check, RunControl control, Member self) {
    this.ports = ports;
    this.check = check;
    this.control = control;
    this.self = self;
    this.core = new GroupCalls(ports.calls(), NotDoneException::ofOpening);
    this.claims = new GroupClaims(ports.memory());
  }

  @Override
  public void begin(GroupRun run) throws NotDoneException {
    GroupPlan plan = run.plan();
    check.inTime(plan, ports.clock().instant());
    control.requireFree(run);
    GroupRecord group = ports.memory().groups().find(plan.group(), plan.epoch()).orElseThrow();
    GroupReport.Builder report =
        switch (plan.audit()) {
          case GroupStep.Open _ -> opened(plan, group);
          case GroupStep.Members(ByteString after) -> listed(plan, after);
        };
    claims
        .claim(run)
        .whenComplete(
            (refusal, failure) ->
                control.execute(run, () -> claimed(run, report, refusal, failure)));
  }

  private void claimed(
      GroupRun run,
      GroupReport.Builder report,
      @Nullable Optional<NotDoneException> refusal,
      @Nullable Throwable failure) {
    if (run.over) {
      return;
    }
    if (failure != null || refusal == null) {
      log.error("the claim of an opening could not be stored", failure);
      control.refuse(run, RefusalReason.REFUSAL_REASON_INTERNAL, "the claim could not be stored");
    } else if (refusal.isPresent()) {
      control.refuse(run, refusal.get());
    } else {
      control.done(run, report);
    }
  }

  /** [O1] this opener's share, sealed. */
  private GroupReport.Builder opened(GroupPlan plan, GroupRecord group) throws NotDoneException {
    VerifiedIntent.Opening opening = (VerifiedIntent.Opening) plan.intent();
    GroupRecord.Share share = group.opening();
    if (share == null) {
      throw new IllegalStateException("an opener of " + group.group() + " has no share");
    }
    ShareOpening.Builder call =
        ShareOpening.newBuilder()
            .setGroup(GroupCalls.group(group.parties(), group.attested()))
            .setRequest(
                ApprovalRequest.newBuilder()
                    .setDigest(opening.request())
                    .setDecision(
                        opening.rejection()
                            ? ApprovalDecision.APPROVAL_DECISION_REJECT
                            : ApprovalDecision.APPROVAL_DECISION_APPROVE))
            .setApproval(opening.approval())
            .setParty(self.partyId())
            .setSealedShare(share.sealed());
    ByteString plain =
        core.call(GroupCall.newBuilder().setShareOpening(call)).getOpeningShared().getShare();
    ByteString sealed =
        ShareSeal.seal(opening.recipient(), self.partyId(), opening.digest(), plain, ports.random())
            .orElseThrow(
                () ->
                    new NotDoneException(
                        RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
                        "the recipient of the intent is no key"));
    return GroupReport.newBuilder()
        .setApprovalOpened(ApprovalOpened.newBuilder().setSealedShare(sealed));
  }

  /** [R7] a page of this issuer's registry. */
  private GroupReport.Builder listed(GroupPlan plan, ByteString after) {
    List<TicketRecord> found =
        ports.memory().tickets().registered(plan.group(), plan.epoch(), after, PAGE + 1);
    MembersListed.Builder page = MembersListed.newBuilder().setMore(found.size() > PAGE);
    found.stream().limit(PAGE).forEach(ticket -> page.addMembers(entry(ticket)));
    return GroupReport.newBuilder().setMembersListed(page);
  }

  private static GroupMember entry(TicketRecord ticket) {
    TicketRecord.Member member = ticket.member();
    if (member == null) {
      throw new IllegalStateException("a ticket without a member is listed");
    }
    SignedIntent intent;
    try {
      intent = SignedIntent.parseFrom(ticket.intent());
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored ticket does not decode", e);
    }
    return GroupMember.newBuilder()
        .setTicket(intent)
        .setPoint(member.point())
        .setAcceptance(member.acceptance())
        .build();
  }

  @Override
  public void done(GroupRun run, Done done) {
    throw new IllegalStateException("an approval is opened without a session");
  }
}
