package io.coterie.signer;

import static io.coterie.signer.GroupMaking.wish;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.intent.ApprovedRequest;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.group.ApprovalCheck;
import io.coterie.signer.group.GroupRecord;
import io.coterie.signer.group.GroupStore;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.GroupCore;
import io.coterie.trust.Roster;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Signers with the native core sign for a requester once enough members of a group approve. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ApprovalsTest {
  private static final String GROUP = "groups/approvers";
  private static final String KEY = "keys/main";
  private static final int LENGTH = IntentVerifier.APPROVAL_BYTES;

  private NativeParties cores;
  private Installation i;
  private GroupMaking making;
  private ByteString digest;
  private final List<TestMember> members = new ArrayList<>();

  @BeforeAll
  void start(@TempDir Path folder) {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), cores::open);
    i.limits = Installation.quick();
    i.start();
    i.createEcdsaKey(KEY, 2);
    making = new GroupMaking(i, wish(GROUP, 1));
    ByteString attested = making.made();
    digest = making.check(attested).getGroupChecked().getDigest();
    members.add(TestMember.joined(i, making, attested));
    members.add(TestMember.joined(i, making, attested));
  }

  @AfterEach
  void needed() {
    i.needed.clear();
  }

  @AfterAll
  void stop() {
    members.forEach(TestMember::close);
    i.close();
    cores.close();
  }

  private void needs(String group, int needed) {
    NativeParties.NAMES.forEach(name -> i.needed.put(name, new NeededApprovals(group, needed)));
  }

  private Approvers.Builder approvers() {
    return Approvers.newBuilder().setGroup(GROUP).setEpoch(1).setDigest(digest);
  }

  private SignedIntent intent(Approvers.Builder approvers) {
    return i.signed(i.digestIntent(KEY, ByteString.copyFrom(new byte[32])).setApprovers(approvers));
  }

  private SignedIntent intent() {
    return intent(approvers());
  }

  private static ApprovalRequest request(SignedIntent intent, ApprovalDecision decision) {
    return ApprovalRequest.newBuilder()
        .setDigest(ApprovedRequest.digest("wallet", IntentVerifier.digest(intent.getPayload())))
        .setDecision(decision)
        .build();
  }

  private ByteString by(int member, SignedIntent intent) {
    return members.get(member).approve(request(intent, ApprovalDecision.APPROVAL_DECISION_APPROVE));
  }

  private Order order(SignedIntent intent, List<ByteString> approvals) {
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, KEY, 2, 1, 2)
        .setSignedIntent(intent)
        .addAllApprovals(approvals)
        .build();
  }

  private SessionReport report(Order order) {
    SessionId session = i.coordinator.give(order);
    return i.coordinator.awaitFrom("alpha", session).report();
  }

  private void signs(SignedIntent intent, ByteString... approvals) {
    signs(order(intent, List.of(approvals)));
  }

  /** The core combines what the parties send, and verifies the signature. */
  private void signs(Order order) {
    SessionId session = i.coordinator.give(order);
    KeyPublic key = i.party("alpha").store.shares().find(KEY).orElseThrow().keyPublic();
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(order.getProtocol())
            .setThreshold(2)
            .setKeyId(KEY)
            .setEpoch(1)
            .setPayload(ByteString.copyFrom(new byte[32]))
            .setKeyPublic(key);
    assertThat(NativeParties.combine(i, session, config, 1, 2).getSignature()).isNotEmpty();
  }

  private Refused refused(RefusalReason reason, SignedIntent intent, ByteString... approvals) {
    SessionReport report = report(order(intent, List.of(approvals)));
    assertThat(report.getRefused().getReason()).as("%s", report).isEqualTo(reason);
    return report.getRefused();
  }

  private String missing(SignedIntent intent, ByteString... approvals) {
    return refused(RefusalReason.REFUSAL_REASON_APPROVALS_MISSING, intent, approvals).getDetail();
  }

  @Test
  void two_members_release_a_signature_and_the_record_names_nobody() {
    needs(GROUP, 2);
    SignedIntent intent = intent();
    signs(intent, by(0, intent), by(1, intent));
    Map<String, String> record =
        i.party("alpha").store.audit().read(1, 1000).stream()
            .map(each -> each.event().fields())
            .filter(fields -> fields.containsKey("approvals"))
            .toList()
            .getLast();
    assertThat(record)
        .containsEntry("approvals", "2")
        .containsEntry("approvers", GROUP)
        .containsEntry("approvers_epoch", "1")
        .containsEntry(
            "intent_digest",
            HexFormat.of().formatHex(IntentVerifier.digest(intent.getPayload()).toByteArray()));
  }

  @Test
  void a_requester_that_needs_none_is_served_whatever_comes_with_its_intent() {
    SignedIntent intent = intent();
    signs(intent, ByteString.copyFrom(new byte[LENGTH]));
  }

  @Test
  void too_few_are_refused_before_they_are_looked_at_with_the_numbers() {
    needs(GROUP, 2);
    SignedIntent intent = intent();
    assertThat(missing(intent, by(0, intent)))
        .isEqualTo("there are 1 approvals; needed are 2 of " + GROUP);
    assertThat(missing(intent)).startsWith("there are 0 approvals");
  }

  @Test
  void a_member_counts_once() {
    needs(GROUP, 2);
    SignedIntent intent = intent();
    assertThat(missing(intent, by(0, intent), by(0, intent)))
        .startsWith("approval 2 of 2 does not count: counted twice")
        .endsWith("; needed are 2 of " + GROUP);
  }

  @Test
  void an_approval_of_another_request_or_a_rejection_does_not_count() {
    needs(GROUP, 2);
    SignedIntent intent = intent();
    assertThat(missing(intent, by(0, intent), by(1, intent())))
        .startsWith("approval 2 of 2 does not count: not of this request");
    ByteString rejection =
        members.get(1).approve(request(intent, ApprovalDecision.APPROVAL_DECISION_REJECT));
    assertThat(missing(intent, rejection, by(0, intent)))
        .startsWith("approval 1 of 2 does not count: it says that the request must not be done");
  }

  @Test
  void one_that_does_not_hold_is_named_although_enough_others_do() {
    needs(GROUP, 1);
    SignedIntent intent = intent();
    assertThat(missing(intent, by(0, intent), ByteString.copyFrom(new byte[LENGTH])))
        .startsWith("approval 2 of 2 does not count: no approval");
  }

  @Test
  void an_altered_byte_in_any_part_is_seen() {
    needs(GROUP, 1);
    SignedIntent intent = intent();
    byte[] good = by(0, intent).toByteArray();
    // Six elements of 48 bytes, then four scalars of 32.
    for (int part = 0; part < 10; part++) {
      byte[] bad = good.clone();
      bad[part < 6 ? part * 48 + 47 : 288 + (part - 6) * 32 + 31] ^= 1;
      assertThat(missing(intent, ByteString.copyFrom(bad)))
          .as("part %d", part)
          .startsWith("approval 1 of 1 does not count");
    }
    signs(intent, ByteString.copyFrom(good));
  }

  @Test
  void another_group_epoch_or_key_of_the_group_is_refused() {
    needs(GROUP, 1);
    SignedIntent none =
        i.signed(i.digestIntent(KEY, ByteString.copyFrom(new byte[32])).setPurpose("none"));
    assertThat(missing(none)).startsWith("the intent names no approvers");
    SignedIntent other = intent(approvers().setGroup("groups/others"));
    assertThat(missing(other, by(0, other)))
        .startsWith("the intent names groups/others as its approvers");
    SignedIntent later = intent(approvers().setEpoch(2));
    assertThat(missing(later, by(0, later))).contains("epoch 2").contains("latest is 1");
    SignedIntent forged = intent(approvers().setDigest(ByteString.copyFrom(new byte[32])));
    assertThat(missing(forged, by(0, forged))).startsWith("the intent names another group");
  }

  @Test
  void a_party_counts_under_no_group_that_it_does_not_keep() {
    needs("groups/unknown", 1);
    SignedIntent intent = intent(approvers().setGroup("groups/unknown"));
    assertThat(missing(intent, by(0, intent))).startsWith("this party does not keep that group");
  }

  @Test
  void a_later_epoch_takes_the_members_of_the_one_before_out() {
    GroupMaking first = new GroupMaking(i, wish("groups/rotated", 1));
    ByteString attested = first.made();
    ByteString before = first.check(attested).getGroupChecked().getDigest();
    try (TestMember member = TestMember.joined(i, first, attested)) {
      needs("groups/rotated", 1);
      Approvers.Builder old =
          Approvers.newBuilder().setGroup("groups/rotated").setEpoch(1).setDigest(before);
      SignedIntent served = intent(old);
      signs(served, member.approve(request(served, ApprovalDecision.APPROVAL_DECISION_APPROVE)));
      GroupMaking second = new GroupMaking(i, wish("groups/rotated", 2));
      ByteString after = second.check(second.made()).getGroupChecked().getDigest();
      SignedIntent late = intent(old);
      assertThat(
              missing(
                  late, member.approve(request(late, ApprovalDecision.APPROVAL_DECISION_APPROVE))))
          .contains("epoch 1")
          .contains("latest is 2");
      SignedIntent now = intent(old.setEpoch(2).setDigest(after));
      assertThat(
              missing(
                  now, member.approve(request(now, ApprovalDecision.APPROVAL_DECISION_APPROVE))))
          .startsWith("approval 1 of 1 does not count: of an earlier epoch, 1");
    }
  }

  @Test
  void lists_that_are_too_long_or_of_an_intent_without_approvers_are_no_order() {
    needs(GROUP, 1);
    SignedIntent intent = intent();
    List<ByteString> many = Collections.nCopies(33, by(0, intent));
    refused(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, intent, many.toArray(ByteString[]::new));
    refused(
        RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
        intent,
        ByteString.copyFrom(new byte[LENGTH - 1]));
    SignedIntent none = i.signed(i.digestIntent(KEY, ByteString.copyFrom(new byte[32])));
    refused(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, none, by(0, none));
  }

  @Test
  void other_approvals_of_a_request_that_is_signed_make_no_second_signature() {
    needs(GROUP, 1);
    SignedIntent intent = intent();
    Order first = order(intent, List.of(by(0, intent)));
    signs(first);
    Refused second = refused(RefusalReason.REFUSAL_REASON_REQUEST_BOUND, intent, by(1, intent));
    assertThat(second.getBoundOrder())
        .as("whoever gives that order again needs its approvals")
        .isEqualTo(first.toBuilder().clearSignedIntent().build().toByteString());
  }

  @Test
  void lists_that_do_not_hold_are_looked_at_at_a_rate_for_each_coordinator() {
    needs(GROUP, 1);
    SignedIntent intent = intent();
    ByteString bad = ByteString.copyFrom(new byte[LENGTH]);
    RefusalReason last = RefusalReason.REFUSAL_REASON_UNSPECIFIED;
    Installation.Coordinator hostile = i.new Coordinator("coordinator-2");
    for (int n = 0; n < 100 && last != RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED; n++) {
      SessionId session = hostile.give(order(intent, List.of(bad)));
      last = hostile.awaitFrom("alpha", session).report().getRefused().getReason();
    }
    assertThat(last).isEqualTo(RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED);
    signs(intent, by(0, intent));
  }

  /** Judges a request whose intent asks for approvals of a group, by what a store has of groups. */
  private ApprovalGate.Counted counted(
      GroupStore groups, Roster roster, String requester, SignedIntent intent, ByteString approval)
      throws RefusedException, InvalidProtocolBufferException {
    ApprovalCheck check =
        new ApprovalCheck(groups, roster, (GroupCore) cores.core("alpha"), System::nanoTime);
    return counted(check, requester, intent, List.of(approval), "coordinator");
  }

  private static ApprovalGate.Counted counted(
      ApprovalGate check,
      String requester,
      SignedIntent intent,
      List<ByteString> approvals,
      String coordinator)
      throws RefusedException, InvalidProtocolBufferException {
    SigningIntent asked = SigningIntent.parseFrom(intent.getPayload());
    return check.count(
        new NeededApprovals(asked.getApprovers().getGroup(), 1),
        new SessionPlan.Request(
            requester,
            asked.getRequestId(),
            IntentVerifier.digest(intent.getPayload()),
            asked.getKeyFingerprint(),
            asked,
            intent.toByteString(),
            approvals),
        coordinator);
  }

  private GroupStore kept() {
    return i.party("alpha").store.groups();
  }

  @Test
  void approvals_of_a_request_release_none_of_another_requester_that_signs_the_same_bytes()
      throws Exception {
    SignedIntent intent = intent();
    ByteString approval = by(0, intent);
    Roster roster = i.network.roster();
    assertThat(counted(kept(), roster, "wallet", intent, approval).tags()).hasSize(1);
    assertThatThrownBy(() -> counted(kept(), roster, "other", intent, approval))
        .isInstanceOf(RefusedException.class)
        .hasMessageContaining("not of this request");
  }

  /** A store that has the group of the tests in the place of another name and epoch. */
  private GroupStore moved(String group, int epoch) {
    GroupRecord there = kept().find(GROUP, 1).orElseThrow();
    GroupRecord moved =
        new GroupRecord(
            group,
            epoch,
            there.origin(),
            there.parties(),
            there.opening(),
            there.issuing(),
            there.published(),
            there.attested());
    return (GroupStore)
        Proxy.newProxyInstance(
            GroupStore.class.getClassLoader(),
            new Class<?>[] {GroupStore.class},
            (_, method, _) -> {
              assertThat(method.getName()).isEqualTo("attested");
              return List.of(moved);
            });
  }

  @Test
  void a_row_of_the_store_in_the_place_of_another_counts_for_nothing() {
    for (Approvers.Builder named :
        List.of(approvers().setGroup("groups/treasury"), approvers().setEpoch(2))) {
      SignedIntent intent = intent(named);
      GroupStore store = moved(named.getGroup(), named.getEpoch());
      assertThatThrownBy(() -> counted(store, i.network.roster(), "wallet", intent, by(0, intent)))
          .isInstanceOf(RefusedException.class)
          .hasMessageContaining("something else in the place of that epoch");
    }
  }

  @Test
  void a_group_in_the_store_that_others_than_this_partys_roster_have_signed_counts_for_nothing(
      @TempDir Path elsewhere) {
    NativeParties strangers = new NativeParties();
    try (Installation others = new Installation(elsewhere, strangers.evidence(), strangers::open)) {
      Roster own = others.network.roster();
      SignedIntent intent = intent();
      assertThatThrownBy(() -> counted(kept(), own, "wallet", intent, by(0, intent)))
          .isInstanceOf(RefusedException.class)
          .hasMessageContaining("the roster has changed");
    }
  }

  @Test
  void a_coordinator_that_shows_good_approvals_again_and_again_has_them_counted_once()
      throws Exception {
    GroupCore core = (GroupCore) cores.core("alpha");
    AtomicInteger counts = new AtomicInteger();
    ApprovalCheck check =
        new ApprovalCheck(
            kept(),
            i.network.roster(),
            call -> {
              if (call.hasCountApprovals()) {
                counts.incrementAndGet();
              }
              return core.call(call);
            },
            () -> 0);
    SignedIntent intent = intent();
    List<ByteString> list = List.of(by(0, intent), by(1, intent));
    for (int n = 0; n < 100; n++) {
      assertThat(counted(check, "wallet", intent, list, "coordinator").tags()).hasSize(2);
    }
    assertThat(counts).hasValue(1);
    RefusedException refused = null;
    for (int n = 0; n < 100 && refused == null; n++) {
      try {
        counted(check, "wallet", intent, List.of(by(0, intent)), "coordinator");
      } catch (RefusedException e) {
        refused = e;
      }
    }
    assertThat(refused).hasMessageContaining("or with others than before");
    assertThat(counted(check, "wallet", intent, list, "coordinator").tags()).hasSize(2);
    assertThat(counted(check, "wallet", intent, list.reversed(), "coordinator-2").tags())
        .as("another coordinator has a rate of its own")
        .hasSize(2);
  }
}
