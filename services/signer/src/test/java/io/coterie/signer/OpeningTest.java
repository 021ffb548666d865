package io.coterie.signer;

import static io.coterie.signer.GroupMaking.wish;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.opening.ShareSeal;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.CheckRegistration;
import io.coterie.proto.core.v1.CombineOpening;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.GroupMember;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.ListMembers;
import io.coterie.proto.party.v1.MembersListed;
import io.coterie.proto.party.v1.OpenApproval;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Openers and issuers with the native core name the member that made an approval, and no other. */
class OpeningTest {
  private static final String GROUP = "groups/approvers";

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;
  private GroupMaking making;
  private ByteString attested;
  private final List<TestMember> members = new ArrayList<>();
  private final ShareSeal.Recipient recipient = new ShareSeal.Recipient(new SecureRandom());

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), cores::open);
    i.start();
    making = new GroupMaking(i, wish(GROUP, 1));
    attested = making.made();
  }

  @AfterEach
  void stop() {
    members.forEach(TestMember::close);
    i.close();
    cores.close();
  }

  /** A member that has joined. */
  private TestMember joined() {
    TestMember member = TestMember.joined(i, making, attested);
    members.add(member);
    return member;
  }

  private static ApprovalRequest request(ApprovalDecision decision) {
    return ApprovalRequest.newBuilder()
        .setDigest(ByteString.copyFrom(new byte[32]))
        .setDecision(decision)
        .build();
  }

  private static ApprovalRequest request() {
    return request(ApprovalDecision.APPROVAL_DECISION_APPROVE);
  }

  private OpeningIntent.Builder intent(ByteString approval) {
    return OpeningIntent.newBuilder()
        .setRequestId(Installation.requestId())
        .setGroup(GROUP)
        .setEpoch(1)
        .setRequest(request().getDigest())
        .setApproval(approval)
        .setRecipient(recipient.publicKey())
        .setInstallation("test")
        .setPurpose("an audit")
        .setNotAfter(Installation.in(Duration.ofMinutes(5)));
  }

  private SignedIntent signed(OpeningIntent.Builder intent) {
    return new IntentSigner("wallet", i.wallet.getPrivate()).sign(intent.build());
  }

  private GroupOrder.Builder opening(SignedIntent intent) {
    return making
        .order()
        .setSignedIntent(intent)
        .setOpenApproval(OpenApproval.getDefaultInstance());
  }

  private MembersListed registry(SignedIntent intent, Member issuer, ByteString after) {
    GroupOrder.Builder order =
        making
            .order()
            .setSignedIntent(intent)
            .setListMembers(ListMembers.newBuilder().setAfter(after));
    return making.done(order, List.of(issuer)).get(issuer.partyId()).getMembersListed();
  }

  private void refused(RefusalReason reason, GroupOrder.Builder order) {
    Member alpha = making.members.openers().getFirst();
    GroupReport report = making.done(order, List.of(alpha)).get(alpha.partyId());
    assertThat(report.getRefused().getReason()).as("%s", report).isEqualTo(reason);
  }

  @Test
  void an_approval_is_opened_by_enough_openers_and_its_member_named_by_the_registry() {
    TestMember one = joined();
    joined();
    ByteString approval = one.approve(request());
    SignedIntent intent = signed(intent(approval));
    Map<Integer, GroupReport> reports = making.done(opening(intent), making.members.openers());
    CombineOpening.Builder combine =
        CombineOpening.newBuilder()
            .setGroup(one.group())
            .setRequest(request())
            .setApproval(approval);
    ByteString digest = IntentVerifier.digest(intent.getPayload());
    reports.forEach(
        (opener, report) -> {
          ByteString sealed = report.getApprovalOpened().getSealedShare();
          assertThat(recipient.open(opener + 1, digest, sealed)).as("another's").isEmpty();
          assertThat(new ShareSeal.Recipient(new SecureRandom()).open(opener, digest, sealed))
              .as("the coordinator reads nothing")
              .isEmpty();
          combine.addShares(
              PartyBytes.newBuilder()
                  .setParty(opener)
                  .setValue(recipient.open(opener, digest, sealed).orElseThrow()));
        });
    ByteString point =
        GroupMaking.VERIFIER
            .call(GroupCall.newBuilder().setCombineOpening(combine).build())
            .getOpened()
            .getPoint();
    assertThat(point).isEqualTo(one.point);

    GroupOrder.Builder listing =
        making.order().setSignedIntent(intent).setListMembers(ListMembers.getDefaultInstance());
    for (GroupReport report : making.done(listing, making.members.issuers()).values()) {
      assertThat(report.getMembersListed().getMembersList()).hasSize(2);
      GroupMember named =
          report.getMembersListed().getMembersList().stream()
              .filter(member -> member.getPoint().equals(point))
              .findFirst()
              .orElseThrow();
      assertThat(named.getTicket()).isEqualTo(one.ticket);
      assertThat(
              GroupMaking.VERIFIER
                  .call(
                      GroupCall.newBuilder()
                          .setCheckRegistration(
                              CheckRegistration.newBuilder()
                                  .setGroup(one.group())
                                  .setTicket(IntentVerifier.digest(named.getTicket().getPayload()))
                                  .setIdentity(ByteString.copyFrom(one.identity.evidenceKey()))
                                  .setPoint(point)
                                  .setAcceptance(named.getAcceptance()))
                          .build())
                  .hasRegistrationChecked())
          .isTrue();
    }
    // Page by page, in the order of the tickets' digests.
    Member alpha = making.members.issuers().getFirst();
    MembersListed all = registry(intent, alpha, ByteString.EMPTY);
    ByteString first = IntentVerifier.digest(all.getMembers(0).getTicket().getPayload());
    assertThat(registry(intent, alpha, first).getMembersList()).containsExactly(all.getMembers(1));
    assertThat(all.getMore()).isFalse();
    Installation.until(
        "the opening is on record",
        () ->
            i.party("alpha").store.audit().read(1, 1000).stream()
                .anyMatch(record -> "open_approval".equals(record.event().fields().get("step"))));
  }

  @Test
  void nothing_is_opened_but_an_approval_of_the_request_for_those_who_may() {
    TestMember one = joined();
    ByteString approval = one.approve(request());
    refused(
        RefusalReason.REFUSAL_REASON_APPROVAL_INVALID,
        opening(signed(intent(approval).setRejection(true))));
    refused(
        RefusalReason.REFUSAL_REASON_APPROVAL_INVALID,
        opening(
            signed(
                intent(approval)
                    .setRequest(ByteString.copyFromUtf8("another request of 32 bytes.....")))));
    byte[] altered = approval.toByteArray();
    altered[415] ^= 1;
    refused(
        RefusalReason.REFUSAL_REASON_APPROVAL_INVALID,
        opening(signed(intent(ByteString.copyFrom(altered)))));
    refused(
        RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
        opening(signed(intent(approval).setRecipient(ByteString.copyFrom(new byte[32])))));
    refused(RefusalReason.REFUSAL_REASON_GROUP_STEP, opening(signed(intent(approval).setEpoch(2))));
    refused(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, opening(one.ticket));
    refused(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, opening(making.intent));
    refused(
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
        one.reserving().setSignedIntent(signed(intent(approval))));
    SignedIntent.Builder forged = signed(intent(approval)).toBuilder();
    forged.getSignaturesBuilder(0).setSig(ByteString.copyFrom(new byte[64]));
    refused(RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE, opening(forged.build()));
    SignedIntent late = signed(intent(approval));
    i.clockOffset = Duration.ofHours(1);
    refused(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED, opening(late));
  }

  @Test
  void an_order_that_was_refused_waits_for_no_deadline() {
    Duration soon = Duration.ofSeconds(35);
    Duration late = Duration.ofSeconds(50);
    assertThat(i.time.isDue(soon, late)).isFalse();
    GroupOrder.Builder order =
        opening(signed(intent(ByteString.copyFrom(new byte[IntentVerifier.APPROVAL_BYTES]))))
            .setDeadline(Installation.in(Duration.ofSeconds(45)));
    refused(RefusalReason.REFUSAL_REASON_APPROVAL_INVALID, order);
    assertThat(i.time.isDue(soon, late)).as("until then it would be kept").isFalse();
  }
}
