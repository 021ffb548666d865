package io.coterie.mpc;

import static io.coterie.mpc.LocalGroup.request;
import static io.coterie.mpc.NativeVaultTest.assertFails;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.CheckRegistration;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupRefusal;
import io.coterie.proto.core.v1.GroupRefused;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.IssuerRecords;
import io.coterie.proto.core.v1.MemberRegistered;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.SessionConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A whole group: issuers, an auditor and members, with the real core. */
class GroupCallTest {
  private static final ApprovalRequest ASKED =
      request(1, ApprovalDecision.APPROVAL_DECISION_APPROVE);

  private static LocalGroup group;
  private static LocalGroup.Member alice;
  private static LocalGroup.Member bob;

  @BeforeAll
  static void create() {
    group = new LocalGroup();
    alice = group.new Member().register().join(List.of(1, 2));
    bob = group.new Member().register().join(List.of(2, 3));
  }

  @AfterAll
  static void close() {
    alice.close();
    bob.close();
    group.close();
  }

  private static GroupRefused refusal(GroupReply reply) {
    assertThat(reply.getReplyCase()).isEqualTo(GroupReply.ReplyCase.GROUP_REFUSED);
    return reply.getGroupRefused();
  }

  @Test
  void members_approve_once_each_and_the_auditor_names_one_of_them() {
    ByteString first = alice.approve(ASKED).getApproval();
    ByteString second = bob.approve(ASKED).getApproval();
    assertThat(group.count(ASKED, List.of(first, second), 2).getApprovalsCounted().getTagsList())
        .containsExactly(alice.approve(ASKED).getTag(), bob.approve(ASKED).getTag())
        .doesNotHaveDuplicates();
    GroupRefused twice =
        refusal(group.count(ASKED, List.of(first, second, alice.approve(ASKED).getApproval()), 2));
    assertThat(twice.getReason()).isEqualTo(GroupRefusal.GROUP_REFUSAL_COUNTED_TWICE);
    assertThat(twice.getPlace()).isEqualTo(2);
    GroupRefused few = refusal(group.count(ASKED, List.of(first), 2));
    assertThat(few.getReason()).isEqualTo(GroupRefusal.GROUP_REFUSAL_TOO_FEW);
    assertThat(few.getCount()).isEqualTo(1);

    ByteString share = group.share(ASKED, second).getOpeningShared().getShare();
    ByteString named = group.open(ASKED, second, share).getOpened().getPoint();
    assertThat(named).isEqualTo(bob.point).isNotEqualTo(alice.point);
    MemberRegistered entry = bob.records.get(1);
    CheckRegistration.Builder check =
        CheckRegistration.newBuilder()
            .setGroup(group.group)
            .setTicket(bob.ticket)
            .setIdentity(bob.evidenceKey())
            .setPoint(named)
            .setAcceptance(entry.getAcceptance());
    assertThat(
            group
                .verifier
                .call(GroupCall.newBuilder().setCheckRegistration(check).build())
                .hasRegistrationChecked())
        .isTrue();
    GroupCall alices =
        GroupCall.newBuilder().setCheckRegistration(check.setIdentity(alice.evidenceKey())).build();
    assertThat(refusal(group.verifier.call(alices)).getReason())
        .isEqualTo(GroupRefusal.GROUP_REFUSAL_NOT_ACCEPTED);
    // The share opens that approval and no other.
    GroupRefused other = refusal(group.open(ASKED, first, share));
    assertThat(other.getReason()).isEqualTo(GroupRefusal.GROUP_REFUSAL_WRONG_SHARE);
    assertThat(other.getParty()).isEqualTo(LocalGroup.AUDITOR);
  }

  @Test
  void tags_of_other_requests_and_decisions_differ() {
    List<ApprovalRequest> requests =
        List.of(
            ASKED,
            request(2, ApprovalDecision.APPROVAL_DECISION_APPROVE),
            request(1, ApprovalDecision.APPROVAL_DECISION_REJECT));
    assertThat(requests).map(r -> alice.approve(r).getTag()).doesNotHaveDuplicates();
    for (ApprovalRequest other : requests.subList(1, 3)) {
      GroupRefused refused =
          refusal(group.count(ASKED, List.of(alice.approve(other).getApproval()), 1));
      assertThat(refused.getReason()).isEqualTo(GroupRefusal.GROUP_REFUSAL_WRONG_PROOF);
    }
  }

  @Test
  void a_group_is_one_with_every_issuers_signature_only() {
    for (int issuer = 1; issuer <= 3; issuer++) {
      List<PartyBytes> signatures = new ArrayList<>(group.signatures());
      signatures.remove(issuer - 1);
      GroupRefused refused = refusal(group.assemble(signatures));
      assertThat(refused.getReason()).isEqualTo(GroupRefusal.GROUP_REFUSAL_NOT_ATTESTED);
      assertThat(refused.getParty()).isEqualTo(issuer);
    }
  }

  @Test
  void a_ticket_stays_with_its_first_application() {
    try (LocalGroup.Member member = group.new Member()) {
      ByteString reservation =
          member
              .reserve(member.apply().getApplication(), IssuerRecords.getDefaultInstance())
              .getReserved()
              .getReservation();
      IssuerRecords stored = IssuerRecords.newBuilder().setReservation(reservation).build();
      ByteString another = member.apply().getApplication();
      assertThat(refusal(member.reserve(another, stored)).getReason())
          .isEqualTo(GroupRefusal.GROUP_REFUSAL_TICKET_BOUND);
      IssuerRecords taken = IssuerRecords.newBuilder().setIdentityReserved(true).build();
      assertThat(refusal(member.reserve(another, taken)).getReason())
          .isEqualTo(GroupRefusal.GROUP_REFUSAL_IDENTITY_TAKEN);
    }
  }

  @Test
  void a_run_begins_once_and_only_where_it_was_counted() {
    try (LocalGroup.Member member = group.new Member().register()) {
      SessionConfig joining = member.ordered(3, List.of(1, 2));
      member.start(joining).close();
      assertFails(MpcException.Reason.SETUP_REFUSED, () -> member.start(joining));
      member.startIssuer(1, joining).close();
      assertFails(MpcException.Reason.SETUP_REFUSED, () -> member.startIssuer(1, joining));
      assertFails(MpcException.Reason.SETUP_REFUSED, () -> member.startIssuer(3, joining));
      assertThat(member.records.get(1).getMember()).isNotEqualTo(member.records.get(3).getMember());
    }
  }

  @Test
  void secrets_of_a_member_open_in_its_vault_for_their_use_only() {
    for (ByteString blob : List.of(alice.sealed, alice.apply().getSealedApplicant())) {
      assertFails(
          MpcException.Reason.UNSEAL_FAILED, () -> alice.vault.unseal("", blob.toByteArray()));
    }
    GroupCall approve =
        GroupCall.newBuilder()
            .setApprove(
                io.coterie.proto.core.v1.Approve.newBuilder()
                    .setGroup(group.group)
                    .setRequest(ASKED)
                    .setSealedMember(alice.sealed))
            .build();
    assertFails(
        MpcException.Reason.UNSEAL_FAILED, () -> bob.vault.call(approve, bob.identity.sealed()));
    assertFails(MpcException.Reason.SETUP_REFUSED, () -> group.verifier.call(approve));
  }

  /** Each alteration leads to a refusal, or to a code for the caller's own arguments. */
  @Test
  void hostile_bytes_are_refused() {
    Random random = new Random(5);
    ByteString approval = alice.approve(ASKED).getApproval();
    byte[] good =
        GroupCall.newBuilder()
            .setCountApprovals(
                io.coterie.proto.core.v1.CountApprovals.newBuilder()
                    .setGroup(group.group)
                    .setRequest(ASKED)
                    .addApprovals(approval)
                    .setNeeded(1))
            .build()
            .toByteArray();
    int refused = 0;
    for (int i = 0; i < 300; i++) {
      byte[] altered = good.clone();
      altered[random.nextInt(altered.length)] ^= (byte) (1 << random.nextInt(8));
      try {
        GroupCall call = GroupCall.parseFrom(altered);
        if (group.verifier.call(call).hasGroupRefused()) {
          refused++;
        }
      } catch (InvalidProtocolBufferException notSent) {
        // Java itself does not make such a call.
      } catch (MpcException e) {
        assertThat(e.reason())
            .isIn(MpcException.Reason.INVALID_ARGUMENT, MpcException.Reason.SETUP_REFUSED);
      }
    }
    assertThat(refused).isGreaterThan(200);
    assertFails(
        MpcException.Reason.INVALID_ARGUMENT,
        () -> group.verifier.call(GroupCall.getDefaultInstance()));
  }
}
