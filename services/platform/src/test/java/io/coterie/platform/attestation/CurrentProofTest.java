package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationProblem.CURRENT_LATER;
import static io.coterie.platform.attestation.AttestationProblem.CURRENT_ORDER;
import static io.coterie.platform.attestation.AttestationProblem.CURRENT_SIGNATURE;
import static io.coterie.platform.attestation.AttestationProblem.CURRENT_STRANGER;
import static io.coterie.platform.attestation.TestSession.INSTALLATION;
import static io.coterie.platform.attestation.TestSession.KEY;
import static io.coterie.platform.attestation.TestSession.PARTIES;
import static io.coterie.platform.attestation.TestSession.answer;
import static io.coterie.platform.attestation.TestSession.creation;
import static io.coterie.platform.attestation.TestSession.party;
import static io.coterie.platform.attestation.TestSession.refresh;
import static io.coterie.platform.attestation.TestSession.reshare;
import static io.coterie.platform.attestation.TestSession.trust;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Member;
import io.coterie.trust.Trust;
import java.security.KeyPair;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The parties' answers to a client's challenge, and every lie about them. */
class CurrentProofTest {
  private static final Scheme BIP340 = Scheme.SCHEME_BIP340_SECP256K1;
  private static final ByteString CHALLENGE = bytes(7);
  private static final ByteString OTHER = bytes(8);

  /** Two of 1, 2 and 3; then two of 2, 3 and 4. */
  private static final TestSession CREATION = creation(BIP340);

  private static final TestSession LAST = reshare(CREATION, 2, 2, 3, 4);

  private static ByteString bytes(int value) {
    byte[] bytes = new byte[32];
    bytes[0] = (byte) value;
    return ByteString.copyFrom(bytes);
  }

  private static CurrentStatement statement(TestSession session) {
    return CurrentStatement.using(
        INSTALLATION, session.id, session.keyPublic.build(), false, CHALLENGE);
  }

  private static EpochStatement signed(CurrentStatement statement, int party) {
    return statement.signed(party, TestSession.sign(PARTIES.get(party), statement.of(party)));
  }

  private static EpochStatement says(TestSession session, int party) {
    return signed(statement(session), party);
  }

  private static Key shown(EpochStatement... statements) {
    return answer(BIP340, CREATION, LAST).toBuilder().addAllCurrent(List.of(statements)).build();
  }

  private static CurrentProof proof(Key answer) throws AttestationException {
    return CurrentProof.of(AttestedKey.of(KEY, answer, trust()), answer, CHALLENGE, trust());
  }

  record Lie(String told, AttestationProblem problem, EpochStatement... statements) {
    @Override
    public String toString() {
      return told;
    }
  }

  /** Party 3 signs something else, and 2 and 4 the truth. */
  private static Lie signs(
      String told, AttestationProblem problem, UnaryOperator<CurrentStatement> change) {
    return new Lie(
        told,
        problem,
        says(LAST, 2),
        signed(change.apply(statement(LAST)), 3).toBuilder()
            .setEpoch(LAST.epoch)
            .setUndecided(false)
            .build(),
        says(LAST, 4));
  }

  /** The message of party 3 is changed after it was signed. */
  private static Lie changed(String told, Consumer<EpochStatement.Builder> change) {
    EpochStatement.Builder statement = says(LAST, 3).toBuilder();
    change.accept(statement);
    return new Lie(told, CURRENT_SIGNATURE, says(LAST, 2), statement.build(), says(LAST, 4));
  }

  private static CurrentStatement with(
      CurrentStatement s, String installation, String key, ByteString fingerprint) {
    return new CurrentStatement(
        installation,
        key,
        fingerprint,
        s.epoch(),
        s.session(),
        s.keyPublicDigest(),
        s.undecided(),
        s.challenge());
  }

  static List<Lie> lies() {
    List<Lie> lies = new ArrayList<>();
    lies.add(new Lie("twice the same party", CURRENT_ORDER, says(LAST, 3), says(LAST, 3)));
    lies.add(new Lie("out of order", CURRENT_ORDER, says(LAST, 4), says(LAST, 3)));
    lies.add(new Lie("no party", CURRENT_ORDER, says(LAST, 3).toBuilder().setParty(0).build()));
    lies.add(new Lie("a holder of the epoch before", CURRENT_STRANGER, says(CREATION, 1)));
    lies.add(new Lie("a party that never held a share", CURRENT_STRANGER, says(LAST, 5)));
    lies.add(
        new Lie(
            "a party of no roster",
            CURRENT_STRANGER,
            says(LAST, 4).toBuilder().setParty(77).build()));
    lies.add(
        signs(
            "the answer to another challenge",
            CURRENT_SIGNATURE,
            s ->
                CurrentStatement.using(
                    INSTALLATION, LAST.id, LAST.keyPublic.build(), false, OTHER)));
    lies.add(
        signs(
            "a statement of another installation",
            CURRENT_SIGNATURE,
            s -> with(s, "other", KEY, s.fingerprint())));
    lies.add(
        signs(
            "a statement about another key",
            CURRENT_SIGNATURE,
            s -> with(s, INSTALLATION, "keys/cold-1", s.fingerprint())));
    lies.add(
        signs(
            "a statement about another key of that name",
            CURRENT_SIGNATURE,
            s ->
                with(
                    s,
                    INSTALLATION,
                    KEY,
                    s.fingerprint().substring(1).concat(OTHER.substring(0, 1)))));
    lies.add(
        signs(
            "a share of another session is hidden",
            CURRENT_SIGNATURE,
            s ->
                CurrentStatement.using(
                    INSTALLATION, LAST.id, LAST.keyPublic.build(), true, CHALLENGE)));
    lies.add(
        signs("an older epoch passes for this one", CURRENT_SIGNATURE, s -> statement(CREATION)));
    lies.add(
        changed("another party's signature", s -> s.setSignature(says(LAST, 4).getSignature())));
    lies.add(
        changed(
            "the signature that the share is used",
            s ->
                s.setSignature(
                    answer(BIP340, CREATION, LAST)
                        .getAttestation()
                        .getCompletions(1)
                        .getSignatures(1)
                        .getSignature())));
    lies.add(changed("no signature", EpochStatement.Builder::clearSignature));
    lies.add(changed("another session", s -> s.setSessionId(OTHER)));
    lies.add(changed("other public data", s -> s.setKeyPublicDigest(OTHER)));
    lies.add(changed("a short session id", s -> s.setSessionId(LAST.id.substring(1))));
    lies.add(changed("no digest", EpochStatement.Builder::clearKeyPublicDigest));
    lies.add(changed("a later epoch", s -> s.setEpoch(3)));
    TestSession next = refresh(LAST);
    lies.add(new Lie("parties that have gone on", CURRENT_LATER, says(LAST, 2), says(next, 3)));
    KeyPublic last = LAST.keyPublic.clone().setEpoch(-1).build();
    lies.add(
        new Lie(
            "the last of all epochs",
            CURRENT_LATER,
            signed(CurrentStatement.using(INSTALLATION, LAST.id, last, false, CHALLENGE), 2)));
    return lies;
  }

  /** Problems that no answer without a challenge can have. */
  static Set<AttestationProblem> problems() {
    return lies().stream().map(Lie::problem).collect(Collectors.toSet());
  }

  @ParameterizedTest
  @MethodSource("lies")
  void a_lie_is_refused_for_what_it_is(Lie lie) {
    assertThatThrownBy(() -> proof(shown(lie.statements())))
        .isInstanceOfSatisfying(
            AttestationException.class,
            e -> {
              assertThat(e.problem()).as(e.getMessage()).isEqualTo(lie.problem());
              assertThat(e.getMessage()).hasLineCount(1).endsWith(".").doesNotContain("%");
            });
  }

  @Test
  void as_many_as_leave_fewer_than_the_threshold_prove_it() throws Exception {
    CurrentProof all = proof(shown(says(LAST, 2), says(LAST, 3), says(LAST, 4)));
    assertThat(all).isEqualTo(new CurrentProof(List.of("p2", "p3", "p4"), List.of(), 3, 2));
    assertThat(all.holds()).isTrue();
    assertThat(proof(shown(says(LAST, 2), says(LAST, 4))).holds()).isTrue();
    CurrentProof one = proof(shown(says(LAST, 3)));
    assertThat(one.holds()).isFalse();
    assertThat(one.needed()).isEqualTo(2);
    assertThat(proof(shown()).holds()).isFalse();

    for (int threshold = 2; threshold <= 5; threshold++) {
      TestSession five = creation(BIP340, threshold, 1, 2, 3, 4, 5);
      for (int said = 0; said <= 5; said++) {
        Key.Builder answer = answer(BIP340, five).toBuilder();
        for (int party = 1; party <= said; party++) {
          answer.addCurrent(says(five, party));
        }
        assertThat(proof(answer.build()).holds())
            .as("%d of five say so, and %d can sign", said, threshold)
            .isEqualTo(5 - said < threshold);
      }
    }
  }

  @Test
  void other_shares_than_those_shown_do_not_count_and_are_no_lie() throws Exception {
    TestSession rival = reshare(CREATION, 2, 2, 3, 4).with(s -> s.id = OTHER);
    TestSession points =
        reshare(CREATION, 2, 2, 3, 4)
            .with(s -> s.keyPublic.getVerificationSharesBuilder(0).setPoint(OTHER));
    for (TestSession other : List.of(CREATION, rival, points)) {
      CurrentProof proof = proof(shown(says(other, 2), says(LAST, 3)));
      assertThat(proof.confirming()).containsExactly("p3");
      assertThat(proof.holds()).isFalse();
    }
  }

  @Test
  void a_party_that_keeps_another_share_is_named() throws Exception {
    CurrentStatement keeps =
        CurrentStatement.using(INSTALLATION, LAST.id, LAST.keyPublic.build(), true, CHALLENGE);
    CurrentProof proof = proof(shown(says(LAST, 2), signed(keeps, 4)));
    assertThat(proof.holds()).isTrue();
    assertThat(proof.undecided()).containsExactly("p4");
  }

  @Test
  void an_evidence_key_of_the_past_answers_nothing() throws Exception {
    KeyPair fresh = TestSession.pair("Ed25519");
    List<Member> members = new ArrayList<>();
    PARTIES.forEach((id, pair) -> members.add(party("p" + id, id, id == 2 ? fresh : pair)));
    Trust trust =
        trust(members, List.of(new FormerParty("p2", 2, TestSession.raw(PARTIES.get(2)), 9)));
    Key answer = shown(says(LAST, 2), says(LAST, 3));
    AttestedKey key = AttestedKey.of(KEY, answer, trust);
    assertThatThrownBy(() -> CurrentProof.of(key, answer, CHALLENGE, trust))
        .hasMessageContaining("the answer of p2 to the challenge does not verify");
    CurrentStatement statement = statement(LAST);
    Key after = shown(statement.signed(2, TestSession.sign(fresh, statement.of(2))), says(LAST, 3));
    assertThat(CurrentProof.of(key, after, CHALLENGE, trust).holds()).isTrue();
  }

  @Test
  void a_challenge_of_another_length_is_never_signed() {
    for (int length : new int[] {0, 1, 31, 33, 64}) {
      assertThatThrownBy(
              () ->
                  CurrentStatement.using(
                      INSTALLATION,
                      LAST.id,
                      LAST.keyPublic.build(),
                      false,
                      ByteString.copyFrom(new byte[length])))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
