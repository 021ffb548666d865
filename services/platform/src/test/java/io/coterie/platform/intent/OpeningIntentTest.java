package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The intent that asks who made an approval. */
class OpeningIntentTest {
  private static final Instant NOW = Instant.parse("2026-11-26T08:00:00Z");
  private static KeyPair auditor;

  @BeforeAll
  static void key() throws Exception {
    auditor = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
  }

  private static ByteString bytes(int length) {
    return ByteString.copyFrom(new byte[length]);
  }

  private static OpeningIntent.Builder intent() {
    return OpeningIntent.newBuilder()
        .setRequestId(RequestId.at(NOW))
        .setGroup("groups/approvers")
        .setEpoch(3)
        .setRequest(bytes(32))
        .setRejection(true)
        .setApproval(bytes(416))
        .setRecipient(bytes(32))
        .setInstallation("test")
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60));
  }

  private static VerifiedIntent verify(SignedIntent signed) throws IntentException {
    return IntentVerifier.verify(signed, _ -> Optional.of(auditor.getPublic()));
  }

  private static SignedIntent signed(OpeningIntent.Builder intent) {
    return new IntentSigner("auditor", auditor.getPrivate()).sign(intent.build());
  }

  private static void refused(IntentProblem problem, UnaryOperator<OpeningIntent.Builder> change) {
    assertThatThrownBy(() -> verify(signed(change.apply(intent()))))
        .isInstanceOfSatisfying(
            IntentException.class, e -> assertThat(e.problem()).isEqualTo(problem));
  }

  @Test
  void it_names_one_approval_of_one_request() throws Exception {
    VerifiedIntent.Opening verified = (VerifiedIntent.Opening) verify(signed(intent()));
    assertThat(verified.requester()).isEqualTo("auditor");
    assertThat(verified.key()).isEqualTo("groups/approvers");
    assertThat(verified.epoch()).isEqualTo(3);
    assertThat(verified.request()).isEqualTo(bytes(32));
    assertThat(verified.rejection()).isTrue();
    assertThat(verified.approval()).isEqualTo(bytes(416));
    assertThat(verified.recipient()).isEqualTo(bytes(32));
  }

  @Test
  void every_field_is_checked() {
    refused(IntentProblem.GROUP_NAME_MALFORMED, b -> b.setGroup("keys/approvers"));
    refused(IntentProblem.EPOCH_OUT_OF_RANGE, b -> b.setEpoch(0));
    for (int length : List.of(0, 31, 33)) {
      refused(IntentProblem.REQUEST_DIGEST_LENGTH, b -> b.setRequest(bytes(length)));
      refused(IntentProblem.RECIPIENT_LENGTH, b -> b.setRecipient(bytes(length)));
    }
    for (int length : List.of(0, 415, 417)) {
      refused(IntentProblem.APPROVAL_LENGTH, b -> b.setApproval(bytes(length)));
    }
    refused(IntentProblem.NOT_AFTER_MISSING, b -> b.clearNotAfter());
  }

  @Test
  void the_signature_of_a_ticket_is_none_of_an_opening() {
    SignedIntent opening = signed(intent());
    assertThatThrownBy(() -> verify(opening.toBuilder().setPayloadType(Dsse.TICKET_TYPE).build()))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.SIGNATURE_INVALID));
  }
}
