package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.Timestamp;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The intent that has an epoch of a group of approvers made. */
class GroupIntentTest {
  private static final Instant NOW = Instant.parse("2026-11-26T08:00:00Z");
  private static KeyPair wallet;

  @BeforeAll
  static void key() throws Exception {
    wallet = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
  }

  private static GroupIntent.Builder intent() {
    return GroupIntent.newBuilder()
        .setRequestId(RequestId.at(NOW))
        .setGroup("groups/approvers")
        .setEpoch(3)
        .setIssuerThreshold(2)
        .addAllIssuers(List.of("alpha", "bravo", "charlie"))
        .setOpenerThreshold(1)
        .addOpeners("auditor")
        .setInstallation("test")
        .setPurpose("approvers of withdrawals")
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60));
  }

  private static VerifiedIntent verify(SignedIntent signed) throws IntentException {
    return IntentVerifier.verify(signed, _ -> Optional.of(wallet.getPublic()));
  }

  private static SignedIntent signed(GroupIntent.Builder intent) {
    return new IntentSigner("wallet", wallet.getPrivate()).sign(intent.build());
  }

  private static void refused(IntentProblem problem, UnaryOperator<GroupIntent.Builder> change) {
    assertThatThrownBy(() -> verify(signed(change.apply(intent()))))
        .isInstanceOfSatisfying(
            IntentException.class, e -> assertThat(e.problem()).isEqualTo(problem));
  }

  @Test
  void it_names_the_group_its_epoch_and_its_parties() throws Exception {
    VerifiedIntent.GroupCreation verified = (VerifiedIntent.GroupCreation) verify(signed(intent()));
    assertThat(verified.requester()).isEqualTo("wallet");
    assertThat(verified.key()).isEqualTo("groups/approvers");
    assertThat(verified.epoch()).isEqualTo(3);
    assertThat(verified.scheme()).isEqualTo(Scheme.SCHEME_UNSPECIFIED);
    assertThat(verified.issuers()).containsExactly("alpha", "bravo", "charlie");
    assertThat(verified.issuerThreshold()).isEqualTo(2);
    assertThat(verified.openers()).containsExactly("auditor");
    assertThat(verified.openerThreshold()).isEqualTo(1);
    verified.requireNotExpired(NOW);
  }

  @Test
  void every_field_is_checked() {
    refused(IntentProblem.REQUEST_ID_MALFORMED, b -> b.setRequestId("1"));
    for (String name : List.of("", "keys/approvers", "groups/", "groups/A", "groups/a/epochs/1")) {
      refused(IntentProblem.GROUP_NAME_MALFORMED, b -> b.setGroup(name));
    }
    refused(IntentProblem.EPOCH_OUT_OF_RANGE, b -> b.setEpoch(0));
    refused(IntentProblem.EPOCH_OUT_OF_RANGE, b -> b.setEpoch(-1));
    refused(IntentProblem.ISSUER_THRESHOLD_OUT_OF_RANGE, b -> b.setIssuerThreshold(1));
    refused(IntentProblem.THRESHOLD_OUT_OF_RANGE, b -> b.setIssuerThreshold(4));
    List<String> twenty = IntStream.rangeClosed(1, 20).mapToObj(i -> "party-" + i).toList();
    refused(
        IntentProblem.ISSUER_THRESHOLD_OUT_OF_RANGE,
        b -> b.clearIssuers().addAllIssuers(twenty).setIssuerThreshold(20));
    refused(IntentProblem.PARTY_COUNT, b -> b.clearIssuers());
    refused(IntentProblem.PARTY_COUNT, b -> b.addAllIssuers(twenty));
    refused(IntentProblem.PARTY_DUPLICATE, b -> b.addIssuers("alpha"));
    refused(IntentProblem.PARTY_NAME_MALFORMED, b -> b.addIssuers("Alpha"));
    refused(IntentProblem.PARTY_COUNT, b -> b.clearOpeners());
    refused(IntentProblem.THRESHOLD_OUT_OF_RANGE, b -> b.setOpenerThreshold(0));
    refused(IntentProblem.THRESHOLD_OUT_OF_RANGE, b -> b.setOpenerThreshold(2));
    refused(
        IntentProblem.PARTY_DUPLICATE,
        b -> b.addAllOpeners(Collections.nCopies(2, "delta")).setOpenerThreshold(2));
    refused(IntentProblem.INSTALLATION_MALFORMED, b -> b.clearInstallation());
    refused(IntentProblem.NOT_AFTER_MISSING, b -> b.clearNotAfter());
    refused(IntentProblem.PURPOSE_MALFORMED, b -> b.setPurpose("two\nlines"));
  }

  @Test
  void the_signature_of_an_intent_about_a_key_is_none_of_a_group() {
    SignedIntent group = signed(intent());
    assertThatThrownBy(() -> verify(group.toBuilder().setPayloadType(Dsse.KEY_TYPE).build()))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.SIGNATURE_INVALID));
  }
}
