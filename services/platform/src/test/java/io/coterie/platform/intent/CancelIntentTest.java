package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.time.Instant;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The intent that cancels a request, and the reshare that intents name. */
class CancelIntentTest {
  private static final Instant NOW = Instant.parse("2026-11-26T08:00:00Z");
  private static KeyPair wallet;

  @BeforeAll
  static void key() throws Exception {
    wallet = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
  }

  private static CancelIntent.Builder intent() {
    return CancelIntent.newBuilder()
        .setRequestId(RequestId.at(NOW))
        .setKey("keys/hot")
        .setScheme(Scheme.SCHEME_ED25519)
        .setInstallation("test")
        .setKeyFingerprint(ByteString.copyFrom(new byte[16]))
        .setReshareEpoch(3)
        .setPurpose("not needed any more")
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60));
  }

  private static VerifiedIntent verify(SignedIntent signed) throws IntentException {
    return IntentVerifier.verify(signed, _ -> Optional.of(wallet.getPublic()));
  }

  private static SignedIntent signed(CancelIntent.Builder intent) {
    return new IntentSigner("wallet", wallet.getPrivate()).sign(intent.build());
  }

  private static void refused(IntentProblem problem, UnaryOperator<CancelIntent.Builder> change) {
    assertThatThrownBy(() -> verify(signed(change.apply(intent()))))
        .isInstanceOfSatisfying(
            IntentException.class, e -> assertThat(e.problem()).isEqualTo(problem));
  }

  @Test
  void a_cancellation_names_the_request_and_its_parties() throws Exception {
    VerifiedIntent.Cancellation verified = (VerifiedIntent.Cancellation) verify(signed(intent()));
    assertThat(verified.requester()).isEqualTo("wallet");
    assertThat(RequestId.time(verified.requestId())).isEqualTo(NOW);
    assertThat(verified.key()).isEqualTo("keys/hot");
    assertThat(verified.reshareEpoch()).isEqualTo(3);
    assertThat(verified.keyFingerprint()).hasSize(16);
    verified.requireNotExpired(NOW);
  }

  @Test
  void it_is_refused_for_what_other_intents_are_refused_for() {
    refused(IntentProblem.REQUEST_ID_MALFORMED, b -> b.setRequestId("1"));
    refused(IntentProblem.KEY_NAME_MALFORMED, b -> b.setKey("hot"));
    refused(IntentProblem.SCHEME_UNSUPPORTED, b -> b.clearScheme());
    refused(IntentProblem.INSTALLATION_MALFORMED, b -> b.clearInstallation());
    refused(IntentProblem.KEY_FINGERPRINT_LENGTH, b -> b.clearKeyFingerprint());
    refused(IntentProblem.RESHARE_EPOCH_OUT_OF_RANGE, b -> b.setReshareEpoch(1));
    refused(IntentProblem.RESHARE_EPOCH_OUT_OF_RANGE, b -> b.setReshareEpoch(-1));
    refused(IntentProblem.NOT_AFTER_MISSING, b -> b.clearNotAfter());
    refused(
        IntentProblem.NOT_AFTER_TOO_FAR,
        b -> b.setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 90_000)));
  }

  @Test
  void the_signature_of_one_kind_of_intent_is_none_of_another() {
    SignedIntent cancel = signed(intent());
    assertThatThrownBy(() -> verify(cancel.toBuilder().setPayloadType(Dsse.SIGNING_TYPE).build()))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.SIGNATURE_INVALID));
  }

  @Test
  void an_intent_to_sign_names_an_epoch_that_a_reshare_can_make() {
    SigningIntent.Builder signing =
        SigningIntent.newBuilder()
            .setRequestId(RequestId.at(NOW))
            .setKey("keys/hot")
            .setScheme(Scheme.SCHEME_ED25519)
            .setMessage(ByteString.copyFromUtf8("hello"))
            .setInstallation("test")
            .setKeyFingerprint(ByteString.copyFrom(new byte[16]))
            .setReshareEpoch(1)
            .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60));
    assertThatThrownBy(
            () -> verify(new IntentSigner("wallet", wallet.getPrivate()).sign(signing.build())))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.RESHARE_EPOCH_OUT_OF_RANGE));
  }
}
