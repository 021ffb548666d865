package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.signer.Installation;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.share.KeyShare;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A requester whose order is refused gets this party's own word for it. */
class RefusalReceiptsTest extends SessionFixture {
  private volatile @Nullable String denial;
  private volatile boolean stranger;

  @Override
  PolicyGate policy() {
    return signed -> {
      if (stranger) {
        throw new RefusedException(
            RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE, "signed by somebody else");
      }
      VerifiedIntent intent = admit(signed);
      String no = denial;
      if (no != null) {
        throw RefusedException.forbidden(intent, no);
      }
      return intent;
    };
  }

  /** A floor was raised since: its requester must hear all the same how the request ended. */
  @Test
  void what_a_request_has_made_is_told_although_the_policy_forbids_it_now() {
    String request = RequestId.next();
    Order.Builder order = keygen(request);
    SessionId made = give(order);
    awaitEnvelope(made);
    bravoPlays(made);
    awaitReport(made);
    awaitEnded("bls_keygen completed none");
    denial = "a key of this name needs at least 3 parties to sign, not 1";
    net.sent.clear();
    give(again(order));
    Sent told = awaitSent("the stored report", m -> m.getReport().hasCompleted());
    assertThat(told.message().getReport().getSessionId()).isEqualTo(made.bytes());
    assertThat(told.to()).as("the one that asked, alone").containsExactly(coordinator);

    net.sent.clear();
    assertThat(awaitRefusal(give(keygen(request))))
        .as("another intent of the id")
        .isEqualTo(FORBIDDEN);
    assertThat(awaitRefusal(give(keygen(RequestId.next())))).isEqualTo(FORBIDDEN);
    stranger = true;
    assertThat(awaitRefusal(give(again(order))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE);
    assertThat(net.sent).noneMatch(sent -> sent.message().getReport().hasCompleted());
  }

  private static final RefusalReason FORBIDDEN = RefusalReason.REFUSAL_REASON_FORBIDDEN;

  private static Order.Builder again(Order.Builder order) {
    return order
        .clone()
        .setCoordinatorNonce(
            ByteString.copyFromUtf8(UUID.randomUUID().toString().substring(0, 32)));
  }

  private void hold() {
    holds.set(
        List.of(new Hold(new Hold.Scope(KEY), Hold.Cause.OPERATOR, "a theft", Instant.EPOCH)));
  }

  private static SigningIntent intent(Order.Builder order) {
    try {
      return SigningIntent.parseFrom(order.getSignedIntent().getPayload());
    } catch (InvalidProtocolBufferException e) {
      throw new AssertionError(e);
    }
  }

  private static Order.Builder with(
      Order.Builder order, UnaryOperator<SigningIntent.Builder> change) {
    order
        .getSignedIntentBuilder()
        .setPayload(change.apply(intent(order).toBuilder()).build().toByteString());
    return order;
  }

  /** The order is refused for that reason, and the receipt says so and nothing else. */
  private void requireReceipt(Order.Builder order, RefusalReason reason) {
    requireReceipt(give(order), order, reason);
  }

  private void requireReceipt(SessionId session, Order.Builder order, RefusalReason reason) {
    Refused refused = refused(session);
    assertThat(refused.getReason()).isEqualTo(reason);
    Receipt receipt = Receipts.read(refused.getReceipt()).orElseThrow();
    SigningIntent intent = intent(order);
    assertThat(receipt)
        .isEqualTo(
            Receipt.newBuilder()
                .setKind(Receipt.Kind.REFUSED)
                .setInstallation("test")
                .setKey(KEY)
                .setKeyFingerprint(intent.getKeyFingerprint())
                .setReshareEpoch(intent.getReshareEpoch())
                .setRequester("wallet")
                .setRequestId(intent.getRequestId())
                .setIntentDigest(IntentVerifier.digest(order.getSignedIntent().getPayload()))
                .setParty(1)
                .setReason(reason.name())
                .setUnixMs(receipt.getUnixMs())
                .build());
    Instant at = Instant.ofEpochMilli(receipt.getUnixMs());
    assertThat(at).isBetween(started.minusMillis(1), Instant.now());
    assertThat(Receipts.isSigned(refused.getReceipt(), receipt, net.roster)).isTrue();
  }

  private final Instant started = Instant.now();

  @Test
  void the_receipt_names_request_intent_and_reason() {
    requireReceipt(signing(1), RefusalReason.REFUSAL_REASON_UNKNOWN_KEY);
    key(KeyShare.State.ACTIVE);
    requireReceipt(signing(1).setEpoch(2), RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    requireReceipt(
        with(signing(1), i -> i.setReshareEpoch(4)), RefusalReason.REFUSAL_REASON_RESHARED);
    requireReceipt(
        with(signing(1), i -> i.setNotAfter(Installation.in(Duration.ofMinutes(-1)))),
        RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    // It is of its own installation, whatever the intent says.
    requireReceipt(
        with(signing(1), i -> i.setInstallation("staging")),
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    denial = "not this one";
    requireReceipt(signing(1), RefusalReason.REFUSAL_REASON_FORBIDDEN);
    denial = null;
    hold();
    requireReceipt(signing(1), RefusalReason.REFUSAL_REASON_ON_HOLD);
    assertThat(ledger.accepted).as("nothing is stored for it").isEmpty();
  }

  @Test
  void a_session_that_is_declined_for_ever_is_refused_with_one_too() {
    ecdsaKey();
    hold();
    Order.Builder order = ecdsaSigning(ecdsaIntent());
    requireReceipt(order, RefusalReason.REFUSAL_REASON_ON_HOLD);
    awaitDeclined(SessionId.ofOrder(order.build().toByteString()), bravo);
  }

  @Test
  void a_session_that_runs_is_left_with_one() {
    ecdsaKey();
    Order.Builder order = ecdsaSigning(ecdsaIntent());
    SessionId session = give(order);
    awaitEnvelope(session);
    hold();
    requireReceipt(session, order, RefusalReason.REFUSAL_REASON_ON_HOLD);
  }

  @Test
  void it_promises_nothing_and_the_same_intent_is_signed_later() {
    key(KeyShare.State.ACTIVE);
    hold();
    Order.Builder order = signing(1);
    requireReceipt(order, RefusalReason.REFUSAL_REASON_ON_HOLD);
    holds.set(List.of());
    give(order.setCoordinatorNonce(nonce()));
    awaitEnded("bls_sign completed none");
  }

  @Test
  void strangers_and_those_who_ask_for_no_signature_get_none() {
    key(KeyShare.State.ACTIVE);
    stranger = true;
    assertThat(refused(give(signing(1))).hasReceipt()).isFalse();
    stranger = false;
    assertThat(refused(give(signing(1).setSignedIntent(SignedIntent.newBuilder()))).hasReceipt())
        .isFalse();
    hold();
    assertThat(refused(give(keygen(RequestId.next()))).hasReceipt()).isFalse();
    assertThat(refused(give(presigning())).hasReceipt()).isFalse();
  }

  @Test
  void an_order_is_not_looked_into_for_a_receipt() {
    key(KeyShare.State.ACTIVE);
    stop(Duration.ZERO);
    assertThat(refused(give(signing(1))).hasReceipt()).isFalse();
  }

  private void stop(Duration time) {
    try {
      driver().drain(time);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static Receipts.Refusable request(String requester) {
    Order.Builder order = signing(1);
    return Receipts.Refusable.of(
        new VerifiedIntent.Signing(
            requester,
            IntentVerifier.digest(order.getSignedIntent().getPayload()),
            order.getSignedIntent(),
            intent(order)),
        "test");
  }

  private static Refused given(RefusalReceipts receipts, String requester) {
    Refused.Builder refused =
        Refused.newBuilder()
            .setReason(RefusalReason.REFUSAL_REASON_FORBIDDEN)
            .setDetail("not this one");
    receipts.give(request(requester), refused);
    return refused.build();
  }

  @Test
  void a_requester_gets_so_many_at_once_and_a_second_and_is_told_when_there_are_no_more() {
    AtomicLong nanos = new AtomicLong();
    RefusalReceipts receipts =
        new RefusalReceipts(core.of(1), 1, InstantSource.system(), nanos::get);
    for (int i = 0; i < RefusalReceipts.BURST; i++) {
      assertThat(given(receipts, "wallet").hasReceipt()).isTrue();
    }
    Refused refused = given(receipts, "wallet");
    assertThat(refused.hasReceipt()).isFalse();
    assertThat(refused.getDetail()).isEqualTo("not this one" + RefusalReceipts.TOO_MANY);
    assertThat(given(receipts, "keeper").hasReceipt()).as("another requester").isTrue();
    nanos.addAndGet(Duration.ofSeconds(1).toNanos());
    for (int i = 0; i < RefusalReceipts.PER_SECOND; i++) {
      assertThat(given(receipts, "wallet").getDetail()).isEqualTo("not this one");
    }
    assertThat(given(receipts, "wallet").hasReceipt()).isFalse();
  }

  @Test
  void a_refusal_goes_out_although_its_receipt_cannot_be_signed() {
    ProtocolCore broken =
        new ProtocolCore() {
          @Override
          public Run start(SessionConfig config, ByteString share) {
            throw new AssertionError("nothing runs");
          }

          @Override
          public ByteString signStatement(ByteString statement) {
            throw new IllegalStateException("sealed");
          }
        };
    RefusalReceipts receipts = new RefusalReceipts(broken, 1, InstantSource.system(), () -> 0);
    assertThat(given(receipts, "wallet").getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_FORBIDDEN);
    assertThat(given(receipts, "wallet").hasReceipt()).isFalse();
  }
}
