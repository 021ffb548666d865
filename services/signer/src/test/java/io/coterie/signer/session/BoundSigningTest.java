package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.trust.Member;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A request has one signature, though the scheme would make another one each time. */
abstract class BoundSigningTest extends SessionFixture {
  @Test
  void three_rounds_of_which_the_observer_gets_the_last() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent(44, 7)));
    bravoPlays(session, 2);
    Installation.until("three messages", () -> net.sent.size() == 3);
    assertThat(net.sent.stream().map(Sent::to))
        .containsExactly(List.of(bravo), List.of(bravo), List.of(bravo, coordinator));
    envelope(session, "round 3".getBytes(StandardCharsets.UTF_8));
    awaitEnded("ecdsa_sign completed none");
    assertThat(watch.moves).filteredOn(t -> t.event() == Event.LAST_SENT).hasSize(1);
    SessionConfig config = core.configs.element();
    assertThat(config.getDerivationPathList()).containsExactly(44, 7);
    assertThat(config.getPayload()).isEqualTo(DIGEST);
    assertThat(watch.rounds)
        .contains("ecdsa_sign 1 for bravo", "ecdsa_sign 2 for bravo", "ecdsa_sign 3");
  }

  @Test
  void request_with_a_contribution_is_signed_in_no_other_session() throws Exception {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    ByteString first = given(intent);
    SessionId other = give(with(charlie, intent));
    assertThat(refused(other).getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    assertThat(refused(other).getBoundOrder())
        .isEqualTo(Order.parseFrom(first).toBuilder().clearSignedIntent().build().toByteString());
    awaitDeclined(other, charlie);
    // Another request is another matter.
    awaitEnvelope(give(with(charlie, ecdsaIntent())));
  }

  @Test
  void session_that_is_ordered_again_is_answered_with_what_was_sent() {
    ecdsaKey();
    ByteString order = given(ecdsaIntent());
    Sent contribution = List.copyOf(net.sent).getLast();
    assertThat(contribution.to()).containsExactly(bravo, coordinator);
    net.sent.clear();
    driver().onOrder(coordinator, order, null);
    awaitSent("the contribution once more", PartyMessage::hasEnvelope);
    assertThat(net.sent).containsExactly(new Sent(List.of(coordinator), contribution.message()));
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void coordinator_that_takes_over_gets_the_contribution_before_the_refusal() {
    ecdsaKey();
    ByteString order = given(ecdsaIntent());
    Sent contribution = List.copyOf(net.sent).getLast();
    net.sent.clear();
    driver().onOrder(other, order, null);
    awaitSent("a refusal", m -> m.getReport().hasRefused());
    assertThat(List.copyOf(net.sent)).hasSize(2);
    assertThat(net.sent).allMatch(sent -> sent.to().equals(List.of(other)));
    assertThat(net.sent.element().message()).isEqualTo(contribution.message());
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void request_is_free_when_another_party_declines() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId first = SessionId.ofOrder(given(intent));
    declines(charlie, first);
    declines(bravo, new SessionId(ByteString.copyFrom(new byte[32])));
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    declines(bravo, first);
    awaitEnded("ecdsa_sign cancelled declined");
    SessionId next = give(with(charlie, intent));
    awaitEnvelope(next);
    plays(bravo, first, 3, 3);
    plays(charlie, next, 1, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void request_whose_signature_was_seen_has_no_other_whatever_is_said() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    ByteString order = given(intent);
    SessionId first = SessionId.ofOrder(order);
    plays(bravo, first, 3, 3);
    awaitEnded("ecdsa_sign completed none");
    declines(bravo, first);
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    driver().onOrder(coordinator, order, null);
    assertThat(refused(first).getSignature())
        .as("the one signature")
        .isEqualTo(DIGEST.concat(ByteString.copyFromUtf8("share")));
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void newer_session_counts_while_nothing_was_contributed() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId first = give(with(bravo, intent));
    awaitEnvelope(first);
    plays(bravo, first, 1, 1);
    SessionId second = give(with(charlie, intent));
    awaitDeclined(first, bravo);
    awaitEnvelope(second);
    assertThat(watch.ended).contains("ecdsa_sign cancelled superseded");
    plays(bravo, first, 2, 3);
    plays(charlie, second, 1, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void newer_session_waits_for_a_claim_that_is_being_written() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    ledger.held = true;
    SessionId first = give(with(bravo, intent));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    ledger.held = false;
    // Nothing is known of the first one yet; the ledger knows.
    ledger.bind(
        new ClaimLedger.Binding(
            "wallet",
            intent.getRequestId(),
            first,
            ByteString.EMPTY,
            ByteString.EMPTY,
            Instant.now()));
    SessionId second = give(with(charlie, intent));
    assertThat(refused(second).getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    awaitDeclined(second, charlie);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitEnvelope(first);
  }

  @Test
  void silent_party_is_left_out_once_it_can_contribute_no_more() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    given(with(bravo, intent).setDeadline(Installation.in(Duration.ofSeconds(20))));
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    time.pass(Duration.ofSeconds(20));
    awaitEnded("ecdsa_sign timed_out none");
    assertThat(refused(give(with(bravo, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    awaitEnvelope(give(with(charlie, intent)));
  }

  /** Bravo contributes up to the deadline by its own clock. */
  @Test
  void party_whose_clock_is_behind_is_waited_for_as_much_longer() {
    ecdsaKey();
    behind = parties -> parties.contains(2) ? Duration.ofSeconds(25) : Duration.ZERO;
    SigningIntent.Builder intent = ecdsaIntent();
    given(with(bravo, intent).setDeadline(Installation.in(Duration.ofSeconds(20))));
    Duration lapse = Duration.ofSeconds(20);
    Duration early = Duration.ofSeconds(20);
    Duration late = Duration.ofSeconds(25);
    Installation.until(
        "it waits for the slower clock",
        () -> {
          time.pass(lapse);
          return time.isDue(early, late);
        });
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    time.pass(late);
    awaitEnded("ecdsa_sign timed_out none");
    awaitEnvelope(give(with(charlie, intent)));
  }

  /** It waits behind the contribution: the others have their time all the same. */
  @Test
  void an_end_that_is_due_when_the_party_contributes_lapses_nothing() {
    ecdsaKey();
    net.onBroadcast = () -> time.pass(Duration.ofSeconds(20));
    SigningIntent.Builder intent = ecdsaIntent();
    given(with(bravo, intent).setDeadline(Installation.in(Duration.ofSeconds(20))));
    net.onBroadcast = () -> {};
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    assertThat(watch.ended).doesNotContain("ecdsa_sign timed_out none");
  }

  @Test
  void coordinator_cannot_keep_a_party_from_seeing_the_signature() {
    ecdsaKey();
    SessionId session = SessionId.ofOrder(given(ecdsaIntent()));
    driver().onCancel(coordinator, session);
    plays(bravo, session, 3, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void request_is_free_when_the_contributions_make_no_signature() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId session = SessionId.ofOrder(given(intent));
    envelope(session, FakeCore.POISON);
    awaitEnded("ecdsa_sign aborted wrong_share");
    awaitEnvelope(give(with(charlie, intent)));
  }

  @Test
  void order_that_is_refused_is_declined_first() {
    ecdsaKey();
    SessionId session = give(presigned(ByteString.copyFrom(new byte[32])));
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(ledger.declined).containsExactly(session);
    assertThat(net.sent.element())
        .isEqualTo(new Sent(List.of(bravo), PartyNetwork.declined(session)));
  }

  /** Anybody on the channel could fill the disk. */
  @Test
  void nothing_is_written_about_an_order_whose_intent_nobody_is_known_to_have_signed() {
    ecdsaKey();
    SessionId session =
        give(
            order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, "sign", ByteString.copyFrom(new byte[] {1}))
                .setThreshold(2)
                .addSigningSet(1)
                .addSigningSet(2));
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    assertThat(ledger.declined).isEmpty();
    assertThat(ledger.sessions).isEmpty();
    assertThat(net.sent).noneMatch(sent -> sent.message().getReport().hasDeclined());
  }

  @Test
  void a_refusal_frees_its_own_request_and_none_that_may_be_forgotten() {
    ecdsaKey();
    Instant wentBack = Instant.now();
    ledger.fence = RequestId.first(wentBack);
    String forgotten = RequestId.at(wentBack.minusSeconds(1));
    SessionId before = give(withoutPresignature(ecdsaIntent().setRequestId(forgotten)));
    assertThat(awaitRefusal(before)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    SessionId unread =
        give(
            ecdsaSigning(ecdsaIntent())
                .setSignedIntent(
                    SignedIntent.newBuilder()
                        .setPayloadType("sign")
                        .setPayload(ByteString.copyFromUtf8("no intent"))));
    assertThat(awaitRefusal(unread)).isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    assertThat(ledger.declined).as("it may have contributed").isEmpty();

    SigningIntent.Builder intent = ecdsaIntent().setRequestId(RequestId.at(wentBack));
    SessionId after = give(withoutPresignature(intent));
    assertThat(awaitRefusal(after)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(ledger.declined).containsExactly(after);
    assertThat(net.sent.stream().map(Sent::message).filter(m -> m.getReport().hasDeclined()))
        .containsExactly(PartyNetwork.declined(after));
    awaitEnvelope(give(with(charlie, intent)));
  }

  /** An order for a presignature that this party does not have. */
  private static Order.Builder withoutPresignature(SigningIntent.Builder intent) {
    return ecdsaSigning(intent)
        .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
        .setPresignatureId(ByteString.copyFrom(new byte[32]));
  }

  /** Gives an order with a presignature, whose claim is on its way to the disk from then on. */
  private Order claiming() {
    Order order = presigned(presign()).build();
    ledger.held = true;
    net.sent.clear();
    give(order.toBuilder());
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    return order;
  }

  /** The claim that is on its way comes to the disk, and later ones do at once. */
  private void claimsEnd() {
    ledger.held = false;
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
  }

  @Test
  void contribution_made_with_a_presignature_is_claimed_before_it_leaves_and_survives() {
    ecdsaKey();
    Order order = claiming();
    assertThat(net.sent).isEmpty();
    claimsEnd();
    awaitSent("the contribution", PartyMessage::hasEnvelope);

    stop();
    ByteString bytes = order.toByteString();
    SessionId session = SessionId.ofOrder(bytes);
    ledger.sessions.add(session);
    String requestId = "the request";
    ledger.bind(
        new ClaimLedger.Binding(
            "wallet",
            requestId,
            session,
            order.toBuilder().clearSignedIntent().build().toByteString(),
            ByteString.copyFrom(ROUND_1),
            Instant.now()));
    start();
    net.sent.clear();
    holds.set(
        List.of(new Hold(new Hold.Scope(KEY), Hold.Cause.OPERATOR, "a theft", Instant.EPOCH)));
    driver().onOrder(coordinator, bytes, null);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_ON_HOLD);
    assertThat(net.sent).as("a hold keeps it back").noneMatch(s -> s.message().hasEnvelope());

    holds.set(List.of());
    net.sent.clear();
    driver().onOrder(coordinator, bytes, null);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(net.sent).hasSize(2);
    assertThat(net.sent.element().to()).containsExactly(coordinator);
    assertThat(net.sent.element().message().getEnvelope().getEnvelope())
        .isEqualTo(ByteString.copyFrom(ROUND_1));
  }

  /** A session still counts for the limit while it has something to send. */
  @Test
  void session_of_several_rounds_counts_until_its_last_message() {
    limits = new SessionLimits(1, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    ecdsaKey();
    SessionId first = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(first);
    bravoPlays(first, 1);
    assertThat(awaitRefusal(give(ecdsaSigning(ecdsaIntent()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    envelope(first, "round 2".getBytes(StandardCharsets.UTF_8));
    awaitMove(Event.LAST_SENT);
    SessionId next = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(next);
  }

  @Test
  void what_was_decoded_is_in_the_audit_record() {
    ecdsaKey();
    give(ecdsaSigning(ecdsaIntent(1, 2)));
    Installation.until("it claims", () -> !ledger.accepted.isEmpty());
    assertThat(ledger.accepted.getFirst().fields())
        .containsEntry("payload", "digest")
        .containsEntry("payload.001.digest", "0x" + "00".repeat(32))
        .containsEntry("derivation_path", "m/1/2");
  }

  @Test
  void payload_that_is_not_what_it_claims_is_refused() {
    ecdsaKey();
    SigningIntent.Builder intent =
        ecdsaIntent().setEthereumTransaction(ByteString.copyFromUtf8("no transaction"));
    assertThat(awaitRefusal(give(ecdsaSigning(intent))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_BAD_PAYLOAD);
    assertThat(ledger.accepted).isEmpty();
  }

  /** Until its deadline an order can be given again, also to a store that has forgotten it. */
  @Test
  void order_for_longer_than_sessions_may_take_is_refused_and_not_cut() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent().setNotAfter(Installation.in(Duration.ofHours(1)));
    for (Order.Builder order : List.of(presigning(), ecdsaSigning(intent))) {
      SessionId late = give(order.setDeadline(Installation.in(Duration.ofSeconds(90))));
      assertThat(awaitRefusal(late)).isEqualTo(RefusalReason.REFUSAL_REASON_DEADLINE_TOO_FAR);
      assertThat(core.configs).as("nothing has run").isEmpty();
    }
    awaitEnvelope(give(presigning().setDeadline(Installation.in(Duration.ofSeconds(58)))));
  }

  /** Others count on it: they go on without this party two clock skews after the deadline. */
  @Test
  void contribution_whose_claim_was_on_disk_too_late_never_leaves() {
    ecdsaKey();
    ByteString bytes = claiming().toByteString();
    SessionId session = SessionId.ofOrder(bytes);
    net.sent.clear();
    ahead = Duration.ofSeconds(31);
    claimsEnd();
    awaitEnded("ecdsa_sign_presigned timed_out none");
    awaitDeclined(session, bravo);
    assertThat(ledger.withheld).as("another process cannot send it").containsExactly(session);
    assertThatNothingIsLeftFor(bytes);
    assertThat(refused(session).getSignature()).isEqualTo(ByteString.EMPTY);
  }

  /** A coordinator that takes over gets a refusal and no contribution. */
  private void assertThatNothingIsLeftFor(ByteString order) {
    ledger.sessions.add(SessionId.ofOrder(order));
    driver().onOrder(other, order, null);
    awaitSent("a refusal", m -> m.getReport().hasRefused());
    assertThat(net.sent).noneMatch(sent -> sent.message().hasEnvelope());
  }

  @Test
  void session_that_ended_while_it_was_claimed_gives_nothing_later() {
    ecdsaKey();
    ByteString bytes = claiming().toByteString();
    SessionId session = SessionId.ofOrder(bytes);
    time.pass(Duration.ofSeconds(31));
    awaitEnded("ecdsa_sign_presigned timed_out none");
    net.sent.clear();
    claimsEnd();
    awaitDeclined(session, bravo);
    assertThatNothingIsLeftFor(bytes);
  }

  /** However many refusals were recorded before: its order is on record. */
  @Test
  void session_that_ended_while_it_was_claimed_has_its_end_on_record() {
    limits = new SessionLimits(64, 64, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    ecdsaKey();
    for (int i = 0; i < RefusalRate.BURST + 100; i++) {
      driver().onOrder(coordinator, ByteString.copyFromUtf8("no order " + i), null);
    }
    Installation.until("all were refused", () -> watch.ended.size() >= RefusalRate.BURST + 100);
    ledger.held = true;
    List<SessionId> sessions = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      sessions.add(give(ecdsaSigning(ecdsaIntent())));
    }
    Installation.until("all claim", () -> ledger.waiting.size() == sessions.size());
    time.pass(Duration.ofSeconds(31));
    Installation.until(
        "all ended",
        () ->
            watch.ended.stream().filter("ecdsa_sign timed_out none"::equals).count()
                == sessions.size());
    // More than the rate lets through, unless this takes as many seconds.
    ledger.waiting.forEach(waiting -> waiting.complete(ClaimLedger.Outcome.CLAIMED));
    Installation.until(
        "each is on record once", () -> sessions.stream().allMatch(s -> endsOnRecord(s) == 1));
  }

  private long endsOnRecord(SessionId session) {
    String id = HexFormat.of().formatHex(session.bytes().toByteArray());
    return audit.stream()
        .filter(event -> event.action().equals("session.end"))
        .filter(event -> id.equals(event.fields().get("session_id")))
        .count();
  }

  /** Its word ends the session while the claim is on the way to the disk. */
  @Test
  void session_that_another_party_declines_while_it_is_claimed_leaves_no_contribution() {
    ecdsaKey();
    SessionId session = SessionId.ofOrder(claiming().toByteString());
    declines(bravo, session);
    awaitEnded("ecdsa_sign_presigned cancelled declined");
    claimsEnd();
    awaitDeclined(session, bravo);
    assertThat(ledger.withheld).as("another process cannot send it").containsExactly(session);
  }

  /** Makes orders wait for what this party is told at its start. */
  private SessionId waitsForTheStart(int sessions) {
    limits =
        new SessionLimits(
            sessions + 1, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    net.witnesses = false;
    start();
    ecdsaKey();
    SessionId last = null;
    for (int i = 0; i < sessions; i++) {
      ByteString bytes = ecdsaSigning(earlier()).build().toByteString();
      driver().onOrder(coordinator, bytes, null);
      // It is answered after the order was judged.
      driver().onOrder(other, bytes, null);
      last = SessionId.ofOrder(bytes);
      assertThat(refusedTo(other, last)).isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
    }
    assertThat(live()).isEqualTo(sessions);
    return java.util.Objects.requireNonNull(last);
  }

  private RefusalReason refusedTo(Member asking, SessionId session) {
    Installation.until(
        "a refusal", () -> net.sent.stream().anyMatch(sent -> isRefusal(sent, asking, session)));
    return net.sent.stream()
        .filter(sent -> isRefusal(sent, asking, session))
        .findFirst()
        .orElseThrow()
        .message()
        .getReport()
        .getRefused()
        .getReason();
  }

  private static boolean isRefusal(Sent sent, Member asking, SessionId session) {
    return sent.to().equals(List.of(asking))
        && sent.message().getReport().hasRefused()
        && sent.message().getReport().getSessionId().equals(session.bytes());
  }

  private static SigningIntent.Builder earlier() {
    return ecdsaIntent().setRequestId(RequestId.at(Instant.now().minusSeconds(9)));
  }

  private void startIsOver() {
    net.witnesses = true;
    List.copyOf(net.statements).forEach(s -> s.to().forEach(to -> net.answer(to, s.message())));
  }

  @Test
  void order_that_waits_for_the_start_gives_its_place_back_at_its_deadline() {
    waitsForTheStart(2);
    time.pass(Duration.ofSeconds(31));
    awaitEnded("ecdsa_sign timed_out none");
    startIsOver();
    for (int i = 0; i < 3; i++) {
      awaitEnvelope(give(ecdsaSigning(ecdsaIntent())));
    }
    assertThat(core.started.get()).isEqualTo(3);
  }

  @Test
  void order_that_waits_for_the_start_can_be_cancelled() {
    SessionId session = waitsForTheStart(1);
    driver().onCancel(coordinator, session);
    awaitEnded("ecdsa_sign cancelled none");
  }

  @Test
  void order_that_waits_for_the_start_ends_with_the_process() {
    waitsForTheStart(1);
    driver().close();
    assertThat(watch.ended).contains("ecdsa_sign stopped none");
  }

  @Test
  void order_that_has_waited_until_after_its_deadline_claims_nothing() {
    waitsForTheStart(1);
    ahead = Duration.ofSeconds(31);
    startIsOver();
    // The timer has not come yet.
    time.pass(Duration.ofSeconds(6));
    awaitEnded("ecdsa_sign timed_out none");
    assertThat(ledger.accepted).isEmpty();
    assertThat(core.started.get()).isZero();
  }
}
