package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.fails;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.mpc.Vault;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.AttestOpenersKey;
import io.coterie.proto.core.v1.CreateOpenerKey;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.OpenersKey;
import io.coterie.proto.custody.v1.CreateGroupRequest;
import io.coterie.proto.custody.v1.GetGroupRequest;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.ListGroupsRequest;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.GroupStepRefused;
import io.coterie.proto.party.v1.OpenersKeyMade;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.trust.Member;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A group that cannot be made: callers learn the cause and the culprit, and the epoch is spent. */
class GroupsTest {
  private static final byte[] DATA_KEY = new byte[32];

  @TempDir static Path folder;
  private static Vault vault;
  private static Vault.SealedIdentity identity;
  private static TestInstallation installation;
  private static ManagedChannel client;
  private static int groups;

  @BeforeAll
  static void start() {
    vault = NativeMpcCore.load().openVault(DATA_KEY.clone());
    identity = vault.createIdentity("p1");
    installation =
        new TestInstallation(
                folder,
                3,
                party -> party == 1 ? identity.evidenceKey() : TestEvidence.publicKey(party),
                new FakeCore(),
                "--coterie.coordinator.clients[0].read-keys[1]=groups/*",
                "--coterie.coordinator.keygen.min=200ms",
                "--coterie.coordinator.keygen.initial=300ms",
                "--coterie.coordinator.limits.keygen-sessions=2")
            .start();
    client = installation.backend();
  }

  @AfterAll
  static void stop() {
    installation.close();
    vault.close();
  }

  /** Every order that any party received. */
  private static final Queue<GroupOrder> ORDERS = new ConcurrentLinkedQueue<>();

  @BeforeEach
  void silent() {
    parties((_, _) -> Optional.empty());
  }

  /** The report of each party on an order; none of a silent one. */
  private static void parties(
      BiFunction<Member, GroupOrder, Optional<GroupReport.Builder>> reports) {
    ORDERS.clear();
    installation.parties.grouping = (self, bytes) -> report(self, bytes, reports);
  }

  private static Optional<PartyMessage> report(
      Member self,
      ByteString bytes,
      BiFunction<Member, GroupOrder, Optional<GroupReport.Builder>> reports) {
    GroupOrder order;
    try {
      order = GroupOrder.parseFrom(bytes);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
    ORDERS.add(order);
    return reports
        .apply(self, order)
        .map(report -> report.setSessionId(SessionId.ofOrder(bytes).bytes()))
        .map(report -> PartyMessage.newBuilder().setGroupReport(report).build());
  }

  private static GroupServiceGrpc.GroupServiceBlockingStub groups() {
    return GroupServiceGrpc.newBlockingStub(client).withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  private static GroupIntent.Builder intent() {
    groups++;
    return GroupIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setGroup("groups/group-" + groups)
        .setEpoch(1)
        .setIssuerThreshold(2)
        .addAllIssuers(List.of("p1", "p2", "p3"))
        .setOpenerThreshold(2)
        .addAllOpeners(List.of("p1", "p2", "p3"))
        .setNotAfter(Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond() + 300));
  }

  private static CreateGroupRequest request(GroupIntent.Builder intent) {
    return CreateGroupRequest.newBuilder()
        .setSignedIntent(installation.wallet.sign(intent.build()))
        .build();
  }

  private static Map<String, String> failsWith(ErrorReason reason, CreateGroupRequest request) {
    return fails(reason, () -> groups().createGroup(request));
  }

  private static Optional<GroupReport.Builder> refuses(RefusalReason reason) {
    return Optional.of(
        GroupReport.newBuilder().setRefused(GroupStepRefused.newBuilder().setReason(reason)));
  }

  private static int orders() {
    return ORDERS.size();
  }

  @Test
  void the_first_order_is_for_the_openers_and_a_silent_one_is_named() {
    parties(
        (self, _) ->
            self.partyId() == 2
                ? Optional.empty()
                : Optional.of(
                    GroupReport.newBuilder()
                        .setTimedOut(TimedOut.newBuilder().setRound(1).addMissing(2))));
    GroupIntent.Builder intent = intent();
    CreateGroupRequest request = request(intent);
    assertThat(failsWith(ErrorReason.GROUP_CREATION_FAILED, request))
        .containsEntry("party", "p2")
        .containsEntry("round", "1")
        .containsEntry("cause", "timed_out")
        .containsEntry("resource", intent.getGroup() + "/epochs/1");
    assertThat(ORDERS).allMatch(GroupOrder::hasMakeOpenersKey).hasSize(6);
    assertThat(ORDERS).map(GroupOrder::getSignedIntent).containsOnly(request.getSignedIntent());
    assertThat(ORDERS)
        .map(GroupOrder::getCoordinatorNonce)
        .as("one for each order")
        .extracting(ByteString::size)
        .containsOnly(32);

    // It has ended: nobody is asked again, and another request does not get its epoch.
    failsWith(ErrorReason.GROUP_CREATION_FAILED, request);
    failsWith(ErrorReason.GROUP_EXISTS, request(intent.setRequestId(RequestId.next())));
    assertThat(orders()).isEqualTo(6);
    String name = intent.getGroup() + "/epochs/1";
    Group failed = groups().getGroup(GetGroupRequest.newBuilder().setName(name).build());
    assertThat(failed.getState()).isEqualTo(Group.State.FAILED);
    assertThat(failed.getAttested()).isEqualTo(ByteString.EMPTY);
    assertThat(groups().listGroups(ListGroupsRequest.getDefaultInstance()).getGroupsList())
        .contains(failed);
  }

  @Test
  void a_party_that_never_will_ends_the_request_at_once() {
    parties((_, _) -> refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    assertThat(failsWith(ErrorReason.FORBIDDEN, request(intent()))).containsEntry("party", "p1");
    assertThat(orders()).isEqualTo(3);
  }

  @Test
  void a_step_that_nobody_has_done_is_ordered_again() {
    AtomicInteger asked = new AtomicInteger();
    parties(
        (_, _) ->
            refuses(
                asked.incrementAndGet() <= 3
                    ? RefusalReason.REFUSAL_REASON_OVERLOADED
                    : RefusalReason.REFUSAL_REASON_ON_HOLD));
    failsWith(ErrorReason.ON_HOLD, request(intent()));
    assertThat(orders()).isEqualTo(6);
  }

  @Test
  void a_step_that_some_have_done_is_not() {
    parties(
        (self, _) ->
            self.partyId() == 1
                ? Optional.of(
                    GroupReport.newBuilder().setOpenersKeyMade(OpenersKeyMade.getDefaultInstance()))
                : refuses(RefusalReason.REFUSAL_REASON_OVERLOADED));
    assertThat(failsWith(ErrorReason.GROUP_CREATION_FAILED, request(intent())))
        .containsEntry("cause", "REFUSAL_REASON_OVERLOADED");
    assertThat(orders()).isEqualTo(3);
  }

  @Test
  void an_accusation_without_evidence_convicts_nobody() {
    Abort abort =
        Abort.newBuilder()
            .setCause(AbortCause.ABORT_CAUSE_WRONG_OPENING)
            .setRound(2)
            .addCulprits(2)
            .addEvidence(ByteString.copyFromUtf8("nothing"))
            .build();
    parties((self, _) -> Optional.of(GroupReport.newBuilder().setAborted(abort)));
    assertThat(failsWith(ErrorReason.GROUP_CREATION_FAILED, request(intent())))
        .containsEntry("party", "p1,p2")
        .containsEntry("cause", "ABORT_CAUSE_WRONG_OPENING");
  }

  /** The coordinator looks for itself, and names whose signature does not hold. */
  @Test
  void a_party_that_has_not_signed_the_openers_key_is_named() {
    GroupIntent.Builder intent = intent().clearOpeners().addOpeners("p1").setOpenerThreshold(1);
    parties((self, _) -> Optional.of(opening(self, intent, 1)));
    assertThat(failsWith(ErrorReason.PARTY_MISBEHAVED, request(intent)))
        .containsEntry("party", "p1")
        .containsEntry("cause", "GROUP_REFUSAL_NOT_ATTESTED");

    // The same of an honest one, and the next order is for the issuers.
    GroupIntent.Builder honest = intent().clearOpeners().addOpeners("p1").setOpenerThreshold(1);
    parties(
        (self, order) ->
            order.hasMakeOpenersKey()
                ? Optional.of(opening(self, honest, 0))
                : refuses(RefusalReason.REFUSAL_REASON_GROUP_STEP));
    failsWith(ErrorReason.GROUP_CREATION_FAILED, request(honest));
    assertThat(ORDERS)
        .filteredOn(GroupOrder::hasMakeIssuingKey)
        .hasSize(3)
        .allMatch(order -> order.getMakeIssuingKey().getOpeners().getSignaturesCount() == 1);
  }

  /** An openers' key that p1 has drawn alone; a signature of another group if one is altered. */
  private static GroupReport.Builder opening(Member self, GroupIntent.Builder intent, int altered) {
    var made =
        vault
            .call(
                GroupCall.newBuilder()
                    .setCreateOpenerKey(
                        CreateOpenerKey.newBuilder().setKeyId("openers").setParty(1))
                    .build(),
                identity.sealed())
            .getOpenerKeyCreated();
    GroupMembers members =
        new GroupMembers(
            "test",
            List.of(self, installation.network.roster().byName("p2").orElseThrow()),
            2,
            List.of(self),
            1);
    AttestOpenersKey.Builder attest =
        AttestOpenersKey.newBuilder()
            .setOpeners(
                OpenersKey.newBuilder()
                    .setGroup(intent.getGroup())
                    .setEpoch(1 + altered)
                    .setKey(made.getKeyPublic()))
            .setParties(members.parties())
            .setParty(1)
            .setSealedShare(made.getSealedShare());
    ByteString signature =
        vault
            .call(GroupCall.newBuilder().setAttestOpenersKey(attest).build(), identity.sealed())
            .getAttested()
            .getSignature();
    return GroupReport.newBuilder()
        .setOpenersKeyMade(
            OpenersKeyMade.newBuilder().setKeyPublic(made.getKeyPublic()).setSignature(signature));
  }
}
