package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.share.KeyShare;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/**
 * Signs with a scheme whose signature is the same each time; the steps of any session are seen
 * here.
 */
abstract class SigningTest extends SessionFixture {
  @Test
  void contribution_goes_to_the_coordinator_alone_and_the_session_ends_with_it() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnded("bls_sign contributed none");
    assertThat(net.sent.element().to()).containsExactly(coordinator);
    assertThat(core.open.get()).isZero();
    assertThat(watch.rounds).containsExactly("bls_sign 1");
    assertThat(audit.getLast().outcome()).isEqualTo("contributed");
    assertThat(audit.getLast().fields())
        .containsKeys("intent_digest", "session_id", "request_id", "key")
        .doesNotContainKey("result_digest")
        .doesNotContainValue("hello");
    // A peer that shows its own wastes its time, whatever is in it.
    for (byte[] any : List.of(ROUND_1, FakeCore.POISON, FakeCore.FREEZE, FakeCore.BUG)) {
      envelope(session, any);
    }
    give(signing(1, 2));
    Installation.until("the peer is no worse for it", () -> watch.ended.size() == 2 && live() == 0);
    assertThat(watch.ended).containsOnly("bls_sign contributed none");
    assertThat(net.sent).hasSize(2).allMatch(sent -> sent.message().hasEnvelope());
    assertThat(shares.exclusions).isEmpty();
  }

  @Test
  void envelope_of_a_peer_before_the_order_is_never_looked_at() {
    key(KeyShare.State.ACTIVE);
    ByteString bytes = signing(1, 2).build().toByteString();
    envelope(SessionId.ofOrder(bytes), FakeCore.POISON);
    driver().onOrder(coordinator, bytes, null);
    awaitEnded("bls_sign contributed none");
    assertThat(shares.exclusions).isEmpty();
  }

  @Test
  void signature_that_peers_contribute_to_is_on_record() {
    SessionId session = running();
    bravoPlays(session, 3);
    awaitEnded("ecdsa_sign completed none");
    assertThat(core.open.get()).isZero();
    assertThat(watch.rounds).contains("ecdsa_sign 3", "ecdsa_sign 3 for bravo");
    assertThat(audit.getLast().fields())
        .containsKeys("result_digest", "intent_digest", "session_id", "request_id", "key");
  }

  @Test
  void signs_alone() {
    key(KeyShare.State.ACTIVE);
    give(signing(1));
    awaitEnded("bls_sign completed none");
  }

  /** A session with bravo that has sent its first envelope of several. */
  private SessionId running() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    return session;
  }

  /** A session with bravo whose claim is not written yet. */
  private SessionId claiming() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    return session;
  }

  @Test
  void envelope_before_its_order_is_kept() {
    ecdsaKey();
    ByteString bytes = ecdsaSigning(ecdsaIntent()).build().toByteString();
    bravoPlays(SessionId.ofOrder(bytes), 3);
    driver().onOrder(coordinator, bytes, null);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void envelope_while_the_claim_is_written_is_kept() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    bravoPlays(session, 3);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void late_messages_of_an_ended_session_are_dropped() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1));
    awaitEnded("bls_sign completed none");
    envelope(session, ROUND_1);
    assertThat(watch.dropped).isEmpty();
    assertThat(live()).isZero();
  }

  @Test
  void messages_that_are_not_acceptable_are_dropped() {
    SessionId session = running();
    driver().onEnvelope(coordinator, session, new byte[5], 0);
    driver().onEnvelope(bravo, session, new byte[SessionLimits.MAX_ENVELOPE_BYTES + 1], 0);
    assertThat(watch.dropped).containsExactly("unacceptable", "unacceptable");
    envelope(session, "noise".getBytes(StandardCharsets.UTF_8));
    Installation.until(
        "the core ignores noise", () -> watch.dropped.contains("reject_reason_malformed"));
    bravoPlays(session, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void missing_party_is_named_at_the_deadline() {
    ecdsaKey();
    SessionId session =
        give(
            ecdsaSigning(ecdsaIntent())
                .addSigningSet(3)
                .setDeadline(Installation.in(Duration.ofSeconds(20))));
    awaitEnvelope(session);
    envelope(session, ROUND_1);
    envelope(session, "noise".getBytes(StandardCharsets.UTF_8));
    Installation.until("both were looked at", () -> !watch.dropped.isEmpty());
    time.pass(Duration.ofSeconds(20));
    assertThat(awaitReport(session).getTimedOut().getMissingList()).containsExactly(3);
    awaitEnded("ecdsa_sign timed_out none");
  }

  /** Its coordinator has missed how it ended, and asks while the session is not put away yet. */
  @Test
  void order_that_comes_again_while_its_session_ends_is_answered() {
    ecdsaKey();
    ByteString order =
        ecdsaSigning(ecdsaIntent())
            .setDeadline(Installation.in(Duration.ofSeconds(20)))
            .build()
            .toByteString();
    driver().onOrder(coordinator, order, null);
    SessionId session = SessionId.ofOrder(order);
    awaitEnvelope(session);
    net.onReport =
        () -> {
          net.onReport = () -> {};
          driver().onOrder(coordinator, order, null);
        };
    ahead = Duration.ofSeconds(20);
    time.pass(Duration.ofSeconds(20));
    assertThat(awaitReport(session).hasTimedOut()).isTrue();
    awaitSent("a second answer", message -> message.getReport().hasRefused());
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void deadline_while_the_claim_is_written() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2).setDeadline(Installation.in(Duration.ofSeconds(20))));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    time.pass(Duration.ofSeconds(20));
    assertThat(awaitReport(session).hasTimedOut()).isTrue();
    awaitEnded("bls_sign timed_out none");
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    give(signing(1, 2).setDeadline(Installation.in(Duration.ofMillis(1))));
    assertThat(core.started.get()).as("nothing starts after its end").isZero();
  }

  @Test
  void cause_and_culprit_of_an_abort_are_reported_and_remembered() {
    SessionId session = running();
    envelope(session, FakeCore.POISON);
    assertThat(awaitReport(session).getAborted().getCulpritsList()).containsExactly(2);
    awaitEnded("ecdsa_sign aborted wrong_share");
    assertThat(audit.getLast().fields())
        .containsEntry("cause", "wrong_share")
        .containsEntry("culprits", "2")
        .doesNotContainKey("suspects");
    SessionId next = give(ecdsaSigning(ecdsaIntent()));
    assertThat(awaitReport(next).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
  }

  @Test
  void suspects_of_an_abort_and_its_round_are_remembered_and_nobody_is_excluded() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    envelope(session, "round 1".getBytes(StandardCharsets.UTF_8));
    envelope(session, FakeCore.SUSPECT);
    assertThat(awaitReport(session).getAborted().getSuspectsList()).containsExactly(2);
    awaitEnded("ecdsa_sign aborted broadcast_mismatch");
    assertThat(audit.getLast().fields())
        .containsEntry("cause", "broadcast_mismatch")
        .containsEntry("round", "2")
        .containsEntry("suspects", "2")
        .doesNotContainKey("culprits");
    assertThat(shares.exclusions).isEmpty();
  }

  @Test
  void frozen_key_is_used_with_nobody() {
    SessionId session = running();
    envelope(session, FakeCore.FREEZE);
    awaitEnded("ecdsa_sign aborted wrong_share");
    SessionId next = give(with(charlie, ecdsaIntent()));
    assertThat(awaitReport(next).getRefused().getDetail()).contains("frozen");
  }

  @Test
  void bug_in_the_core_ends_the_session_and_not_the_service() {
    ecdsaKey();
    SessionId session = SessionId.ofOrder(given(ecdsaIntent()));
    envelope(session, FakeCore.BUG);
    assertThat(awaitReport(session).getAborted().getCulpritsList()).isEmpty();
    awaitEnded("ecdsa_sign aborted internal");
    signs_alone();
  }

  @Test
  void cancel_counts_from_the_coordinator_that_ordered() {
    SessionId session = running();
    driver().onCancel(other, session);
    driver().onCancel(bravo, session);
    envelope(session, "noise".getBytes(StandardCharsets.UTF_8));
    Installation.until("both were looked at", () -> !watch.dropped.isEmpty());
    assertThat(live()).isEqualTo(1);
    driver().onCancel(coordinator, session);
    awaitEnded("ecdsa_sign cancelled none");
  }

  @Test
  void cancel_while_the_claim_is_written() {
    SessionId session = claiming();
    driver().onCancel(coordinator, session);
    awaitEnded("bls_sign cancelled none");
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    assertThat(core.started.get()).isZero();
  }

  @Test
  void store_that_fails_starts_nothing() {
    SessionId session = claiming();
    ledger.waiting.getFirst().completeExceptionally(new IllegalStateException("disk full"));
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_INTERNAL);
    assertThat(core.started.get()).isZero();
  }

  @Test
  void core_that_refuses_is_reported() {
    key(KeyShare.State.ACTIVE);
    start(
        new ProtocolCore() {
          @Override
          public Run start(SessionConfig config, ByteString share) throws RefusedException {
            throw new RefusedException(RefusalReason.REFUSAL_REASON_INTERNAL, "no");
          }

          @Override
          public ByteString signStatement(ByteString statement) {
            return ByteString.EMPTY;
          }
        });
    SessionId session = give(signing(1, 2));
    assertThat(awaitReport(session).getRefused().getDetail()).isEqualTo("no");
    awaitEnded("bls_sign refused internal");
  }

  @Test
  void same_order_twice_is_followed_once() {
    ecdsaKey();
    ByteString bytes = ecdsaSigning(ecdsaIntent()).build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    driver().onOrder(coordinator, bytes, null);
    SessionId session = SessionId.ofOrder(bytes);
    awaitEnvelope(session);
    driver().onOrder(other, bytes, null);
    Sent refusal = awaitSent("the other is refused", PartyMessage::hasReport);
    assertThat(refusal.to()).containsExactly(other);
    bravoPlays(session, 3);
    awaitEnded("ecdsa_sign completed none");
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void too_many_at_once_are_refused() {
    limits = new SessionLimits(2, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    give(signing(1, 2));
    give(signing(1, 2));
    SessionId third = give(signing(1, 2));
    assertThat(awaitReport(third).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    // Those that only wait for their result do not count.
    Installation.until("both claim", () -> ledger.waiting.size() == 2);
    ledger.held = false;
    ledger.waiting.forEach(w -> w.complete(ClaimLedger.Outcome.CLAIMED));
    Installation.until("both have sent", () -> core.started.get() == 2);
    Installation.until(
        "there is room again",
        () -> {
          SessionId next = give(signing(1));
          return !awaitEndOrReport(next);
        });
  }

  @Test
  void too_many_of_one_requester_are_refused() {
    limits = new SessionLimits(8, 1, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    SessionId first = claiming();
    SessionId second = give(signing(1, 2));
    assertThat(awaitReport(second).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED);
    driver().onCancel(coordinator, first);
    awaitEnded("bls_sign cancelled none");
    ledger.held = false;
    signs_alone();
  }

  /** The volume of the counter outside the store may hang; the disk is looked at all the same. */
  @Test
  void a_counter_that_hangs_keeps_nothing_else_back() {
    ecdsaKey();
    CompletableFuture<Void> hangs = new CompletableFuture<>();
    ledger.outside = hangs;
    int before = ledger.noted.get();
    Installation.until("it hangs", () -> ledger.noted.get() > before);
    try {
      ledger.kept.put("wallet", 7_000_000L);
      ledger.diskBytes = 1_000_000;
      Installation.until(
          "the disk was looked at",
          () -> {
            SessionId next = give(with(bravo, ecdsaIntent()));
            boolean refused = awaitEndOrReport(next);
            driver().onCancel(coordinator, next);
            return refused && awaitReport(next).getRefused().getDetail().contains("disk");
          });
      assertThat(ledger.noted.get()).as("asked once").isEqualTo(before + 1);
    } finally {
      hangs.complete(null);
    }
  }

  @Test
  void a_requester_that_has_its_share_of_the_disk_leaves_nothing_more_there() {
    ledger.kept.put("wallet", 7_000_000L);
    ledger.diskBytes = 1_000_000;
    start();
    ecdsaKey();
    // Of a scheme whose sessions this party otherwise declines on disk, before it says so.
    SessionId session = give(with(bravo, ecdsaIntent()));
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED);
    assertThat(awaitReport(session).getRefused().getDetail()).contains("disk");
    assertThat(ledger.sessions).isEmpty();
    assertThat(ledger.accepted).isEmpty();
    ledger.diskBytes = 2_000_000;
    Installation.until(
        "the operator has enlarged the disk",
        () -> {
          return !awaitEndOrReport(give(with(bravo, ecdsaIntent())));
        });
  }

  @Test
  void a_coordinator_that_orders_an_intent_again_and_again_spends_its_own_share_of_the_disk() {
    key(KeyShare.State.ACTIVE);
    Order.Builder order = signing(1);
    assertThat(awaitEndOrReport(give(order))).isFalse();
    long once = ledger.kept.get("wallet");
    assertThat(once).isGreaterThan(MemoryLedger.ROWS);
    for (int time = 1; time <= 50; time++) {
      order.setCoordinatorNonce(nonce());
      assertThat(awaitEndOrReport(give(order))).as("time %d", time).isFalse();
    }
    awaitEnded("bls_sign completed none");
    assertThat(ledger.kept)
        .containsEntry("wallet", once)
        .containsEntry(MemoryLedger.COORDINATOR, 50 * MemoryLedger.ROWS);

    // Its own share is taken: it orders nothing once more, and of the requester what is new.
    ledger.kept.put(MemoryLedger.COORDINATOR, 70_000_000L);
    ledger.diskBytes = 10_000_000;
    start();
    SessionId again = give(order.setCoordinatorNonce(nonce()));
    assertThat(awaitReport(again).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    assertThat(awaitReport(again).getRefused().getDetail()).contains("this coordinator");
    assertThat(ledger.sessions).doesNotContain(again);
    assertThat(awaitEndOrReport(give(signing(1)))).isFalse();
  }

  @Test
  void a_coordinator_that_has_its_share_of_the_disk_has_no_session_declined_there() {
    ledger.kept.put(MemoryLedger.COORDINATOR, 70_000_000L);
    ledger.diskBytes = 10_000_000;
    start();
    ecdsaKey();
    SessionId session = give(with(bravo, ecdsaIntent(1, 2, 3)).setEpoch(9));
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    assertThat(ledger.sessions).isEmpty();
  }

  @Test
  void on_a_disk_that_is_nearly_full_nothing_is_claimed_or_declined() {
    ledger.minFreeBytes = 64_000_000;
    ledger.diskBytes = 64_000_000;
    start();
    ecdsaKey();
    for (Order.Builder order : List.of(with(bravo, ecdsaIntent()), presigning())) {
      SessionId session = give(order);
      assertThat(awaitReport(session).getRefused().getReason())
          .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
      assertThat(awaitReport(session).getRefused().getDetail()).contains("disk");
    }
    assertThat(ledger.sessions).isEmpty();
  }
}
