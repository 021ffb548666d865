package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.NeverProofTest.signed;
import static io.coterie.platform.attestation.TestSession.INSTALLATION;
import static io.coterie.platform.attestation.TestSession.KEY;
import static io.coterie.platform.attestation.TestSession.answer;
import static io.coterie.platform.attestation.TestSession.creation;
import static io.coterie.platform.attestation.TestSession.reshare;
import static io.coterie.platform.attestation.TestSession.trust;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The refusals that parties have signed, and those that only a coordinator shows. */
class RefusalTest {
  private static final Scheme BIP340 = Scheme.SCHEME_BIP340_SECP256K1;
  private static final String ID = "01a3185c-5000-7000-8000-000000000009";
  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);
  private static final String HELD = RefusalReason.REFUSAL_REASON_ON_HOLD.name();

  /** Two of 1, 2 and 3; then three of 2, 3, 4 and 5. */
  private static final TestSession CREATION = creation(BIP340);

  private static final TestSession LAST = reshare(CREATION, 3, 2, 3, 4, 5);

  private static Receipt receipt(int party, int reshareEpoch) {
    return Receipt.newBuilder()
        .setKind(Receipt.Kind.REFUSED)
        .setInstallation(INSTALLATION)
        .setKey(KEY)
        .setKeyFingerprint(KeyFingerprint.of(CREATION.keyPublic.build()))
        .setReshareEpoch(reshareEpoch)
        .setRequester("wallet")
        .setRequestId(ID)
        .setIntentDigest(DIGEST)
        .setParty(party)
        .setReason(HELD)
        .setUnixMs(1_800_000_000_000L + party)
        .build();
  }

  private static SignedReceipt says(int party, int reshareEpoch) {
    return signed(party, receipt(party, reshareEpoch));
  }

  private static List<Refusal> refusals(int reshareEpoch, List<SignedReceipt> receipts)
      throws AttestationException {
    Trust trust = trust();
    return Refusal.of(
        AttestedKey.of(KEY, answer(BIP340, CREATION, LAST), trust),
        new NeverProof.Request("wallet", ID, reshareEpoch),
        DIGEST,
        receipts,
        trust);
  }

  @Test
  void a_party_of_the_key_is_believed_once() throws Exception {
    SignedReceipt third = says(3, 2);
    assertThat(refusals(2, List.of(third, says(2, 2), third)))
        .containsExactly(
            new Refusal(
                "p3",
                RefusalReason.REFUSAL_REASON_ON_HOLD,
                Instant.ofEpochMilli(1_800_000_000_003L),
                third),
            new Refusal(
                "p2",
                RefusalReason.REFUSAL_REASON_ON_HOLD,
                Instant.ofEpochMilli(1_800_000_000_002L),
                says(2, 2)));
  }

  /** Those of now refuse a request of before: it names another reshare. */
  @Test
  void the_parties_of_the_request_and_those_of_now_are_its_parties() throws Exception {
    assertThat(refusals(0, List.of(says(1, 0), says(4, 0), says(6, 0))))
        .extracting(Refusal::party)
        .containsExactly("p1", "p4");
    assertThat(refusals(2, List.of(says(1, 2)))).as("it had left by then").isEmpty();
  }

  /** A thief of a requester's key and as many corrupt parties can have made the reshare up. */
  @Test
  void the_parties_since_a_reshare_below_the_floors_of_today_are_not_its_parties()
      throws Exception {
    TestSession low = reshare(CREATION, 2, 2, 3, 6);
    TestSession high = reshare(low, 3, 1, 2, 3, 4, 5);
    List<SignedReceipt> receipts = List.of(says(6, 2), says(2, 2));
    Trust floors = AttestedKeyTest.trustWith("keys/*", Set.of(KeyRight.RESHARE), 3, 5);
    assertThat(parties(receipts, trust(), low, high)).containsExactly("p6", "p2");
    assertThat(parties(receipts, floors, low, high)).as("it holds it now").containsExactly("p2");
  }

  @Test
  void the_parties_since_a_creation_below_the_floors_of_today_are_not_its_parties()
      throws Exception {
    TestSession high = reshare(CREATION, 3, 2, 3, 4, 5, 6);
    Key answer = answer(BIP340, CREATION, high);
    List<SignedReceipt> receipts = List.of(says(1, 0), says(2, 0));
    NeverProof.Request request = new NeverProof.Request("wallet", ID, 0);
    Trust floors = AttestedKeyTest.trustOfWallet(3, 5);
    AttestedKey key = AttestedKey.of(KEY, answer, trust());
    assertThat(Refusal.of(key, request, DIGEST, receipts, trust()))
        .extracting(Refusal::party)
        .containsExactly("p1", "p2");
    assertThat(Refusal.of(key, request, DIGEST, receipts, floors))
        .extracting(Refusal::party)
        .containsExactly("p2");
  }

  private static List<String> parties(
      List<SignedReceipt> receipts, Trust trust, TestSession low, TestSession high)
      throws AttestationException {
    AttestedKey key = AttestedKey.of(KEY, answer(BIP340, CREATION, low, high), trust);
    NeverProof.Request request = new NeverProof.Request("wallet", ID, 2);
    return Refusal.of(key, request, DIGEST, receipts, trust).stream().map(Refusal::party).toList();
  }

  record Lie(String told, SignedReceipt receipt) {
    @Override
    public String toString() {
      return told;
    }
  }

  private static Lie about(String told, UnaryOperator<Receipt.Builder> change) {
    return new Lie(told, signed(3, change.apply(receipt(3, 2).toBuilder()).build()));
  }

  static Stream<Lie> lies() {
    return Stream.of(
        new Lie("signed by another party", signed(4, receipt(3, 2))),
        new Lie("a party outside the key", says(6, 2)),
        new Lie(
            "a reason that was changed after it was signed",
            Receipts.signed(
                receipt(3, 2).toBuilder().setReason("REFUSAL_REASON_FENCED").build(),
                says(3, 2).getSignatures(0).getSig())),
        about("a reason that is a text", r -> r.setReason("pay again")),
        about(
            "another kind",
            r -> r.setKind(Receipt.Kind.NEVER).clearIntentDigest().clearReason().clearUnixMs()),
        about(
            "another intent of the request",
            r ->
                r.setIntentDigest(
                    ByteString.copyFrom(new byte[31]).concat(ByteString.copyFromUtf8("x")))),
        about("another installation", r -> r.setInstallation("staging")),
        about("another key", r -> r.setKey("keys/hot-2")),
        about("another fingerprint", r -> r.setKeyFingerprint(ByteString.copyFrom(new byte[16]))),
        about("another time", r -> r.setReshareEpoch(0)),
        about("another requester", r -> r.setRequester("keeper")),
        about("another request", r -> r.setRequestId("01a3185c-5000-7000-8000-000000000008")));
  }

  @ParameterizedTest
  @MethodSource
  void lies(Lie lie) throws Exception {
    assertThat(refusals(2, List.of(lie.receipt(), says(2, 2))))
        .extracting(Refusal::party)
        .containsExactly("p2");
  }

  @Test
  void no_more_are_verified_than_a_key_has_parties() throws Exception {
    List<SignedReceipt> many =
        new ArrayList<>(Collections.nCopies(20, SignedReceipt.getDefaultInstance()));
    many.add(says(3, 2));
    assertThat(refusals(2, many)).isEmpty();
  }
}
