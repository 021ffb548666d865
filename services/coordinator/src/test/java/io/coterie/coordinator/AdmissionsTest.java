package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.fails;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.coordinator.custody.group.GroupCreations;
import io.coterie.coordinator.custody.group.GroupRecord;
import io.coterie.coordinator.custody.group.GroupStore;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.custody.v1.ApplyForMembershipRequest;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupMember;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.IssuerShare;
import io.coterie.proto.custody.v1.JoinGroupRequest;
import io.coterie.proto.custody.v1.JoinGroupResponse;
import io.coterie.proto.custody.v1.JoinStart;
import io.coterie.proto.custody.v1.ListMembersRequest;
import io.coterie.proto.custody.v1.ListMembersResponse;
import io.coterie.proto.custody.v1.MemberEnvelope;
import io.coterie.proto.custody.v1.OpenApprovalRequest;
import io.coterie.proto.custody.v1.OpenerShare;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RegisterMemberRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import io.coterie.proto.party.v1.ApprovalOpened;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.GroupStepRefused;
import io.coterie.proto.party.v1.MemberJoined;
import io.coterie.proto.party.v1.MemberRegistered;
import io.coterie.proto.party.v1.MembersListed;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.TicketReserved;
import io.coterie.trust.Member;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The coordinator carries what applicants and issuers say, and adds nothing of its own. */
class AdmissionsTest {
  private static final ByteString APPLICATION = ByteString.copyFromUtf8("an application");

  @TempDir static Path folder;
  private static TestInstallation installation;
  private static ManagedChannel client;

  /** Every order that any party received, and the bytes of the last of each. */
  private static final Queue<GroupOrder> ORDERS = new ConcurrentLinkedQueue<>();

  private static final Map<String, ByteString> LAST = new ConcurrentHashMap<>();

  @BeforeAll
  static void start() {
    installation =
        new TestInstallation(
                folder,
                3,
                "--coterie.coordinator.clients[0].read-keys[1]=groups/*",
                "--coterie.coordinator.keygen.min=200ms",
                "--coterie.coordinator.keygen.initial=300ms")
            .start();
    client = installation.backend();
    GroupStore store = installation.bean(GroupCreations.class).store();
    Instant now = Instant.parse("2026-11-26T08:00:00Z");
    GroupRecord attempt =
        new GroupRecord(
            0,
            new RequestHeader(
                "wallet",
                RequestId.next(),
                ByteString.copyFrom(new byte[32]),
                SignedIntent.newBuilder().setPayload(ByteString.copyFromUtf8("intent")).build(),
                now.plusSeconds(60),
                now),
            "groups/approvers",
            1,
            2,
            List.of("p3", "p1", "p2"),
            1,
            List.of("p1"),
            Group.State.CREATING,
            ByteString.EMPTY,
            null);
    GroupRecord stored = ((GroupStore.Creation.Stored) store.create(attempt)).record();
    store.finish(stored.id(), ByteString.copyFromUtf8("attested"), null);
  }

  @AfterAll
  static void stop() {
    installation.close();
  }

  @BeforeEach
  void silent() {
    installation.parties.echoing = (_, _) -> List.of();
    parties((_, _) -> Optional.empty());
  }

  private static void parties(
      BiFunction<Member, GroupOrder, Optional<GroupReport.Builder>> reports) {
    ORDERS.clear();
    installation.parties.grouping =
        (self, bytes) -> {
          GroupOrder order = parse(bytes);
          ORDERS.add(order);
          LAST.put(self.name(), bytes);
          return reports.apply(self, order).map(report -> report(bytes, report));
        };
  }

  private static GroupOrder parse(ByteString bytes) {
    try {
      return GroupOrder.parseFrom(bytes);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  private static PartyMessage report(ByteString order, GroupReport.Builder report) {
    return PartyMessage.newBuilder()
        .setGroupReport(report.setSessionId(SessionId.ofOrder(order).bytes()))
        .build();
  }

  private static Optional<GroupReport.Builder> refuses(RefusalReason reason) {
    return Optional.of(
        GroupReport.newBuilder().setRefused(GroupStepRefused.newBuilder().setReason(reason)));
  }

  private static Optional<GroupReport.Builder> reserved(Member self) {
    return Optional.of(
        GroupReport.newBuilder()
            .setTicketReserved(
                TicketReserved.newBuilder().setShare(ByteString.copyFromUtf8(self.name()))));
  }

  private static GroupServiceGrpc.GroupServiceBlockingStub groups() {
    return GroupServiceGrpc.newBlockingStub(client).withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  private static TicketIntent.Builder intent() {
    return TicketIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setGroup("groups/approvers")
        .setEpoch(1)
        .setIdentity(ByteString.copyFrom(new byte[32]))
        .setNotAfter(Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond() + 300));
  }

  private static ApplyForMembershipRequest applying(TicketIntent.Builder intent) {
    return ApplyForMembershipRequest.newBuilder()
        .setTicket(installation.wallet.sign(intent.build()))
        .setApplication(APPLICATION)
        .build();
  }

  private static Map<String, String> failsWith(
      ErrorReason reason, ApplyForMembershipRequest request) {
    return fails(reason, () -> groups().applyForMembership(request));
  }

  @Test
  void an_application_goes_to_all_issuers_and_their_shares_come_back() {
    parties((self, _) -> reserved(self));
    ApplyForMembershipRequest request = applying(intent());
    assertThat(groups().applyForMembership(request).getSharesList())
        .containsExactly(share(1), share(2), share(3));
    assertThat(ORDERS)
        .hasSize(3)
        .allMatch(order -> order.getReserveTicket().getApplication().equals(APPLICATION))
        .allMatch(order -> order.getSignedIntent().equals(request.getTicket()));
    // It keeps nothing: the same again is asked again.
    groups().applyForMembership(request);
    assertThat(ORDERS).hasSize(6);
  }

  private static IssuerShare share(int issuer) {
    return IssuerShare.newBuilder()
        .setIssuer(issuer)
        .setShare(ByteString.copyFromUtf8("p" + issuer))
        .build();
  }

  @Test
  void too_few_answers_are_none_and_the_first_cause_is_told() {
    parties(
        (self, _) ->
            self.partyId() == 2
                ? refuses(RefusalReason.REFUSAL_REASON_TICKET_BOUND)
                : reserved(self));
    assertThat(failsWith(ErrorReason.TICKET_BOUND, applying(intent())))
        .containsEntry("party", "p2")
        .containsEntry("resource", "groups/approvers/epochs/1");
    parties((self, _) -> self.partyId() == 2 ? Optional.empty() : reserved(self));
    assertThat(failsWith(ErrorReason.PARTY_UNRESPONSIVE, applying(intent())))
        .containsEntry("party", "p2");
    parties((_, _) -> refuses(RefusalReason.REFUSAL_REASON_GROUP_STEP));
    failsWith(ErrorReason.GROUP_STEP_FAILED, applying(intent()));
    // An issuer that answers something else has not answered.
    parties(
        (self, _) ->
            self.partyId() == 2
                ? Optional.of(
                    GroupReport.newBuilder().setMemberJoined(MemberJoined.getDefaultInstance()))
                : reserved(self));
    failsWith(ErrorReason.GROUP_STEP_FAILED, applying(intent()));
  }

  @Test
  void tickets_of_no_group_and_of_others_are_refused_before_anybody_is_asked() {
    failsWith(ErrorReason.GROUP_NOT_FOUND, applying(intent().setEpoch(2)));
    failsWith(
        ErrorReason.INTENT_MALFORMED,
        applying(intent().setIdentity(ByteString.copyFromUtf8("short"))));
    ApplyForMembershipRequest.Builder forged = applying(intent()).toBuilder();
    forged.getTicketBuilder().getSignaturesBuilder(0).setSig(ByteString.copyFrom(new byte[64]));
    failsWith(ErrorReason.INTENT_SIGNATURE_INVALID, forged.build());
    assertThat(ORDERS).isEmpty();
  }

  @Test
  void an_acceptance_goes_to_all_issuers() {
    parties(
        (_, _) ->
            Optional.of(
                GroupReport.newBuilder()
                    .setMemberRegistered(MemberRegistered.getDefaultInstance())));
    RegisterMemberRequest request =
        RegisterMemberRequest.newBuilder()
            .setTicket(installation.wallet.sign(intent().build()))
            .addShares(share(1))
            .addShares(share(3))
            .setAcceptance(ByteString.copyFrom(new byte[64]))
            .build();
    assertThat(groups().registerMember(request).getIssuersList()).containsExactly(1, 2, 3);
    assertThat(ORDERS)
        .hasSize(3)
        .allMatch(order -> order.getRegisterMember().getAcceptance().size() == 64)
        .allMatch(order -> order.getRegisterMember().getShares(1).getParty() == 3);
  }

  /** One stream, and what comes of it. */
  private static final class Joining implements StreamObserver<JoinGroupResponse> {
    final BlockingQueue<Object> arrived = new LinkedBlockingQueue<>();
    final StreamObserver<JoinGroupRequest> requests =
        GroupServiceGrpc.newStub(client).withDeadlineAfter(20, TimeUnit.SECONDS).joinGroup(this);

    @Override
    public void onNext(JoinGroupResponse response) {
      arrived.add(response);
    }

    @Override
    public void onError(Throwable failure) {
      arrived.add(failure);
    }

    @Override
    public void onCompleted() {
      arrived.add("completed");
    }

    Joining start(ByteString session, Integer... issuers) {
      requests.onNext(
          JoinGroupRequest.newBuilder()
              .setStart(
                  JoinStart.newBuilder()
                      .setTicket(installation.wallet.sign(intent().build()))
                      .setRunOrder(ByteString.copyFromUtf8("order"))
                      .setSessionId(session)
                      .addAllIssuers(List.of(issuers)))
              .build());
      return this;
    }

    void send(int issuer, String text) {
      requests.onNext(
          JoinGroupRequest.newBuilder()
              .setEnvelope(
                  MemberEnvelope.newBuilder()
                      .setIssuer(issuer)
                      .setEnvelope(ByteString.copyFromUtf8(text)))
              .build());
    }

    Object next() throws InterruptedException {
      Object next = arrived.poll(20, TimeUnit.SECONDS);
      assertThat(next).as("something arrives").isNotNull();
      return next;
    }

    void fails(ErrorReason reason) {
      Calls.fails(
          reason,
          () -> {
            Object next = next();
            if (next instanceof Exception failure) {
              throw failure;
            }
            return next;
          });
    }
  }

  private static ByteString session(int number) {
    byte[] id = new byte[32];
    id[0] = (byte) number;
    return ByteString.copyFrom(id);
  }

  private static PartyMessage envelope(ByteString session, String text) {
    return PartyMessage.newBuilder()
        .setGroupEnvelope(
            SessionEnvelope.newBuilder()
                .setSessionId(session)
                .setEnvelope(ByteString.copyFromUtf8(text)))
        .build();
  }

  @Test
  void envelopes_go_both_ways_between_a_member_and_the_issuers_that_it_names() throws Exception {
    installation.parties.echoing =
        (self, said) ->
            List.of(
                envelope(said.getSessionId(), self.name() + said.getEnvelope().toStringUtf8()),
                report(
                    LAST.get(self.name()),
                    GroupReport.newBuilder().setMemberJoined(MemberJoined.getDefaultInstance())));
    Joining joining = new Joining().start(session(1), 1, 3);
    Calls.eventually(() -> ORDERS.size() == 2);
    assertThat(ORDERS)
        .allMatch(order -> order.getJoinGroup().getRunSessionId().equals(session(1)))
        .allMatch(order -> order.getJoinGroup().getIssuersList().equals(List.of(1, 3)));
    joining.send(3, " hears one");
    assertThat(joining.next()).isEqualTo(answer(3, "p3 hears one"));
    joining.send(1, " hears one");
    assertThat(joining.next()).isEqualTo(answer(1, "p1 hears one"));
    assertThat(((JoinGroupResponse) joining.next()).hasEnd()).isTrue();
    assertThat(joining.next()).isEqualTo("completed");
  }

  private static JoinGroupResponse answer(int issuer, String text) {
    return JoinGroupResponse.newBuilder()
        .setEnvelope(
            MemberEnvelope.newBuilder()
                .setIssuer(issuer)
                .setEnvelope(ByteString.copyFromUtf8(text)))
        .build();
  }

  private static OpeningIntent.Builder opening() {
    return OpeningIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setGroup("groups/approvers")
        .setEpoch(1)
        .setRequest(ByteString.copyFrom(new byte[32]))
        .setApproval(ByteString.copyFrom(new byte[416]))
        .setRecipient(ByteString.copyFrom(new byte[32]))
        .setNotAfter(Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond() + 300));
  }

  @Test
  void an_approval_is_opened_by_the_openers_alone() {
    OpenApprovalRequest request =
        OpenApprovalRequest.newBuilder()
            .setSignedIntent(installation.wallet.sign(opening().build()))
            .build();
    parties(
        (self, _) ->
            Optional.of(
                GroupReport.newBuilder()
                    .setApprovalOpened(
                        ApprovalOpened.newBuilder()
                            .setSealedShare(ByteString.copyFromUtf8(self.name())))));
    assertThat(groups().openApproval(request).getSharesList())
        .containsExactly(
            OpenerShare.newBuilder()
                .setOpener(1)
                .setSealedShare(ByteString.copyFromUtf8("p1"))
                .build());
    assertThat(ORDERS).hasSize(1).allMatch(GroupOrder::hasOpenApproval);
    parties((_, _) -> refuses(RefusalReason.REFUSAL_REASON_APPROVAL_INVALID));
    fails(ErrorReason.APPROVAL_INVALID, () -> groups().openApproval(request));
  }

  /** Each is asked alone, so what one of them says does not cut off another one's entries. */
  @Test
  void a_registry_is_that_of_one_issuer() {
    ListMembersRequest.Builder request =
        ListMembersRequest.newBuilder()
            .setSignedIntent(installation.wallet.sign(opening().build()))
            .setIssuer(2)
            .setAfter(session(1));
    GroupMember entry =
        GroupMember.newBuilder().setTicket(installation.wallet.sign(intent().build())).build();
    parties(
        (self, _) ->
            self.partyId() == 2
                ? Optional.of(
                    GroupReport.newBuilder()
                        .setMembersListed(
                            MembersListed.newBuilder().addMembers(entry).setMore(true)))
                : Optional.empty());
    assertThat(groups().listMembers(request.build()))
        .isEqualTo(ListMembersResponse.newBuilder().addMembers(entry).setMore(true).build());
    assertThat(ORDERS).hasSize(1).allMatch(o -> o.getListMembers().getAfter().equals(session(1)));
    fails(ErrorReason.PARTY_UNKNOWN, () -> groups().listMembers(request.setIssuer(4).build()));
    parties((_, _) -> Optional.empty());
    fails(ErrorReason.PARTY_UNRESPONSIVE, () -> groups().listMembers(request.setIssuer(2).build()));
  }

  @Test
  void a_run_ends_with_the_cause_of_the_issuer_that_ended_it() {
    parties(
        (self, _) ->
            self.partyId() == 3
                ? refuses(RefusalReason.REFUSAL_REASON_TICKET_SPENT)
                : Optional.of(
                    GroupReport.newBuilder().setMemberJoined(MemberJoined.getDefaultInstance())));
    new Joining().start(session(2), 1, 3).fails(ErrorReason.TICKET_SPENT);
    parties((_, _) -> Optional.empty());
    new Joining().start(session(3), 1, 3).fails(ErrorReason.PARTY_UNRESPONSIVE);
  }

  @Test
  void streams_that_are_no_run_are_refused() {
    new Joining().start(session(4)).fails(ErrorReason.APPLICANT_INVALID);
    new Joining().start(session(4), 1, 9).fails(ErrorReason.APPLICANT_INVALID);
    new Joining().start(ByteString.EMPTY, 1, 3).fails(ErrorReason.APPLICANT_INVALID);
    Joining silent = new Joining();
    silent.send(1, "before the start");
    silent.fails(ErrorReason.APPLICANT_INVALID);
    new Joining()
        .start(session(4), 1, 3)
        .start(session(5), 1, 3)
        .fails(ErrorReason.APPLICANT_INVALID);
    Joining first = new Joining().start(session(6), 1, 3);
    Calls.eventually(() -> ORDERS.stream().anyMatch(o -> isOf(o, session(6))));
    new Joining().start(session(6), 1, 3).fails(ErrorReason.APPLICANT_INVALID);
    first.send(2, "not of the run");
    first.fails(ErrorReason.APPLICANT_INVALID);
  }

  private static boolean isOf(GroupOrder order, ByteString session) {
    return order.getJoinGroup().getRunSessionId().equals(session);
  }

  /** Its issuers alone are heard by a member, each under its own number. */
  @Test
  void envelopes_of_others_do_not_reach_a_member() throws Exception {
    Joining joining = new Joining().start(session(7), 1, 3);
    Calls.eventually(() -> ORDERS.size() == 2);
    for (String name : List.of("p2", "p1")) {
      ScriptedParties.send(
          installation.parties.channels.get(name),
          installation.network.roster().byName("coordinator").orElseThrow(),
          envelope(session(7), "from " + name));
    }
    assertThat(joining.next()).isEqualTo(answer(1, "from p1"));
  }
}
