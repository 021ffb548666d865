package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.trust.Member;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/**
 * Sessions whose parties multiply: the end after a failed check, and the others' memory before it.
 */
abstract class MultiplicationTest extends SessionFixture {
  /** The share without the cheat is on disk before anybody is told, and what runs with it stops. */
  @Test
  void share_is_replaced_before_a_failed_transfer_check_is_reported() {
    ecdsaKey();
    ByteString ready = presign();
    SessionId running = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(running);
    SessionId cheated = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(cheated);
    shares.heldExclusion = new CompletableFuture<>();
    envelope(cheated, FakeCore.CHEAT);
    assertThat(awaitRefusal(running)).isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    assertThat(net.sent)
        .noneMatch(s -> s.message().getReport().getSessionId().equals(cheated.bytes()));
    assertThat(shares.exclusions.getFirst())
        .isEqualTo(
            new KeyShareStore.Exclusion(
                KEY,
                Set.of(2),
                cheated,
                shares.find(KEY).orElseThrow().session(),
                1,
                ByteString.copyFromUtf8("share without 2")));
    shares.heldExclusion.complete(true);
    SessionReport report = awaitReport(cheated);
    assertThat(report.getAborted().getCulpritsList()).containsExactly(2);
    assertThat(report.getAborted().getSealedShare().isEmpty()).isTrue();
    assertThat(watch.pool).contains("excluded");
    assertThat(awaitRefusal(give(presigned(ready))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
  }

  @Test
  void exclusion_that_cannot_be_stored_is_reported_with_the_advice_to_freeze_the_key() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    shares.heldExclusion = CompletableFuture.failedFuture(new IllegalStateException("disk full"));
    envelope(session, FakeCore.CHEAT);
    assertThat(awaitReport(session).getAborted().getAdvice()).isEqualTo(Advice.ADVICE_FREEZE_KEY);
    awaitEnded("ecdsa_sign aborted transfer_check_failed");
    assertThat(ledger.multiplications)
        .as("counts an unclean end at the next start")
        .containsKey(session);
  }

  /** The store marks a share that went back, and was not active then, when it becomes active. */
  @Test
  void a_session_that_waits_for_its_key_does_not_multiply_with_a_share_that_went_back() {
    shares.marks.add(KeyShareStore.ITSELF);
    ecdsaKey(KeyShare.State.PROVISIONAL, 1, "the request that made it");
    start();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitMove(Event.KEY_PROVISIONAL);
    KeyShare share = shares.find(KEY).orElseThrow();
    for (Member peer : List.of(bravo, charlie)) {
      driver().onReport(peer, share.session(), TestEvidence.completed(peer.partyId(), share));
    }
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    assertThat(core.started).hasValue(0);
  }

  /** The share is seen active on disk before it is known in memory what is held against it. */
  @Test
  void what_is_held_against_a_share_is_looked_at_once_more_when_the_claim_is_on_disk() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    shares.excluded.put(KEY, Set.of(KeyShareStore.ITSELF));
    ledger.multiplications.put(session, new ClaimLedger.Multiplication(KEY, 1, List.of(2)));
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    assertThat(core.started).hasValue(0);
    assertThat(ledger.multiplications).as("counts no incarnation").isEmpty();
  }

  /** bravo's message may be a guess, so the core sees it only if the claim cannot be forgotten. */
  @Test
  void the_core_hears_no_peer_before_others_remember_the_claim() throws Exception {
    ecdsaKey();
    net.witnesses = false;
    SessionId unheard = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(unheard);
    envelope(unheard, FakeCore.CHEAT);
    driver().onCancel(coordinator, unheard);
    awaitEnded("ecdsa_sign cancelled none");
    assertThat(shares.exclusions).isEmpty();

    Sent first = net.statements.take();
    assertThat(first.to()).containsExactly(bravo);
    assertThat(first.message().getClaimCount().getCount()).isEqualTo(1);
    SessionId heard = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(heard);
    envelope(heard, FakeCore.CHEAT);
    net.answer(bravo, first.message());
    Sent second = net.statements.take();
    assertThat(second.message().getClaimCount().getCount())
        .as("the answer to the first statement says nothing of the second session")
        .isEqualTo(2);
    assertThat(shares.exclusions).isEmpty();
    net.answer(charlie, second.message()); // who is asked nothing
    net.answer(bravo, second.message());
    awaitEnded("ecdsa_sign aborted transfer_check_failed");
    assertThat(shares.exclusions).hasSize(1);
  }

  /** charlie's messages were not heard because of bravo's: they fill no room for ever. */
  @Test
  void what_waits_unheard_leaves_room_when_the_session_ends_by_a_bug() throws Exception {
    ecdsaKey();
    net.witnesses = false;
    byte[] large = new byte[SessionLimits.MAX_ENVELOPE_BYTES];
    for (int i = 0; i <= SessionLimits.MAX_QUEUED_BYTES / large.length; i++) {
      SessionId session = give(ecdsaSigning(ecdsaIntent()));
      awaitEnvelope(session);
      envelope(session, FakeCore.BUG);
      driver().onEnvelope(charlie, session, large.clone(), System.nanoTime());
      Sent statement = net.statements.take();
      net.answer(bravo, statement.message());
      Installation.until("it has ended", () -> live() == 0);
    }
    assertThat(watch.dropped).doesNotContain("queue_overflow");
  }

  /** bravo is missing, and charlie, whose message lies here unheard, is not. */
  @Test
  void whoever_keeps_back_that_it_remembers_the_claim_is_named() throws Exception {
    ecdsaKey();
    net.witnesses = false;
    SessionId session = give(ecdsaSigning(ecdsaIntent()).addSigningSet(3));
    awaitEnvelope(session);
    for (Member peer : List.of(bravo, charlie)) {
      driver().onEnvelope(peer, session, ROUND_1.clone(), System.nanoTime());
    }
    for (int statement = 0; statement < 2; statement++) {
      Sent sent = net.statements.take();
      if (sent.to().contains(charlie)) {
        net.answer(charlie, sent.message());
      }
    }
    // The next statement that charlie alone is asked for has been answered after the first one.
    SessionId later = give(ecdsaSigning(ecdsaIntent()).addSigningSet(3));
    Sent next = net.statements.take();
    assertThat(next.to()).containsExactly(charlie);
    awaitEnvelope(later);
    driver().onCancel(coordinator, session);
    assertThat(awaitReport(session).getTimedOut().getMissingList()).containsExactly(2);
  }

  /** A session that multiplies is on disk from its claim until it has ended. */
  @Test
  void a_session_that_multiplies_is_open_on_disk_from_its_claim_to_its_end() {
    ecdsaKey();
    SessionId signing = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(signing);
    SessionId presigning = give(presigning());
    awaitEnvelope(presigning);
    assertThat(ledger.multiplications)
        .containsOnlyKeys(signing, presigning)
        .containsValue(new ClaimLedger.Multiplication(KEY, 1, List.of(2)));
    // An order that comes again changes nothing.
    bravoPlays(signing, 3);
    Installation.until("it is closed", () -> !ledger.multiplications.containsKey(signing));
    assertThat(ledger.multiplications).containsOnlyKeys(presigning);
    driver().close();
    assertThat(ledger.multiplications).as("a clean stop").isEmpty();
  }

  @Test
  void a_session_that_multiplies_and_ends_by_a_bug_counts_like_a_kill() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    envelope(session, FakeCore.BUG);
    awaitEnded("ecdsa_sign aborted internal");
    driver().close();
    assertThat(ledger.multiplications).containsOnlyKeys(session);
  }

  @Test
  void a_session_that_multiplies_and_that_the_core_ends_by_its_own_error_counts_like_a_kill() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    envelope(session, FakeCore.BROKEN);
    awaitEnded("ecdsa_sign aborted internal");
    driver().close();
    assertThat(ledger.multiplications).containsOnlyKeys(session);
  }

  @Test
  void a_session_that_ends_by_a_bug_before_it_heard_a_peer_counts_for_nothing() {
    ecdsaKey();
    start(
        new ProtocolCore() {
          @Override
          public Run start(SessionConfig config, ByteString share) {
            throw new IllegalStateException("as told");
          }

          @Override
          public ByteString signStatement(ByteString statement) {
            return ByteString.EMPTY;
          }
        });
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    envelope(session, FakeCore.CHEAT);
    awaitEnded("ecdsa_sign aborted internal");
    driver().close();
    assertThat(ledger.multiplications).isEmpty();
  }

  @Test
  void a_session_whose_claim_comes_after_its_end_is_not_left_open() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(presigning());
    Installation.until("a claim", () -> !ledger.waiting.isEmpty());
    driver().onCancel(coordinator, session);
    awaitEnded("ecdsa_presign cancelled none");
    ledger.multiplications.put(session, new ClaimLedger.Multiplication(KEY, 1, List.of(2)));
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    Installation.until("it is closed", () -> ledger.multiplications.isEmpty());
  }

  @Test
  void a_replayed_order_does_not_close_what_an_earlier_session_left_open() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(presigning());
    Installation.until("a claim", () -> !ledger.waiting.isEmpty());
    ledger.multiplications.put(session, new ClaimLedger.Multiplication(KEY, 1, List.of(2)));
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.SESSION_REPLAYED);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
    assertThat(ledger.multiplications).containsKey(session);
  }

  @Test
  void exclusion_being_stored_is_not_waited_for_at_the_end() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    shares.heldExclusion = new CompletableFuture<>();
    envelope(session, FakeCore.CHEAT);
    awaitMove(Event.EXCLUDE);
    driver().close();
    assertThat(watch.ended).containsExactly("ecdsa_sign stopped none");
    assertThat(ledger.multiplications).as("nobody knows whether it is on disk").isNotEmpty();
  }

  /** Exclusion while the session only waits for its result. */
  @Test
  void culprit_of_the_last_round_is_excluded_too() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    bravoPlays(session, 2);
    awaitMove(Event.LAST_SENT);
    envelope(session, FakeCore.POISON);
    awaitEnded("ecdsa_sign aborted wrong_share");
    assertThat(shares.excluded(KEY)).containsExactly(2);
  }
}
