package io.coterie.platform.attestation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A coordinator's answer about a group, before the core checks the signatures of its parties. */
class TrustedGroupTest {
  private static final String GROUP = "groups/approvers";

  private static KeyPair wallet;
  private static KeyPair stranger;

  @BeforeAll
  static void keys() throws Exception {
    KeyPairGenerator keys = KeyPairGenerator.getInstance("Ed25519");
    wallet = keys.generateKeyPair();
    stranger = keys.generateKeyPair();
  }

  private static Trust trust(Set<KeyRight> rights, int minThreshold, int minParties) {
    List<Member> members = new ArrayList<>();
    for (int id = 1; id <= 3; id++) {
      members.add(
          new Member(
              "party-" + id,
              Member.Role.PARTY,
              id,
              "here",
              new UUID(0, id),
              1,
              new byte[33],
              new byte[32]));
    }
    return new Trust(
        new Roster("test", 1, members),
        List.of(
            new Trust.Requester(
                "wallet",
                List.of(wallet.getPublic().getEncoded()),
                List.of(new Glob("groups/app*")),
                rights,
                minThreshold,
                minParties)));
  }

  private static Trust trust() {
    return trust(Set.of(KeyRight.CREATE), 2, 2);
  }

  private static GroupIntent.Builder intent() {
    return GroupIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setGroup(GROUP)
        .setEpoch(4)
        .setIssuerThreshold(2)
        .addAllIssuers(List.of("party-3", "party-1"))
        .setOpenerThreshold(1)
        .addOpeners("party-2")
        .setInstallation("test")
        .setNotAfter(end());
  }

  private static Timestamp end() {
    return Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond() + 60).build();
  }

  private static SignedIntent signed(GroupIntent.Builder intent, KeyPair by) {
    return new IntentSigner("wallet", by.getPrivate()).sign(intent.build());
  }

  private static Group.Builder answer(SignedIntent intent) {
    return Group.newBuilder()
        .setGroup(GROUP)
        .setEpoch(4)
        .setState(Group.State.ACTIVE)
        .setAttested(ByteString.copyFromUtf8("attested"))
        .setSignedIntent(intent);
  }

  private static Group.Builder answer() {
    return answer(signed(intent(), wallet));
  }

  private static Group answer(GroupIntent.Builder intent) {
    return answer(signed(intent, wallet)).build();
  }

  /** An answer that is not to be believed, for each reason that there is. */
  private static Map<AttestationProblem, Group> lies() {
    SignedIntent key =
        new IntentSigner("wallet", wallet.getPrivate())
            .sign(
                KeyIntent.newBuilder()
                    .setRequestId(RequestId.next())
                    .setKey("keys/approvers")
                    .setScheme(Scheme.SCHEME_BLS12381)
                    .setThreshold(1)
                    .addParties("party-1")
                    .setInstallation("test")
                    .setNotAfter(end())
                    .build());
    return Map.of(
        AttestationProblem.GROUP_NAME_MALFORMED,
        answer().setGroup("approvers").build(),
        AttestationProblem.GROUP_OTHER,
        answer().setGroup("groups/approvers-2").build(),
        AttestationProblem.NOT_ACTIVE,
        answer().setState(Group.State.FAILED).build(),
        AttestationProblem.REQUESTER_UNKNOWN,
        answer().clearSignedIntent().build(),
        AttestationProblem.INTENT_SIGNATURE,
        answer(signed(intent(), stranger)).build(),
        AttestationProblem.INTENT_INSTALLATION_OTHER,
        answer(intent().setInstallation("other")),
        AttestationProblem.INTENT_KEY_OTHER,
        answer(key).build(),
        AttestationProblem.GROUP_EPOCH_OTHER,
        answer(intent().setEpoch(5)),
        AttestationProblem.GROUP_PARTY_UNKNOWN,
        answer(intent().addIssuers("nobody")));
  }

  /** The problems that these lies show. */
  static Set<AttestationProblem> problems() {
    return Set.of(
        AttestationProblem.GROUP_NAME_MALFORMED,
        AttestationProblem.GROUP_OTHER,
        AttestationProblem.GROUP_EPOCH_OTHER,
        AttestationProblem.GROUP_PARTY_UNKNOWN);
  }

  private static void refused(AttestationProblem problem, Group answer, Trust trust) {
    assertThatThrownBy(() -> TrustedGroup.of(GROUP, answer, trust))
        .isInstanceOfSatisfying(
            AttestationException.class,
            e -> {
              assertThat(e.problem()).as(e.getMessage()).isEqualTo(problem);
              assertThat(e.getMessage()).hasLineCount(1).endsWith(".").doesNotContain("%");
            });
  }

  @Test
  void a_requester_of_the_trust_file_says_whose_signatures_the_group_has() throws Exception {
    TrustedGroup trusted = TrustedGroup.of(GROUP, answer().build(), trust());
    assertThat(trusted.epoch()).isEqualTo(4);
    assertThat(trusted.members().issuers())
        .extracting(Member::name)
        .containsExactly("party-1", "party-3");
    assertThat(trusted.members().openers()).extracting(Member::name).containsExactly("party-2");
    assertThat(trusted.members().all()).extracting(Member::partyId).containsExactly(1, 2, 3);
  }

  @Test
  void a_lie_is_refused_for_what_it_is() {
    assertThat(lies().keySet()).containsAll(problems());
    lies().forEach((problem, answer) -> refused(problem, answer, trust()));
  }

  @Test
  void the_requester_needs_right_and_floors() {
    Group answer = answer().build();
    refused(
        AttestationProblem.REQUESTER_WITHOUT_RIGHT, answer, trust(Set.of(KeyRight.REFRESH), 2, 2));
    refused(AttestationProblem.THRESHOLD_FLOOR, answer, trust(Set.of(KeyRight.CREATE), 3, 3));
    refused(AttestationProblem.PARTIES_FLOOR, answer, trust(Set.of(KeyRight.CREATE), 2, 3));
    Group others =
        answer(intent().setGroup("groups/others")).toBuilder().setGroup("groups/others").build();
    assertThatThrownBy(() -> TrustedGroup.of("groups/others", others, trust()))
        .isInstanceOfSatisfying(
            AttestationException.class,
            e -> assertThat(e.problem()).isEqualTo(AttestationProblem.REQUESTER_NOT_ALLOWED));
  }
}
