package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationProblem.RECEIPT_MALFORMED;
import static io.coterie.platform.attestation.AttestationProblem.RECEIPT_ORDER;
import static io.coterie.platform.attestation.AttestationProblem.RECEIPT_OTHER;
import static io.coterie.platform.attestation.AttestationProblem.RECEIPT_SIGNATURE;
import static io.coterie.platform.attestation.AttestationProblem.RECEIPT_STRANGER;
import static io.coterie.platform.attestation.AttestationProblem.RESHARE_FLOOR;
import static io.coterie.platform.attestation.AttestationProblem.RESHARE_UNKNOWN;
import static io.coterie.platform.attestation.TestSession.INSTALLATION;
import static io.coterie.platform.attestation.TestSession.KEY;
import static io.coterie.platform.attestation.TestSession.PARTIES;
import static io.coterie.platform.attestation.TestSession.answer;
import static io.coterie.platform.attestation.TestSession.creation;
import static io.coterie.platform.attestation.TestSession.refresh;
import static io.coterie.platform.attestation.TestSession.reshare;
import static io.coterie.platform.attestation.TestSession.trust;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Receipts that prove that nothing was signed, and every lie about them. */
class NeverProofTest {
  private static final Scheme BIP340 = Scheme.SCHEME_BIP340_SECP256K1;
  private static final String ID = "01a3185c-5000-7000-8000-000000000009";

  /** Two of 1, 2 and 3; refreshed; then three of 2, 3, 4 and 5. */
  private static final TestSession CREATION = creation(BIP340);

  private static final TestSession REFRESHED = refresh(CREATION);
  private static final TestSession LAST = reshare(REFRESHED, 3, 2, 3, 4, 5);

  private static Receipt receipt(int party, int reshareEpoch) {
    return Receipt.newBuilder()
        .setKind(Receipt.Kind.NEVER)
        .setInstallation(INSTALLATION)
        .setKey(KEY)
        .setKeyFingerprint(KeyFingerprint.of(CREATION.keyPublic.build()))
        .setReshareEpoch(reshareEpoch)
        .setRequester("wallet")
        .setRequestId(ID)
        .setParty(party)
        .build();
  }

  static SignedReceipt signed(int by, Receipt receipt) {
    return Receipts.signed(receipt, TestSession.sign(PARTIES.get(by), Receipts.statement(receipt)));
  }

  /** Of the parties since the reshare, which made epoch 3. */
  private static SignedReceipt says(int party) {
    return signed(party, receipt(party, 3));
  }

  private static NeverProof proof(int reshareEpoch, int corrupt, SignedReceipt... receipts)
      throws AttestationException {
    Trust trust = new Trust(trust().roster(), trust().requesters(), corrupt);
    return NeverProof.of(
        AttestedKey.of(KEY, answer(BIP340, CREATION, REFRESHED, LAST), trust),
        new NeverProof.Request("wallet", ID, reshareEpoch),
        List.of(receipts),
        trust);
  }

  @ParameterizedTest
  @CsvSource({"0, 2", "1, 3", "2, 4"})
  void as_many_as_leave_too_few_to_sign_prove_it(int corrupt, int needed) throws Exception {
    SignedReceipt[] all =
        Stream.of(2, 3, 4, 5).map(NeverProofTest::says).toArray(SignedReceipt[]::new);
    for (int n = 0; n <= all.length; n++) {
      SignedReceipt[] some = Stream.of(all).limit(n).toArray(SignedReceipt[]::new);
      NeverProof proof = proof(3, corrupt, some);
      assertThat(proof.needed()).isEqualTo(needed);
      assertThat(proof.holds()).as("%d receipts", n).isEqualTo(n >= needed);
      assertThat(proof.isImpossible()).isFalse();
    }
    assertThat(proof(3, corrupt, all).never()).containsExactly("p2", "p3", "p4", "p5");
  }

  @Test
  void a_shape_that_lets_as_many_lie_as_sign_proves_nothing() throws Exception {
    NeverProof proof = proof(3, 3, says(2), says(3), says(4), says(5));
    assertThat(proof.holds()).isFalse();
    assertThat(proof.isImpossible()).isTrue();
  }

  @Test
  void the_parties_before_a_reshare_speak_of_the_requests_of_their_time() throws Exception {
    NeverProof proof = proof(0, 0, signed(1, receipt(1, 0)), signed(2, receipt(2, 0)));
    assertThat(proof.never()).containsExactly("p1", "p2");
    assertThat(proof.needed()).isEqualTo(2);
    assertThat(proof.holds()).isTrue();
  }

  /** A thief of a requester's key and as many corrupt parties can have made the reshare up. */
  @Test
  void the_parties_since_a_reshare_below_the_floors_of_today_prove_nothing() throws Exception {
    TestSession low = reshare(CREATION, 2, 2, 3, 4);
    TestSession high = reshare(low, 3, 1, 2, 3, 4, 5);
    Trust floors = AttestedKeyTest.trustWith("keys/*", Set.of(KeyRight.RESHARE), 3, 5);
    AttestedKey key = AttestedKey.of(KEY, answer(BIP340, CREATION, low, high), floors);
    List<SignedReceipt> receipts =
        List.of(signed(2, receipt(2, 2)), signed(3, receipt(3, 2)), signed(4, receipt(4, 2)));
    NeverProof.Request request = new NeverProof.Request("wallet", ID, 2);
    assertThat(NeverProof.of(key, request, receipts, trust()).holds()).isTrue();
    assertThatThrownBy(() -> NeverProof.of(key, request, receipts, floors))
        .isInstanceOfSatisfying(
            AttestationException.class, e -> assertThat(e.problem()).isEqualTo(RESHARE_FLOOR));
    List<SignedReceipt> later =
        Stream.of(1, 2, 3, 5).map(party -> signed(party, receipt(party, 3))).toList();
    assertThat(NeverProof.of(key, new NeverProof.Request("wallet", ID, 3), later, floors).holds())
        .isTrue();
  }

  @Test
  void the_parties_since_a_creation_below_the_floors_of_today_prove_nothing() throws Exception {
    TestSession high = reshare(CREATION, 3, 1, 2, 3, 4, 5);
    Trust floors = AttestedKeyTest.trustOfWallet(3, 5);
    AttestedKey key = AttestedKey.of(KEY, answer(BIP340, CREATION, high), trust());
    List<SignedReceipt> receipts =
        Stream.of(1, 2, 3).map(party -> signed(party, receipt(party, 0))).toList();
    NeverProof.Request request = new NeverProof.Request("wallet", ID, 0);
    assertThat(NeverProof.of(key, request, receipts, trust()).holds()).isTrue();
    assertThatThrownBy(() -> NeverProof.of(key, request, receipts, floors))
        .isInstanceOfSatisfying(
            AttestationException.class, e -> assertThat(e.problem()).isEqualTo(RESHARE_FLOOR));
  }

  record Lie(String told, AttestationProblem problem, SignedReceipt... receipts) {
    @Override
    public String toString() {
      return told;
    }
  }

  private static Lie about(String told, UnaryOperator<Receipt.Builder> change) {
    return new Lie(
        told, RECEIPT_OTHER, says(2), signed(3, change.apply(receipt(3, 3).toBuilder()).build()));
  }

  static Stream<Lie> lies() {
    return Stream.of(
        new Lie("twice the same party", RECEIPT_ORDER, says(3), says(3)),
        new Lie("out of order", RECEIPT_ORDER, says(4), says(3)),
        new Lie("a holder of before", RECEIPT_STRANGER, says(1)),
        new Lie("a party that never held a share", RECEIPT_STRANGER, says(6)),
        new Lie("signed by another party", RECEIPT_SIGNATURE, signed(4, receipt(3, 3))),
        new Lie(
            "changed after it was signed",
            RECEIPT_SIGNATURE,
            Receipts.signed(receipt(3, 3), says(2).getSignatures(0).getSig())),
        new Lie(
            "no envelope of a receipt",
            RECEIPT_MALFORMED,
            says(2).toBuilder().setPayloadType("x").build()),
        about(
            "a request that it has signed",
            r -> r.setKind(Receipt.Kind.SIGNED).setIntentDigest(ByteString.copyFrom(new byte[32]))),
        about(
            "a request that it has refused",
            r ->
                r.setKind(Receipt.Kind.REFUSED)
                    .setIntentDigest(ByteString.copyFrom(new byte[32]))
                    .setReason("REFUSAL_REASON_FORBIDDEN")
                    .setUnixMs(1)),
        about("another installation", r -> r.setInstallation("staging")),
        about("another key", r -> r.setKey("keys/hot-2")),
        about("another fingerprint", r -> r.setKeyFingerprint(ByteString.copyFrom(new byte[16]))),
        about("the parties of another time", r -> r.setReshareEpoch(0)),
        about("another requester", r -> r.setRequester("keeper")),
        about("another request", r -> r.setRequestId("01a3185c-5000-7000-8000-000000000008")));
  }

  /** The problems that the lies here show. */
  static Set<AttestationProblem> problems() {
    Set<AttestationProblem> problems = EnumSet.of(RESHARE_UNKNOWN, RESHARE_FLOOR);
    lies().forEach(lie -> problems.add(lie.problem()));
    return problems;
  }

  @ParameterizedTest
  @MethodSource
  void lies(Lie lie) {
    assertThatThrownBy(() -> proof(3, 0, lie.receipts()))
        .isInstanceOfSatisfying(
            AttestationException.class, e -> assertThat(e.problem()).isEqualTo(lie.problem()));
  }

  @Test
  void a_reshare_that_the_attestation_does_not_show_has_no_parties() {
    for (int epoch : new int[] {2, 4}) {
      assertThatThrownBy(() -> proof(epoch, 0))
          .isInstanceOfSatisfying(
              AttestationException.class, e -> assertThat(e.problem()).isEqualTo(RESHARE_UNKNOWN));
    }
  }
}
