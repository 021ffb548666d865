package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.CancelSigningRequest;
import io.coterie.proto.custody.v1.DecodedPayload;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.CancelQuestion;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.trust.Member;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A requester cancels a signing: the coordinator shows the end that the parties have shown. */
class CancelSigningTest {
  @TempDir static Path folder;
  static TestInstallation installation;
  static ManagedChannel client;

  /** Parties that say that they never sign. */
  private Set<Integer> never = Set.of();

  @BeforeAll
  static void start() {
    installation = new TestInstallation(folder, 4).start();
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
    installation.parties.cancellations.clear();
    installation.parties.cancelling = (self, question) -> List.of(honest(self, question));
  }

  private static SigningIntent.Builder intent() {
    return EcdsaTest.intent("cold", 1);
  }

  private static CancelIntent.Builder cancel(SigningIntent.Builder asked) {
    return CancelIntent.newBuilder()
        .setRequestId(asked.getRequestId())
        .setKey(asked.getKey())
        .setScheme(asked.getScheme())
        .setNotAfter(inSeconds(120));
  }

  private static Signing cancelled(CancelIntent.Builder intent) {
    return signing(client)
        .cancelSigning(
            CancelSigningRequest.newBuilder()
                .setSignedIntent(installation.wallet.sign(intent.build()))
                .build());
  }

  private static CancelIntent content(CancelQuestion question) {
    try {
      return CancelIntent.parseFrom(question.getSignedIntent().getPayload());
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Receipt.Builder receipt(int party, CancelIntent asked) {
    return Receipt.newBuilder()
        .setKind(Receipt.Kind.NEVER)
        .setInstallation(asked.getInstallation())
        .setKey(asked.getKey())
        .setKeyFingerprint(asked.getKeyFingerprint())
        .setReshareEpoch(asked.getReshareEpoch())
        .setRequester("wallet")
        .setRequestId(asked.getRequestId())
        .setParty(party);
  }

  private static CancelAnswer.Builder answer(CancelQuestion question) {
    return CancelAnswer.newBuilder()
        .setIntentDigest(IntentVerifier.digest(question.getSignedIntent().getPayload()));
  }

  private CancelAnswer honest(Member self, CancelQuestion question) {
    int party = self.partyId();
    return never.contains(party)
        ? answer(question)
            .setReceipt(TestEvidence.receipt(party, receipt(party, content(question))))
            .build()
        : answer(question)
            .setRefused(Refused.newBuilder().setReason(RefusalReason.REFUSAL_REASON_REQUEST_BOUND))
            .build();
  }

  private static List<Integer> parties(Signing signing) {
    return signing.getReceiptsList().stream()
        .map(envelope -> Receipts.read(envelope).orElseThrow().getParty())
        .toList();
  }

  private static Signing get(String name) {
    return signing(client).getSigning(GetSigningRequest.newBuilder().setName(name).build());
  }

  /** A request that the coordinator has abandoned. */
  private static SigningIntent.Builder failed() {
    for (String party : List.of("p1", "p2")) {
      installation.parties.behave(
          party, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    }
    SigningIntent.Builder asked = intent();
    fails(
        ErrorReason.FORBIDDEN,
        () -> signing(client).sign(sign(installation.wallet.sign(asked.build()))));
    return asked;
  }

  @Test
  void receipts_of_all_but_too_few_to_sign_end_it_as_not_signed() {
    SigningIntent.Builder asked = failed();
    never = Set.of(1, 2);
    Signing ended = cancelled(cancel(asked));
    assertThat(ended.getState()).isEqualTo(Signing.State.NOT_SIGNED);
    assertThat(parties(ended)).containsExactly(1, 2);
    assertThat(ended.hasError()).isFalse();
    Signing stored = get(ended.getName());
    assertThat(stored.getState()).isEqualTo(Signing.State.NOT_SIGNED);
    assertThat(parties(stored)).containsExactly(1, 2);
    // A request that is repeated has that end as well.
    assertThat(signing(client).sign(sign(installation.wallet.sign(asked.build()))).getState())
        .isEqualTo(Signing.State.NOT_SIGNED);
    never = Set.of(3);
    assertThat(parties(cancelled(cancel(asked)))).as("another one later").containsExactly(1, 2, 3);
    assertThat(parties(get(ended.getName()))).containsExactly(1, 2, 3);
    assertThat(installation.parties.cancellations).as("p4 holds no share").hasSize(6);
  }

  @Test
  void a_party_too_few_leaves_it_unknown_and_names_the_others() {
    SigningIntent.Builder asked = failed();
    never = Set.of(2);
    Signing ended = cancelled(cancel(asked));
    assertThat(ended.getState()).isEqualTo(Signing.State.UNKNOWN);
    assertThat(parties(ended)).containsExactly(2);
    assertThat(StatusErrors.reason(ended.getError())).contains(ErrorReason.END_UNKNOWN);
    assertThat(StatusErrors.info(ended.getError()).orElseThrow().getMetadataMap())
        .containsEntry(StatusErrors.PARTY, "p1,p3")
        .containsEntry(StatusErrors.CAUSE, "REFUSAL_REASON_REQUEST_BOUND");
    assertThat(get(ended.getName()).getState()).isEqualTo(Signing.State.UNKNOWN);
  }

  @Test
  void a_signed_request_stays_signed() {
    SigningIntent.Builder asked = intent();
    Signing signed = signing(client).sign(sign(installation.wallet.sign(asked.build())));
    never = Set.of(1, 2, 3);
    Signing ended = cancelled(cancel(asked));
    assertThat(ended).isEqualTo(signed);
    assertThat(installation.parties.cancellations).as("nobody needs to be asked").isEmpty();
  }

  @Test
  void a_request_that_the_coordinator_does_not_know_is_cancelled_at_the_parties() {
    never = Set.of(1, 2, 3);
    SigningIntent.Builder asked = intent();
    Signing ended = cancelled(cancel(asked));
    assertThat(ended.getState()).isEqualTo(Signing.State.NOT_SIGNED);
    assertThat(ended.getRequestId()).isEqualTo(asked.getRequestId());
    assertThat(parties(ended)).containsExactly(1, 2, 3);
    fails(ErrorReason.SIGNING_NOT_FOUND, () -> get(ended.getName()));
  }

  @Test
  void a_request_that_is_stored_while_the_parties_answer_ends_as_they_show() {
    SigningIntent.Builder asked = intent();
    VerifiedIntent.Signing intent =
        (VerifiedIntent.Signing)
            installation.bean(IntentCheck.class).check(installation.wallet.sign(asked.build()));
    SigningRecord pending =
        SigningRecord.pending(
            RequestHeader.of(intent, Instant.now().truncatedTo(ChronoUnit.MICROS)),
            intent.key(),
            intent.scheme(),
            null,
            DecodedPayload.getDefaultInstance());
    SigningStore store = installation.bean(SigningStore.class);
    never = Set.of(1, 2);
    installation.parties.cancelling =
        (self, question) -> {
          if (self.partyId() == 1) {
            assertThat(store.claimOnce(pending)).isEmpty();
          }
          return List.of(honest(self, question));
        };
    Signing ended = cancelled(cancel(asked));
    assertThat(ended.getState()).isEqualTo(Signing.State.NOT_SIGNED);
    assertThat(parties(get(ended.getName()))).containsExactly(1, 2);
    assertThat(signing(client).sign(sign(installation.wallet.sign(asked.build()))).getState())
        .isEqualTo(Signing.State.NOT_SIGNED);
  }

  @Test
  void receipts_that_no_client_would_believe_are_left_out() {
    SigningIntent.Builder asked = failed();
    never = Set.of(1);
    installation.parties.cancelling =
        (self, question) -> {
          CancelIntent content = content(question);
          int party = self.partyId();
          return List.of(
              switch (party) {
                // The receipt of another party, and one about another request.
                case 2 ->
                    answer(question)
                        .setReceipt(TestEvidence.receipt(1, receipt(1, content)))
                        .build();
                case 3 ->
                    answer(question)
                        .setReceipt(
                            TestEvidence.receipt(
                                3, receipt(3, content).setRequestId(RequestId.next())))
                        .build();
                default -> honest(self, question);
              });
        };
    Signing ended = cancelled(cancel(asked));
    assertThat(ended.getState()).isEqualTo(Signing.State.UNKNOWN);
    assertThat(parties(ended)).containsExactly(1);
    installation.parties.cancelling =
        (self, question) ->
            List.of(
                answer(question)
                    .setReceipt(
                        Receipts.signed(
                            receipt(self.partyId(), content(question)).build(),
                            ByteString.copyFrom(new byte[64])))
                    .build());
    assertThat(parties(cancelled(cancel(asked)))).isEmpty();
  }

  @Test
  void receipts_that_were_stored_for_another_question_count_no_more() {
    SigningIntent.Builder asked = failed();
    String name = cancelled(cancel(asked)).getName();
    SigningStore store = installation.bean(SigningStore.class);
    SigningRecord known =
        store.find(UUID.fromString(name.substring(name.lastIndexOf('/') + 1))).orElseThrow();
    CancelIntent other =
        content(installation.parties.cancellations.peek()).toBuilder().setReshareEpoch(2).build();
    store.settle(
        known.notSigned(
            List.of(
                TestEvidence.receipt(1, receipt(1, other)),
                TestEvidence.receipt(3, receipt(3, other))),
            Instant.now()));
    assertThat(get(name).getState()).isEqualTo(Signing.State.NOT_SIGNED);
    Signing ended = cancelled(cancel(asked));
    assertThat(ended.getState()).isEqualTo(Signing.State.UNKNOWN);
    assertThat(parties(ended)).isEmpty();
    never = Set.of(1, 2);
    assertThat(parties(cancelled(cancel(asked)))).containsExactly(1, 2);
    assertThat(parties(get(name))).containsExactly(1, 2);
  }

  @Test
  void a_signature_that_a_party_shows_ends_it_as_signed_if_it_is_valid() {
    SigningIntent.Builder asked = failed();
    Signing other = signing(client).sign(sign(installation.wallet.sign(intentAfterHonest())));
    installation.parties.cancelling =
        (self, question) -> List.of(answer(question).setSignature(bent(other)).build());
    assertThat(cancelled(cancel(asked)).getState()).isEqualTo(Signing.State.UNKNOWN);
    // The digest of both requests is the same, so its signature is one of this request too.
    installation.parties.cancelling =
        (self, question) ->
            List.of(
                answer(question)
                    .setSignature(other.getSignature())
                    .setRecoveryId(other.getRecoveryId())
                    .build());
    Signing ended = cancelled(cancel(asked));
    assertThat(ended.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(ended.getSignature()).isEqualTo(other.getSignature());
    assertThat(get(ended.getName())).isEqualTo(ended);
  }

  @Test
  void a_valid_signature_is_told_although_the_database_has_lost_the_request() {
    SigningIntent.Builder asked = failed();
    Signing other = signing(client).sign(sign(installation.wallet.sign(intentAfterHonest())));
    installation.parties.cancelling =
        (self, question) -> {
          installation.execute("delete from signings");
          return List.of(
              answer(question)
                  .setSignature(other.getSignature())
                  .setRecoveryId(other.getRecoveryId())
                  .build());
        };
    assertThat(cancelled(cancel(asked)).getState()).isEqualTo(Signing.State.SIGNED);
  }

  private static SigningIntent intentAfterHonest() {
    installation.parties.behave();
    return intent().build();
  }

  private static ByteString bent(Signing signing) {
    byte[] bytes = signing.getSignature().toByteArray();
    bytes[5] ^= 1;
    return ByteString.copyFrom(bytes);
  }

  @Test
  void what_cannot_be_cancelled_reaches_no_party() {
    SigningIntent.Builder asked = intent();
    fails(ErrorReason.KEY_NOT_FOUND, () -> cancelled(cancel(asked).setKey("keys/none")));
    fails(ErrorReason.KEY_RESHARED, () -> cancelled(cancel(asked).setReshareEpoch(2)));
    fails(
        ErrorReason.INTENT_MALFORMED,
        () -> cancelled(cancel(asked).setKeyFingerprint(ByteString.copyFrom(new byte[16]))));
    fails(ErrorReason.INTENT_EXPIRED, () -> cancelled(cancel(asked).setNotAfter(inSeconds(-5))));
    fails(
        ErrorReason.INTENT_MALFORMED,
        () ->
            signing(client)
                .cancelSigning(
                    CancelSigningRequest.newBuilder()
                        .setSignedIntent(installation.wallet.sign(asked.build()))
                        .build()));
    assertThat(installation.parties.cancellations).isEmpty();
  }

  @Test
  void an_intent_for_the_parties_of_another_time_is_refused() {
    fails(
        ErrorReason.KEY_RESHARED,
        () ->
            signing(client)
                .sign(sign(installation.wallet.sign(intent().setReshareEpoch(2).build()))));
  }
}
