package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** An intent to sign names the group whose members approve it, or none. */
class ApproversTest {
  private static final Instant NOW = Instant.parse("2026-11-26T08:00:00Z");
  private static KeyPair wallet;

  @BeforeAll
  static void key() throws Exception {
    wallet = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
  }

  private static ByteString bytes(int length) {
    return ByteString.copyFrom(new byte[length]);
  }

  private static Approvers.Builder approvers() {
    return Approvers.newBuilder().setGroup("groups/treasury").setEpoch(3).setDigest(bytes(32));
  }

  private static SigningIntent.Builder intent() {
    return SigningIntent.newBuilder()
        .setRequestId(RequestId.at(NOW))
        .setKey("keys/treasury")
        .setScheme(Scheme.SCHEME_BLS12381)
        .setMessage(ByteString.copyFromUtf8("withdraw 5"))
        .setInstallation("test")
        .setKeyFingerprint(bytes(16))
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60));
  }

  private static VerifiedIntent.Signing verified(SigningIntent.Builder intent)
      throws IntentException {
    return (VerifiedIntent.Signing)
        IntentVerifier.verify(
            new IntentSigner("wallet", wallet.getPrivate()).sign(intent.build()),
            _ -> Optional.of(wallet.getPublic()));
  }

  private static void refused(IntentProblem problem, UnaryOperator<Approvers.Builder> change) {
    assertThatThrownBy(() -> verified(intent().setApprovers(change.apply(approvers()))))
        .isInstanceOfSatisfying(
            IntentException.class, e -> assertThat(e.problem()).isEqualTo(problem));
  }

  @Test
  void it_names_one_epoch_of_one_group_or_none() throws Exception {
    assertThat(verified(intent()).intent().hasApprovers()).isFalse();
    assertThat(verified(intent().setApprovers(approvers())).intent().getApprovers())
        .isEqualTo(approvers().build());
  }

  @Test
  void every_field_is_checked() {
    refused(IntentProblem.GROUP_NAME_MALFORMED, b -> b.setGroup("keys/treasury"));
    refused(IntentProblem.EPOCH_OUT_OF_RANGE, b -> b.setEpoch(0));
    for (int length : List.of(0, 31, 33)) {
      refused(IntentProblem.GROUP_DIGEST_LENGTH, b -> b.setDigest(bytes(length)));
    }
    refused(
        IntentProblem.PAYLOAD_UNKNOWN_FIELD,
        b ->
            b.setUnknownFields(
                UnknownFieldSet.newBuilder()
                    .addField(9, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
                    .build()));
  }

  @Test
  void a_list_of_approvals_is_short_and_each_has_their_length() {
    assertThat(IntentVerifier.areApprovals(List.of())).isTrue();
    assertThat(IntentVerifier.areApprovals(Collections.nCopies(32, bytes(416)))).isTrue();
    assertThat(IntentVerifier.areApprovals(Collections.nCopies(33, bytes(416)))).isFalse();
    for (int length : List.of(0, 415, 417)) {
      assertThat(IntentVerifier.areApprovals(List.of(bytes(416), bytes(length)))).isFalse();
    }
  }
}
