package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.CancelQuestion;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.Installation;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** A requester cancels a request: the party says what is true of it, and keeps to that. */
class CancellationTest extends SessionFixture {
  private static CancelIntent.Builder cancel(SigningIntent.Builder asked) {
    return CancelIntent.newBuilder()
        .setRequestId(asked.getRequestId())
        .setKey(asked.getKey())
        .setScheme(asked.getScheme())
        .setInstallation(asked.getInstallation())
        .setKeyFingerprint(asked.getKeyFingerprint())
        .setNotAfter(asked.getNotAfter());
  }

  private static SignedIntent signed(CancelIntent.Builder intent) {
    return SignedIntent.newBuilder()
        .setPayloadType("cancel")
        .setPayload(intent.build().toByteString())
        .build();
  }

  private void ask(Member sender, SignedIntent intent) {
    driver().onCancelQuestion(sender, CancelQuestion.newBuilder().setSignedIntent(intent).build());
  }

  private CancelAnswer answer(CancelIntent.Builder intent) {
    net.sent.removeIf(sent -> sent.message().hasCancelAnswer());
    ask(coordinator, signed(intent));
    Sent sent = awaitSent("an answer", PartyMessage::hasCancelAnswer);
    assertThat(sent.to()).containsExactly(coordinator);
    CancelAnswer answer = sent.message().getCancelAnswer();
    assertThat(answer.getIntentDigest())
        .isEqualTo(IntentVerifier.digest(intent.build().toByteString()));
    return answer;
  }

  private Receipt receipt(CancelAnswer answer) {
    Receipt receipt = Receipts.read(answer.getReceipt()).orElseThrow();
    assertThat(Receipts.isSigned(answer.getReceipt(), receipt, net.roster)).isTrue();
    assertThat(receipt.getParty()).isEqualTo(1);
    return receipt;
  }

  private void requireNever(SigningIntent.Builder asked) {
    Receipt receipt = receipt(answer(cancel(asked)));
    assertThat(receipt)
        .isEqualTo(
            Receipt.newBuilder()
                .setKind(Receipt.Kind.NEVER)
                .setInstallation("test")
                .setKey(KEY)
                .setKeyFingerprint(asked.getKeyFingerprint())
                .setRequester("wallet")
                .setRequestId(asked.getRequestId())
                .setParty(1)
                .build());
  }

  private void requireBound(SigningIntent.Builder asked) {
    assertThat(answer(cancel(asked)).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
  }

  private List<AuditEvent> receipts() {
    return Stream.concat(audit.stream(), ledger.accepted.stream())
        .filter(event -> event.action().equals("receipt.give"))
        .toList();
  }

  @Test
  void a_request_that_never_came_is_never_signed() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    requireNever(intent);
    requireNever(intent);
    assertThat(awaitRefusal(give(with(bravo, intent))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_CANCELLED);
    // For every intent.
    assertThat(awaitRefusal(give(with(bravo, intent.clone().setPurpose("another")))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_CANCELLED);
    assertThat(core.started.get()).isZero();
    assertThat(receipts()).hasSize(1);
    assertThat(receipts().getFirst().outcome()).isEqualTo("never");
    assertThat(receipts().getFirst().fields())
        .containsEntry("request_id", intent.getRequestId())
        .containsEntry("key", KEY);
  }

  @Test
  void nothing_is_said_of_earlier_requests_before_the_others_were_asked() {
    ecdsaKey();
    Instant before = Instant.now().minus(Duration.ofHours(1));
    SigningIntent.Builder asked = ecdsaIntent().setRequestId(RequestId.at(before));
    assertThat(answer(cancel(asked)).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    // An order for an earlier request asks them.
    given(ecdsaIntent().setRequestId(RequestId.at(before)));
    requireNever(asked);
  }

  @Test
  void a_party_that_has_contributed_does_not_say_that_it_never_does() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId session = SessionId.ofOrder(given(intent));
    requireBound(intent);
    // Not even if another party says that the session makes no signature: that may be a lie.
    declines(bravo, session);
    awaitEnded("ecdsa_sign cancelled declined");
    requireBound(intent);
    awaitEnvelope(give(with(charlie, intent)));
    requireBound(intent);
    assertThat(receipts()).isEmpty();
  }

  @Test
  void a_contribution_to_an_earlier_session_is_not_forgotten_when_a_later_one_gave_none() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId first = SessionId.ofOrder(given(intent));
    declines(bravo, first);
    awaitEnded("ecdsa_sign cancelled declined");
    SessionId second = give(with(charlie, intent));
    awaitEnvelope(second);
    declines(charlie, second);
    Installation.until("both have ended", () -> watch.ended.size() == 2 && live() == 0);
    requireBound(intent);
  }

  @Test
  void a_session_that_is_about_to_contribute_is_ended_first() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId session = give(with(bravo, intent));
    awaitEnvelope(session);
    plays(bravo, session, 1, 1);
    requireNever(intent);
    awaitEnded("ecdsa_sign cancelled cancelled");
    awaitDeclined(session, bravo);
    int sent = net.sent.size();
    plays(bravo, session, 2, 3);
    assertThat(net.sent).as("no contribution").hasSize(sent);
    assertThat(awaitRefusal(give(with(charlie, intent))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_CANCELLED);
  }

  @Test
  void a_party_that_waits_for_the_others_goes_on_to_wait() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId session = SessionId.ofOrder(given(intent));
    requireBound(intent);
    plays(bravo, session, 3, 3);
    awaitEnded("ecdsa_sign completed none");
    CancelAnswer answer = answer(cancel(intent));
    assertThat(receipt(answer).getKind()).isEqualTo(Receipt.Kind.SIGNED);
    assertThat(receipt(answer).getIntentDigest())
        .isEqualTo(IntentVerifier.digest(intent.build().toByteString()));
    assertThat(answer.getSignature()).isEqualTo(DIGEST.concat(ByteString.copyFromUtf8("share")));
    answer(cancel(intent));
    assertThat(receipts()).as("audited once").hasSize(1);
    assertThat(receipts().getFirst().outcome()).isEqualTo("signed");
  }

  @Test
  void a_claim_that_is_being_written_counts_as_given() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    ledger.held = true;
    SessionId session = give(with(bravo, intent));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    ledger.held = false;
    ledger.claimOnce(
        new ClaimLedger.Claim(
            session,
            "wallet",
            intent.getRequestId(),
            IntentVerifier.digest(intent.build().toByteString()),
            null,
            null,
            null,
            ByteString.EMPTY,
            MemoryLedger.COORDINATOR),
        AuditEvent.of("wallet", "x", "x", Map.of()));
    requireBound(intent);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
  }

  @Test
  void a_signature_that_is_the_same_each_time_counts_as_given_with_the_claim() throws Exception {
    key(KeyShare.State.ACTIVE);
    Order.Builder order = signing(1, 2);
    SigningIntent.Builder intent =
        SigningIntent.parseFrom(order.getSignedIntent().getPayload()).toBuilder();
    intent.setKeyFingerprint(KeyFingerprint.of(shares.find(KEY).orElseThrow().keyPublic()));
    awaitEnvelope(give(order));
    requireBound(intent);
  }

  @Test
  void only_what_the_requester_has_signed_for_this_installation_and_key_is_written() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    for (CancelIntent.Builder bad :
        List.of(
            cancel(intent).setInstallation("staging"),
            cancel(intent).setKeyFingerprint(ByteString.copyFrom(new byte[16])),
            cancel(intent).setNotAfter(Installation.in(Duration.ofSeconds(-1))),
            cancel(intent).setRequestId(RequestId.at(Instant.now().plusSeconds(60))))) {
      assertThat(answer(bad).hasRefused()).isTrue();
    }
    net.sent.clear();
    ask(bravo, signed(cancel(intent)));
    ask(coordinator, signed(cancel(intent).setPurpose("x".repeat(4096))));
    assertThat(watch.dropped).containsExactly("unacceptable", "unacceptable");
    ask(coordinator, ecdsaSigning(intent).build().getSignedIntent());
    assertThat(
            awaitSent("a refusal", PartyMessage::hasCancelAnswer)
                .message()
                .getCancelAnswer()
                .getRefused()
                .getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    assertThat(receipts()).isEmpty();
    awaitEnvelope(give(with(bravo, intent)));
  }

  @Test
  void a_requester_that_has_taken_its_share_of_the_disk_gets_no_word() {
    ecdsaKey();
    ledger.kept.put("wallet", 7_000_000L);
    ledger.diskBytes = 1_000_000;
    start();
    assertThat(answer(cancel(ecdsaIntent())).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED);
    assertThat(receipts()).isEmpty();
  }

  @Test
  void a_requester_without_room_hears_what_needs_none() {
    ecdsaKey();
    SigningIntent.Builder signed = ecdsaIntent();
    SigningIntent.Builder cancelled = ecdsaIntent();
    SessionId session = SessionId.ofOrder(given(signed));
    plays(bravo, session, 3, 3);
    awaitEnded("ecdsa_sign completed none");
    requireNever(cancelled);
    ledger.kept.put("wallet", 7_000_000L);
    ledger.diskBytes = 1_000_000;
    Installation.until(
        "the disk was looked at",
        () ->
            answer(cancel(ecdsaIntent())).getRefused().getReason()
                == RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED);
    requireNever(cancelled);
    assertThat(receipt(answer(cancel(signed))).getKind()).isEqualTo(Receipt.Kind.SIGNED);
  }

  @Test
  void a_party_that_may_have_forgotten_says_so() {
    ecdsaKey();
    ledger.fence = RequestId.first(Instant.now().plusSeconds(3600));
    assertThat(answer(cancel(ecdsaIntent())).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_FENCED);
  }

  @Test
  void a_coordinator_that_asks_too_often_is_not_answered() {
    ecdsaKey();
    for (int i = 0; i < Cancellations.BURST + 10; i++) {
      ask(coordinator, signed(cancel(ecdsaIntent())));
    }
    assertThat(watch.dropped).contains("asked_too_often");
    ask(other, signed(cancel(ecdsaIntent())));
    awaitSent("another coordinator is", m -> m.hasCancelAnswer());
  }

  @Test
  void an_intent_of_before_or_after_another_reshare_is_refused() {
    ecdsaKey();
    assertThat(awaitRefusal(give(with(bravo, ecdsaIntent().setReshareEpoch(2)))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_RESHARED);
    awaitEnvelope(give(with(bravo, ecdsaIntent())));
  }
}
