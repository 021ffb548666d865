package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.CancelSigningRequest;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.ListSigningsRequest;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.trust.Member;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Parties refuse an order: their requester gets their own word for it, and no other. */
class RefusedSigningTest {
  private static final RefusalReason FORBIDDEN = RefusalReason.REFUSAL_REASON_FORBIDDEN;

  @TempDir static Path folder;
  static TestInstallation installation;
  static ManagedChannel client;

  @BeforeAll
  static void start() {
    installation = new TestInstallation(folder, 3).start();
    client = installation.backend();
    installation.createEcdsaKey(client, "cold", 2, "p1", "p2", "p3");
  }

  @AfterAll
  static void stop() {
    installation.close();
  }

  @BeforeEach
  void honest() {
    installation.parties.behave();
    installation.parties.refusing =
        (self, refused, order) -> with(refused, honest(self, refused, order));
  }

  private static Refused with(Refused refused, SignedReceipt receipt) {
    return refused.toBuilder().setReceipt(receipt).build();
  }

  private static SignedReceipt honest(Member self, Refused refused, Order order) {
    return TestEvidence.receipt(self.partyId(), receipt(self, refused, order));
  }

  private static Receipt.Builder receipt(Member self, Refused refused, Order order) {
    SignedIntent signed = order.getSignedIntent();
    SigningIntent intent;
    try {
      intent = SigningIntent.parseFrom(signed.getPayload());
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
    return Receipt.newBuilder()
        .setKind(Receipt.Kind.REFUSED)
        .setInstallation(intent.getInstallation())
        .setKey(intent.getKey())
        .setKeyFingerprint(intent.getKeyFingerprint())
        .setReshareEpoch(intent.getReshareEpoch())
        .setRequester("wallet")
        .setRequestId(intent.getRequestId())
        .setIntentDigest(IntentVerifier.digest(signed.getPayload()))
        .setParty(self.partyId())
        .setReason(refused.getReason().name())
        .setUnixMs(1_800_000_000_000L);
  }

  private static void refuse(String... parties) {
    for (String party : parties) {
      installation.parties.behave(party, new Behaviour.Refuses(FORBIDDEN));
    }
  }

  private static StatusRuntimeException refused(SigningIntent.Builder asked) {
    SignRequest request = sign(installation.wallet.sign(asked.build()));
    fails(ErrorReason.FORBIDDEN, () -> signing(client).sign(request));
    // The end that is stored.
    return catchThrowableOfType(StatusRuntimeException.class, () -> signing(client).sign(request));
  }

  private static List<Receipt> receipts(com.google.rpc.Status error) {
    return StatusErrors.refusals(error).stream()
        .map(envelope -> Receipts.read(envelope).orElseThrow())
        .toList();
  }

  private static List<Receipt> receipts(StatusRuntimeException thrown) {
    return receipts(StatusProto.fromThrowable(thrown));
  }

  private static Signing stored(SigningIntent.Builder asked) {
    return signing(client)
        .listSignings(ListSigningsRequest.newBuilder().setParent("keys/cold").build())
        .getSigningsList()
        .stream()
        .filter(signing -> signing.getRequestId().equals(asked.getRequestId()))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void the_receipts_of_all_that_refused_come_with_the_error_and_are_stored_with_it() {
    refuse("p1", "p2", "p3");
    SigningIntent.Builder asked = EcdsaTest.intent("cold", 1);
    List<Receipt> told = receipts(refused(asked));
    assertThat(told).hasSizeGreaterThanOrEqualTo(2);
    assertThat(told).extracting(Receipt::getParty).isSorted().doesNotHaveDuplicates();
    assertThat(told).extracting(Receipt::getReason).containsOnly(FORBIDDEN.name());
    assertThat(receipts(refused(asked))).as("asked again").isEqualTo(told);
    String name = stored(asked).getName();
    Signing read = signing(client).getSigning(GetSigningRequest.newBuilder().setName(name).build());
    assertThat(read.getState()).isEqualTo(Signing.State.UNKNOWN);
    assertThat(read.getReceiptsList()).isEmpty();
    assertThat(receipts(read.getError())).isEqualTo(told);
  }

  record Lie(String told, ScriptedParties.Refusing refusing) {
    @Override
    public String toString() {
      return told;
    }
  }

  private static Lie about(String told, UnaryOperator<Receipt.Builder> change) {
    return new Lie(
        told,
        (self, refused, order) ->
            with(
                refused,
                TestEvidence.receipt(self.partyId(), change.apply(receipt(self, refused, order)))));
  }

  static Stream<Lie> lies() {
    return Stream.of(
        new Lie(
            "signed by another party",
            (self, refused, order) ->
                with(refused, TestEvidence.receipt(9, receipt(self, refused, order)))),
        new Lie(
            "the word of another party",
            (self, refused, order) ->
                with(refused, TestEvidence.receipt(9, receipt(self, refused, order).setParty(9)))),
        new Lie(
            "no receipt at all",
            (self, refused, order) -> with(refused, SignedReceipt.getDefaultInstance())),
        about("another request", r -> r.setRequestId(RequestId.next())),
        about("another installation", r -> r.setInstallation("staging")),
        about("another requester", r -> r.setRequester("keeper")),
        about("another reason than it refused by", r -> r.setReason("REFUSAL_REASON_FENCED")),
        about(
            "NEVER",
            r -> r.setKind(Receipt.Kind.NEVER).clearIntentDigest().clearReason().clearUnixMs()));
  }

  @ParameterizedTest
  @MethodSource
  void lies(Lie lie) {
    refuse("p1", "p2", "p3");
    installation.parties.refusing =
        (self, refused, order) ->
            self.partyId() == 2
                ? with(refused, honest(self, refused, order))
                : lie.refusing().apply(self, refused, order);
    assertThat(receipts(refused(EcdsaTest.intent("cold", 1))))
        .extracting(Receipt::getParty)
        .isSubsetOf(2);
  }

  @Test
  void a_refusal_is_no_end_and_keeps_nobody_from_signing() {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(
          party, new Behaviour.Once(new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_NOT_READY)));
    }
    SigningIntent.Builder asked = EcdsaTest.intent("cold", 1);
    Signing signed = signing(client).sign(sign(installation.wallet.sign(asked.build())));
    assertThat(signed.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(signed.hasError()).isFalse();
    assertThat(signed.getReceiptsList()).isEmpty();
  }

  @Test
  void no_refusal_counts_for_not_signed() {
    refuse("p1", "p2", "p3");
    SigningIntent.Builder asked = EcdsaTest.intent("cold", 1);
    refused(asked);
    installation.parties.cancelling =
        (self, question) -> {
          SignedIntent intent = installation.wallet.sign(asked.build());
          Refused refused = Refused.newBuilder().setReason(FORBIDDEN).build();
          Order order = Order.newBuilder().setSignedIntent(intent).build();
          return List.of(
              CancelAnswer.newBuilder()
                  .setIntentDigest(IntentVerifier.digest(question.getSignedIntent().getPayload()))
                  .setReceipt(honest(self, refused, order))
                  .build());
        };
    Signing ended =
        signing(client)
            .cancelSigning(
                CancelSigningRequest.newBuilder()
                    .setSignedIntent(
                        installation.wallet.sign(
                            CancelIntent.newBuilder()
                                .setRequestId(asked.getRequestId())
                                .setKey(asked.getKey())
                                .setScheme(asked.getScheme())
                                .setNotAfter(inSeconds(120))
                                .build()))
                    .build());
    assertThat(ended.getState()).isEqualTo(Signing.State.UNKNOWN);
    assertThat(ended.getReceiptsList()).isEmpty();
  }
}
