package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.Installation;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.PartyNetwork;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A contribution made with a presignature is on disk with its claim, before it leaves: another
 * process finds it there and knows of nothing that came after it.
 */
class StoredContributionTest extends SessionFixture {
  /** How long the order of a session takes to pass its deadline. */
  private static final Duration PAST_DEADLINE = Duration.ofSeconds(31);

  private SigningIntent.Builder intent = ecdsaIntent();
  private volatile boolean retired;

  @Override
  PolicyGate policy() {
    return new PolicyGate() {
      @Override
      public VerifiedIntent admit(SignedIntent signed) throws RefusedException {
        RefusedException.unless(
            !retired, RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER, "no such requester");
        return SessionFixture.admit(signed);
      }
    };
  }

  @BeforeEach
  void key() {
    ecdsaKey();
    intent = ecdsaIntent();
  }

  private Order.Builder order(ByteString presignature) {
    return ecdsaSigning(intent)
        .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
        .setPresignatureId(presignature);
  }

  /** An order whose claim an earlier process has left on disk, with its contribution. */
  private ByteString claimedBefore() {
    Order.Builder order = order(ByteString.copyFrom(new byte[32]));
    ByteString bytes = order.build().toByteString();
    SessionId session = SessionId.ofOrder(bytes);
    ledger.sessions.add(session);
    ledger.bind(
        new ClaimLedger.Binding(
            "wallet",
            intent.getRequestId(),
            session,
            order.clone().clearSignedIntent().build().toByteString(),
            ByteString.copyFrom(ROUND_1),
            Instant.now()));
    start();
    return bytes;
  }

  private RefusalReason again(ByteString order) {
    net.sent.clear();
    driver().onOrder(coordinator, order, null);
    return awaitRefusal(SessionId.ofOrder(order));
  }

  private long contributions() {
    return net.sent.stream().filter(sent -> sent.message().hasEnvelope()).count();
  }

  @Test
  void a_hold_keeps_it_back_also_when_the_deadline_of_its_order_has_passed() {
    ByteString order = claimedBefore();
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(contributions()).as("nothing speaks against it").isEqualTo(1);
    holds.set(
        List.of(new Hold(new Hold.Scope(KEY), Hold.Cause.OPERATOR, "a theft", Instant.EPOCH)));
    ahead = PAST_DEADLINE;
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(contributions()).isZero();
    holds.set(List.of(new Hold(new Hold.Scope(KEY), Hold.Cause.FREEZE, "a full disk", null)));
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(contributions()).as("a frozen key is held, too").isZero();
    holds.set(List.of());
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(contributions()).as("it is lifted").isEqualTo(1);
  }

  @Test
  void it_is_for_nobody_whose_requester_may_not_ask_any_more() {
    ByteString order = claimedBefore();
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(contributions()).isEqualTo(1);
    retired = true;
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER);
    assertThat(contributions()).isZero();
  }

  /** It may have been withheld since, and its request signed by others or cancelled. */
  @Test
  void a_store_that_went_back_gives_none_of_before() {
    ByteString order = claimedBefore();
    ledger.fence = RequestId.first(RequestId.time(intent.getRequestId()).plusMillis(1));
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(contributions()).isZero();
    ahead = PAST_DEADLINE;
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(contributions()).isZero();
  }

  /** A session that ends while it is claimed, so that its contribution is to be withheld. */
  private ByteString withheld() {
    ByteString presignature = presign();
    ledger.held = true;
    ByteString order = order(presignature).build().toByteString();
    driver().onOrder(coordinator, order, null);
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    net.sent.clear();
    ledger.held = false;
    ledger.sessions.add(SessionId.ofOrder(order));
    ahead = PAST_DEADLINE;
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitEnded("ecdsa_sign_presigned timed_out none");
    return order;
  }

  private boolean isDeclined(ByteString order) {
    PartyMessage declined = PartyNetwork.declined(SessionId.ofOrder(order));
    return net.sent.stream().anyMatch(sent -> sent.message().equals(declined));
  }

  /** Another process would give it: the others must not go on as if there were none. */
  @Test
  void it_is_not_said_that_nothing_comes_while_the_disk_has_it() {
    CompletableFuture<Void> disk = new CompletableFuture<>();
    ledger.withholding = disk;
    ByteString order = withheld();
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(isDeclined(order)).as("it is on its way").isFalse();
    disk.complete(null);
    Installation.until("it is said", () -> isDeclined(order));
    again(order);
    assertThat(isDeclined(order)).as("and said again").isTrue();
  }

  @Test
  void it_is_not_said_that_nothing_comes_if_the_disk_could_not_forget_it() {
    ledger.withholding = CompletableFuture.failedFuture(new IllegalStateException("a full disk"));
    ByteString order = withheld();
    assertThat(again(order)).isEqualTo(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(isDeclined(order)).isFalse();
    assertThat(contributions()).isZero();
  }
}
