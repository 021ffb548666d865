package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The intent that says who may be a member of a group. */
class TicketIntentTest {
  private static final Instant NOW = Instant.parse("2026-11-26T08:00:00Z");
  private static KeyPair wallet;

  @BeforeAll
  static void key() throws Exception {
    wallet = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
  }

  private static TicketIntent.Builder intent() {
    return TicketIntent.newBuilder()
        .setRequestId(RequestId.at(NOW))
        .setGroup("groups/approvers")
        .setEpoch(3)
        .setIdentity(ByteString.copyFrom(new byte[32]))
        .setInstallation("test")
        .setPurpose("an approver of withdrawals")
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60));
  }

  private static VerifiedIntent verify(SignedIntent signed) throws IntentException {
    return IntentVerifier.verify(signed, _ -> Optional.of(wallet.getPublic()));
  }

  private static SignedIntent signed(TicketIntent.Builder intent) {
    return new IntentSigner("wallet", wallet.getPrivate()).sign(intent.build());
  }

  private static void refused(IntentProblem problem, UnaryOperator<TicketIntent.Builder> change) {
    assertThatThrownBy(() -> verify(signed(change.apply(intent()))))
        .isInstanceOfSatisfying(
            IntentException.class, e -> assertThat(e.problem()).isEqualTo(problem));
  }

  @Test
  void it_names_the_epoch_and_the_identity_and_its_digest_is_the_ticket() throws Exception {
    SignedIntent signed = signed(intent());
    VerifiedIntent.Ticket verified = (VerifiedIntent.Ticket) verify(signed);
    assertThat(verified.requester()).isEqualTo("wallet");
    assertThat(verified.key()).isEqualTo("groups/approvers");
    assertThat(verified.epoch()).isEqualTo(3);
    assertThat(verified.scheme()).isEqualTo(Scheme.SCHEME_UNSPECIFIED);
    assertThat(verified.identity()).isEqualTo(ByteString.copyFrom(new byte[32]));
    assertThat(verified.digest()).isEqualTo(IntentVerifier.digest(signed.getPayload()));
    verified.requireNotExpired(NOW);
  }

  @Test
  void every_field_is_checked() {
    refused(IntentProblem.REQUEST_ID_MALFORMED, b -> b.setRequestId("1"));
    for (String name : List.of("", "keys/approvers", "groups/", "groups/a/epochs/1")) {
      refused(IntentProblem.GROUP_NAME_MALFORMED, b -> b.setGroup(name));
    }
    refused(IntentProblem.EPOCH_OUT_OF_RANGE, b -> b.setEpoch(0));
    for (int length : List.of(0, 31, 33)) {
      refused(
          IntentProblem.IDENTITY_LENGTH, b -> b.setIdentity(ByteString.copyFrom(new byte[length])));
    }
    refused(IntentProblem.INSTALLATION_MALFORMED, b -> b.clearInstallation());
    refused(IntentProblem.NOT_AFTER_MISSING, b -> b.clearNotAfter());
    refused(IntentProblem.PURPOSE_MALFORMED, b -> b.setPurpose("two\nlines"));
  }

  @Test
  void the_signature_of_a_group_is_none_of_a_ticket() {
    SignedIntent ticket = signed(intent());
    assertThatThrownBy(() -> verify(ticket.toBuilder().setPayloadType(Dsse.GROUP_TYPE).build()))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.SIGNATURE_INVALID));
  }
}
