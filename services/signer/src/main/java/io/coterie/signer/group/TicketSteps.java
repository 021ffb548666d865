package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.AnswerApplication;
import io.coterie.proto.core.v1.CountRun;
import io.coterie.proto.core.v1.DropRun;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupTerms;
import io.coterie.proto.core.v1.IssuerRecords;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.RegisterMember;
import io.coterie.proto.core.v1.Reserve;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.signer.party.GroupCore;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The core's part of an admission. The records that it gives are to be stored before anything that
 * follows from them leaves. Steps are cited as [U1] (docs/protocols/wbb.md).
 */
final class TicketSteps {
  private static final Logger log = LoggerFactory.getLogger(TicketSteps.class);

  private final GroupCalls core;
  private final TicketStore store;
  private final Member self;

  TicketSteps(GroupCore core, TicketStore store, Member self) {
    this.core = new GroupCalls(core, NotDoneException::ofAdmission);
    this.store = store;
    this.self = self;
  }

  /** The key that the ticket of an order is for. */
  static ByteString identity(GroupPlan plan) {
    return ((VerifiedIntent.Ticket) plan.intent()).identity();
  }

  /** This issuer's share of a group's key; an issuer that keeps the group has one. */
  static GroupRecord.Share issuing(GroupRecord group) {
    GroupRecord.Share share = group.issuing();
    if (share == null) {
      throw new IllegalStateException("an issuer of " + group.group() + " has no share");
    }
    return share;
  }

  /** [U1] the reservation of the ticket: the stored one, or one to be stored. */
  ByteString reservation(GroupPlan plan, GroupRecord group, GroupStep.Reserve step)
      throws NotDoneException {
    Reserve.Builder reserve =
        Reserve.newBuilder()
            .setGroup(group(group))
            .setTicket(plan.intent().digest())
            .setIdentity(identity(plan))
            .setApplication(step.application())
            .setRecords(records(plan));
    return core.call(GroupCall.newBuilder().setReserve(reserve)).getReserved().getReservation();
  }

  private IssuerRecords records(GroupPlan plan) {
    IssuerRecords.Builder records =
        IssuerRecords.newBuilder().setMembers(store.members(plan.group(), plan.epoch()));
    store
        .find(plan.group(), plan.epoch(), plan.intent().digest())
        .ifPresent(
            ticket -> {
              records.setReservation(ticket.reservation());
              if (ticket.member() != null) {
                records.setMember(ticket.member().bytes());
              }
            });
    store
        .ofIdentity(plan.group(), plan.epoch(), identity(plan))
        .ifPresent(
            ticket ->
                records.setIdentityReserved(true).setIdentityRegistered(ticket.member() != null));
    return records.build();
  }

  /** [U2] the answer to the application of a reservation that is on the disk. */
  ByteString answer(GroupRecord group, ByteString reservation) throws NotDoneException {
    AnswerApplication.Builder answer =
        AnswerApplication.newBuilder()
            .setGroup(group(group))
            .setReservation(reservation)
            .setParty(self.partyId())
            .setSealedShare(issuing(group).sealed());
    return core.call(GroupCall.newBuilder().setAnswerApplication(answer))
        .getApplicationAnswered()
        .getShare();
  }

  /** [U4] the member of a ticket: the stored one, or one to be stored. */
  TicketRecord.Member member(
      GroupPlan plan, GroupRecord group, GroupStep.Register step, TicketRecord ticket)
      throws NotDoneException {
    RegisterMember.Builder register =
        RegisterMember.newBuilder()
            .setGroup(group(group))
            .setReservation(ticket.reservation())
            .addAllShares(step.shares())
            .setAcceptance(step.acceptance())
            .setRecords(records(plan));
    var made = core.call(GroupCall.newBuilder().setRegisterMember(register)).getMemberRegistered();
    return new TicketRecord.Member(
        made.getMember(), made.getPart(), 0, made.getPoint(), made.getAcceptance());
  }

  /** [U5] the member with the run that it has ordered, which the vault has from now on. */
  TicketRecord.Member counted(GroupRecord group, GroupStep.Join step, TicketRecord.Member member)
      throws NotDoneException {
    CountRun.Builder count =
        CountRun.newBuilder()
            .setGroup(group(group))
            .setMember(member.bytes())
            .setPart(member.part())
            .setOrder(step.runOrder())
            .setSessionId(step.session().bytes());
    var counted = core.call(GroupCall.newBuilder().setCountRun(count)).getRunCounted();
    return member.counted(counted.getMember(), counted.getNumber());
  }

  /** A run that was counted and does not begin. */
  void drop(SessionId session) {
    try {
      core.call(
          GroupCall.newBuilder().setDropRun(DropRun.newBuilder().setSessionId(session.bytes())));
    } catch (NotDoneException e) {
      log.error("a run of a join could not be dropped: {}", e.detail());
    }
  }

  /** [T0] the session of a run, with the member as one more party. */
  SessionConfig session(GroupPlan plan, GroupRecord group, TicketRecord ticket) {
    List<Party> parties = new ArrayList<>(plan.doers().stream().map(GroupMembers::party).toList());
    parties.add(
        Party.newBuilder()
            .setId(plan.members().memberNumber())
            .setEvidenceKey(ticket.identity())
            .build());
    parties.sort(Comparator.comparingInt(Party::getId));
    return SessionConfig.newBuilder()
        .setProtocol(ProtocolId.PROTOCOL_ID_ISSUING_JOIN)
        .setSessionId(plan.session().bytes())
        .setSelf(self.partyId())
        .addAllParties(parties)
        .setThreshold(plan.members().issuerThreshold())
        .setKeyId(plan.group())
        .setEpoch(plan.epoch())
        .setGroup(GroupTerms.newBuilder().setParties(group.parties()).setAttested(group.attested()))
        .build();
  }

  private static Group group(GroupRecord group) {
    return GroupCalls.group(group.parties(), group.attested());
  }
}
