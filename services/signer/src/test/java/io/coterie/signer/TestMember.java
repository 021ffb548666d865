package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.mpc.Vault;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.AcceptAnswers;
import io.coterie.proto.core.v1.Apply;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.Approve;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.GroupTerms;
import io.coterie.proto.core.v1.OrderRun;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.RunOrdered;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.JoinGroup;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RegisterMember;
import io.coterie.proto.party.v1.ReserveTicket;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.trust.Member;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * A person with an identity and a vault of its own, who asks for admission through a coordinator.
 */
final class TestMember implements AutoCloseable {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Installation i;
  private final GroupMaking making;
  private final Group group;
  final Vault vault;
  final Vault.SealedIdentity identity;
  SignedIntent ticket;

  private ByteString applicant = ByteString.EMPTY;
  ByteString application = ByteString.EMPTY;
  private ByteString candidate = ByteString.EMPTY;

  /** Before its last run. */
  private ByteString earlier = ByteString.EMPTY;

  ByteString acceptance = ByteString.EMPTY;
  ByteString point = ByteString.EMPTY;
  int runs;

  /** Done.sealed_share of the join. */
  ByteString membership = ByteString.EMPTY;

  /** With a ticket of its own. */
  TestMember(Installation i, GroupMaking making, ByteString attested) {
    this.i = i;
    this.making = making;
    this.group =
        Group.newBuilder().setParties(making.members.parties()).setAttested(attested).build();
    byte[] dataKey = new byte[32];
    RANDOM.nextBytes(dataKey);
    this.vault = NativeMpcCore.load().openVault(dataKey);
    this.identity = vault.createIdentity("member");
    this.ticket = ticket(intent());
  }

  /** One that has joined. */
  static TestMember joined(Installation i, GroupMaking making, ByteString attested) {
    TestMember member = new TestMember(i, making, attested);
    List<Member> issuers = making.members.issuers();
    member.register(issuers);
    List<Member> two = issuers.subList(0, 2);
    try (Run run = member.new Run(two)) {
      SessionId order = making.give(run.order(), two);
      assertThat(run.carried().hasDone()).isTrue();
      two.forEach(issuer -> making.awaitFrom(issuer, order));
    }
    return member;
  }

  TicketIntent.Builder intent() {
    return TicketIntent.newBuilder()
        .setRequestId(Installation.requestId())
        .setGroup(making.group)
        .setEpoch(making.epoch)
        .setIdentity(ByteString.copyFrom(identity.evidenceKey()))
        .setInstallation("test")
        .setPurpose("an approver of withdrawals")
        .setNotAfter(Installation.in(Duration.ofMinutes(5)));
  }

  SignedIntent ticket(TicketIntent.Builder intent) {
    return new IntentSigner("wallet", i.wallet.getPrivate()).sign(intent.build());
  }

  GroupReply call(GroupCall.Builder call) {
    return vault.call(call.build(), identity.sealed());
  }

  GroupOrder.Builder order() {
    return making.order().setSignedIntent(ticket);
  }

  /** [R1] a fresh half. */
  void apply() {
    var applied =
        call(GroupCall.newBuilder()
                .setApply(
                    Apply.newBuilder()
                        .setGroup(group)
                        .setTicket(IntentVerifier.digest(ticket.getPayload()))))
            .getApplied();
    applicant = applied.getSealedApplicant();
    application = applied.getApplication();
  }

  GroupOrder.Builder reserving() {
    return order().setReserveTicket(ReserveTicket.newBuilder().setApplication(application));
  }

  /** [U1] asks these; returns their shares. */
  List<PartyBytes> reserve(List<Member> issuers) {
    Map<Integer, GroupReport> reports = making.done(reserving(), issuers);
    assertThat(reports.values()).allMatch(GroupReport::hasTicketReserved);
    return reports.entrySet().stream()
        .map(
            entry ->
                GroupMaking.from(entry.getKey(), entry.getValue().getTicketReserved().getShare()))
        .toList();
  }

  /** [U3], [R3]. */
  GroupReply accept(Collection<PartyBytes> shares) {
    GroupReply reply =
        call(
            GroupCall.newBuilder()
                .setAcceptAnswers(
                    AcceptAnswers.newBuilder()
                        .setGroup(group)
                        .setSealedApplicant(applicant)
                        .addAllShares(shares)));
    if (reply.hasAnswersAccepted()) {
      candidate = reply.getAnswersAccepted().getSealedCandidate();
      acceptance = reply.getAnswersAccepted().getAcceptance();
      point = reply.getAnswersAccepted().getPoint();
    }
    return reply;
  }

  GroupOrder.Builder registering(Collection<PartyBytes> shares) {
    return order()
        .setRegisterMember(
            RegisterMember.newBuilder().addAllShares(shares).setAcceptance(acceptance));
  }

  /** Every step up to the join. */
  void register(List<Member> issuers) {
    apply();
    List<PartyBytes> shares = reserve(issuers);
    assertThat(accept(shares).hasAnswersAccepted()).isTrue();
    assertThat(making.done(registering(shares), issuers).values())
        .allMatch(report -> report.getMemberRegistered().getPoint().equals(point));
  }

  /** One run of the join: the member's side of its session, and the order for the issuers. */
  final class Run implements AutoCloseable {
    final ByteString session;
    final ByteString runOrder;
    final List<Member> issuers;
    private final int self = making.members.memberNumber();
    private final MpcSession core;
    private Step step;

    Run(List<Member> issuers) {
      this.issuers = issuers;
      byte[] id = new byte[32];
      RANDOM.nextBytes(id);
      session = ByteString.copyFrom(id);
      runs++;
      earlier = candidate;
      var ordered = ordered(session);
      candidate = ordered.getSealedCandidate();
      runOrder = ordered.getOrder();
      Party me =
          Party.newBuilder()
              .setId(self)
              .setEvidenceKey(ByteString.copyFrom(identity.evidenceKey()))
              .build();
      core =
          vault.start(
              SessionConfig.newBuilder()
                  .setProtocol(ProtocolId.PROTOCOL_ID_ISSUING_JOIN)
                  .setSessionId(session)
                  .setSelf(self)
                  .addAllParties(
                      Stream.concat(issuers.stream().map(GroupMembers::party), Stream.of(me))
                          .sorted(Comparator.comparingInt(Party::getId))
                          .toList())
                  .setThreshold(making.members.issuerThreshold())
                  .setKeyId(making.group)
                  .setEpoch(making.epoch)
                  .setGroup(
                      GroupTerms.newBuilder()
                          .setParties(group.getParties())
                          .setAttested(group.getAttested()))
                  .build(),
              identity.sealed(),
              new byte[0]);
      step = core.firstStep();
    }

    GroupOrder.Builder order() {
      return TestMember.this
          .order()
          .setJoinGroup(
              JoinGroup.newBuilder()
                  .setRunOrder(runOrder)
                  .setRunSessionId(session)
                  .addAllIssuers(issuers.stream().map(Member::partyId).toList()));
    }

    /** Carries envelopes until the member's side has ended. */
    Step carried() {
      send();
      while (step.getProgressCase() == Step.ProgressCase.WAITING
          || step.getProgressCase() == Step.ProgressCase.DROPPED) {
        var message = Objects.requireNonNull(next(), "an envelope for the member");
        SessionEnvelope envelope = Installation.parse(message.body()).getGroupEnvelope();
        if (envelope.getSessionId().equals(session)) {
          step = core.handle(message.sender().partyId(), envelope.getEnvelope().toByteArray());
          send();
        }
      }
      if (step.hasDone()) {
        membership = step.getDone().getSealedShare();
      }
      return step;
    }

    private io.coterie.channel.@org.jspecify.annotations.Nullable InboundMessage next() {
      try {
        return i.coordinator.groupEnvelopes.poll(
            Installation.PATIENCE.toSeconds(), java.util.concurrent.TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    private void send() {
      for (Outgoing outgoing : step.getOutgoingList()) {
        List<Member> to =
            issuers.stream()
                .filter(
                    issuer ->
                        outgoing.getRecipient() == 0 || outgoing.getRecipient() == issuer.partyId())
                .toList();
        i.coordinator.tell(envelope(outgoing.getEnvelope()), to);
      }
    }

    PartyMessage envelope(ByteString bytes) {
      return PartyMessage.newBuilder()
          .setGroupEnvelope(SessionEnvelope.newBuilder().setSessionId(session).setEnvelope(bytes))
          .build();
    }

    @Override
    public void close() {
      core.close();
    }
  }

  private RunOrdered ordered(ByteString session) {
    return call(GroupCall.newBuilder()
            .setOrderRun(
                OrderRun.newBuilder()
                    .setGroup(group)
                    .setSealedCandidate(earlier)
                    .setNumber(runs)
                    .setSessionId(session)))
        .getRunOrdered();
  }

  /** Another run of the last one's number, which no honest member orders. */
  GroupOrder.Builder twin(List<Member> issuers) {
    ByteString session = order().getCoordinatorNonce();
    return order()
        .setJoinGroup(
            JoinGroup.newBuilder()
                .setRunOrder(ordered(session).getOrder())
                .setRunSessionId(session)
                .addAllIssuers(issuers.stream().map(Member::partyId).toList()));
  }

  /** The approval of a request. */
  ByteString approve(ApprovalRequest request) {
    return call(GroupCall.newBuilder()
            .setApprove(
                Approve.newBuilder()
                    .setGroup(group)
                    .setRequest(request)
                    .setSealedMember(membership)))
        .getApproved()
        .getApproval();
  }

  Group group() {
    return group;
  }

  @Override
  public void close() {
    vault.close();
  }
}
