package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Makes a key, and waits for it to become active. */
abstract class KeyGenerationTest extends SessionFixture {
  @Test
  void signing_waits_for_the_key() {
    key(KeyShare.State.PROVISIONAL);
    start();
    SessionId session = give(signing(1, 2));
    awaitMove(Event.KEY_PROVISIONAL);
    KeyShare share = shares.find(KEY).orElseThrow();
    for (Member peer : List.of(bravo, charlie)) {
      driver().onReport(peer, share.session(), TestEvidence.completed(peer.partyId(), share));
    }
    awaitEnvelope(session);
    awaitEnded("bls_sign contributed none");
  }

  @Test
  void peer_with_another_public_key_does_not_activate_it() {
    key(KeyShare.State.PROVISIONAL);
    start();
    KeyShare share = shares.find(KEY).orElseThrow();
    for (Member peer : List.of(bravo, charlie)) {
      driver()
          .onReport(
              peer,
              share.session(),
              TestEvidence.completed(
                  peer.partyId(),
                  share.session(),
                  KeyPublic.newBuilder()
                      .setKeyId(KEY)
                      .setPublicKey(ByteString.copyFromUtf8("another"))
                      .build(),
                  share.origin().intentDigest()));
    }
    SessionId session = give(signing(1, 2).setDeadline(Installation.in(Duration.ofSeconds(20))));
    awaitMove(Event.KEY_PROVISIONAL);
    time.pass(Duration.ofSeconds(20));
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    assertThat(shares.find(KEY).orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
  }

  @Test
  void cancel_while_waiting_for_the_key() {
    key(KeyShare.State.PROVISIONAL);
    start();
    SessionId session = give(signing(1, 2));
    awaitMove(Event.KEY_PROVISIONAL);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_sign cancelled none");
  }

  @Test
  void key_is_stored_then_reported_then_active() {
    shares.held = true;
    SessionId session = give(keygen(RequestId.next()));
    awaitEnvelope(session);
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    assertThat(net.sent).noneMatch(s -> s.message().hasReport());
    shares.waiting.getFirst().complete(true);
    SessionReport report = awaitReport(session);
    assertThat(report.getCompleted().getKeyPublic().getKeyId()).isEqualTo(KEY);
    awaitEnded("bls_keygen completed none");
    assertThat(shares.find(KEY).orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
    driver().onReport(bravo, session, TestEvidence.completed(2, report));
    Installation.until(
        "it is active", () -> shares.find(KEY).orElseThrow().state() == KeyShare.State.ACTIVE);
    assertThat(watch.rounds)
        .contains("bls_keygen 1", "bls_keygen 2", "bls_keygen 3 for bravo", "bls_keygen 4");
  }

  @Test
  void report_of_a_faster_peer_is_kept() {
    shares.held = true;
    Order.Builder order = keygen(RequestId.next());
    SessionId session = give(order);
    awaitEnvelope(session);
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    // The fake core makes the same key at both.
    KeyPublic same =
        KeyPublic.newBuilder()
            .setPublicKey(ByteString.copyFromUtf8("pk " + session.bytes().hashCode()))
            .setThreshold(1)
            .setKeyId(KEY)
            .setEpoch(1)
            .build();
    driver()
        .onReport(
            bravo,
            session,
            TestEvidence.completed(
                2, session, same, IntentVerifier.digest(order.getSignedIntent().getPayload())));
    shares.waiting.getFirst().complete(true);
    Installation.until(
        "it is active",
        () -> shares.find(KEY).filter(s -> s.state() == KeyShare.State.ACTIVE).isPresent());
  }

  @Test
  void same_request_again_is_answered_from_the_store() {
    String requestId = RequestId.next();
    Order.Builder order = keygen(requestId);
    SessionId first = give(order);
    bravoPlays(first);
    awaitEnded("bls_keygen completed none");
    awaitReport(first);
    net.sent.clear();
    ByteString again =
        order.setCoordinatorNonce(ByteString.copyFrom(new byte[32])).build().toByteString();
    driver().onOrder(other, again, null);
    Sent report = awaitSent("the stored report", PartyMessage::hasReport);
    assertThat(report.message().getReport().getSessionId()).isEqualTo(first.bytes());
    assertThat(report.to()).containsExactlyInAnyOrder(bravo, other);
    awaitEnded("bls_keygen repeated none");
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void key_that_became_active_meanwhile_is_not_replaced() {
    shares.held = true;
    SessionId session = give(keygen(RequestId.next()));
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    shares.waiting.getFirst().complete(false);
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);
    awaitEnded("bls_keygen refused key_exists");
  }

  @Test
  void newer_order_for_a_name_ends_the_older_run() {
    SessionId older = give(keygen(RequestId.next()));
    awaitEnvelope(older);
    SessionId newer = give(keygen(RequestId.next()));
    awaitEnvelope(newer);
    Installation.until(
        "the older ends", () -> watch.ended.contains("bls_keygen cancelled superseded"));
    bravoPlays(newer);
    awaitEnded("bls_keygen completed none");
    assertThat(shares.find(KEY).orElseThrow().session()).isEqualTo(newer);
  }

  @Test
  void run_whose_share_is_being_stored_is_not_cancelled() {
    shares.held = true;
    SessionId session = give(keygen(RequestId.next()));
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    driver().onCancel(coordinator, session);
    shares.waiting.getFirst().complete(true);
    assertThat(awaitReport(session).hasCompleted()).isTrue();
    awaitEnded("bls_keygen completed none");
  }

  @Test
  void newer_run_goes_on_while_the_older_share_is_stored() {
    shares.held = true;
    SessionId older = give(keygen(RequestId.next()));
    bravoPlays(older);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    SessionId newer = give(keygen(RequestId.next()));
    awaitEnvelope(newer);
    shares.held = false;
    shares.waiting.getFirst().complete(true);
    SessionReport olderReport = awaitReport(older);
    // All reports of the older one are there now, but the newer run decides.
    driver().onReport(bravo, older, TestEvidence.completed(2, olderReport));
    bravoPlays(newer);
    awaitReport(newer);
    assertThat(shares.find(KEY).orElseThrow().session()).isEqualTo(newer);
    assertThat(shares.find(KEY).orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
  }

  @Test
  void oversized_report_is_dropped() {
    key(KeyShare.State.PROVISIONAL);
    start();
    driver()
        .onReport(
            bravo,
            new SessionId(ByteString.copyFrom(new byte[32])),
            SessionReport.newBuilder()
                .setCompleted(
                    io.coterie.proto.party.v1.Completed.newBuilder()
                        .setKeyPublic(
                            KeyPublic.newBuilder()
                                .setKeyId(KEY)
                                .setPublicKey(
                                    ByteString.copyFrom(
                                        new byte[SessionLimits.MAX_KEY_PUBLIC_BYTES]))))
                .build());
    assertThat(watch.dropped).containsExactly("unacceptable");
  }

  @Test
  void silent_peer_of_a_key_generation_is_named() {
    SessionId session =
        give(keygen(RequestId.next()).setDeadline(Installation.in(Duration.ofSeconds(20))));
    awaitEnvelope(session);
    time.pass(Duration.ofSeconds(20));
    SessionReport report = awaitReport(session);
    assertThat(report.getTimedOut().getMissingList()).containsExactly(2);
    assertThat(report.getTimedOut().getRound()).isEqualTo(1);
    awaitEnded("bls_keygen timed_out none");
  }

  @Test
  void key_generation_that_aborts_leaves_nothing() {
    SessionId session = give(keygen(RequestId.next()));
    awaitEnvelope(session);
    envelope(session, FakeCore.POISON);
    assertThat(awaitReport(session).hasAborted()).isTrue();
    awaitEnded("bls_keygen aborted wrong_share");
    assertThat(shares.find(KEY)).isEmpty();
  }

  /** Such records count for nobody on the disk, and a coordinator can cause them without end. */
  @Test
  void ends_of_sessions_that_were_never_claimed_are_recorded_no_faster_than_refusals() {
    Order.Builder request = keygen(RequestId.next());
    SessionId first = give(request);
    bravoPlays(first);
    awaitEnded("bls_keygen completed none");
    for (int i = 1; i <= RefusalRate.BURST + 100; i++) {
      int orders = i;
      give(request.clone().setEpoch(2).setCoordinatorNonce(nonce()));
      if (i % 4 == 0) { // fewer than there may be at once
        Installation.until("they were refused", () -> watch.ended.size() > orders);
      }
    }
    assertThat(watch.ended).contains("unknown refused wrong_epoch");
    int before = audit.size();
    for (int i = 1; i <= 30; i++) {
      int orders = i;
      give(request.setCoordinatorNonce(nonce()));
      Installation.until(
          "it was answered",
          () -> watch.ended.stream().filter("bls_keygen repeated none"::equals).count() == orders);
    }
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    for (int i = 1; i <= 3; i++) {
      int sessions = i;
      SessionId cancelled = give(signing(1, 2));
      Installation.until("it claims", () -> ledger.waiting.size() == sessions);
      driver().onCancel(coordinator, cancelled);
      ledger.waiting.getLast().complete(ClaimLedger.Outcome.ORDERED_TOO_OFTEN);
    }
    Installation.until(
        "they ended",
        () -> watch.ended.stream().filter("bls_sign cancelled none"::equals).count() == 3);
    assertThat(audit.size() - before).as("one a second").isLessThan(15);
  }

  /** Its share is written when it is over, long after the disk was looked at. */
  @Test
  void a_creation_sets_its_share_aside_beside_what_stays_free_until_it_is_over() {
    ledger.minFreeBytes = 64_000_000;
    ledger.diskBytes = ledger.minFreeBytes + DiskShares.shareBytes(2) * 7 / 4;
    start();
    SessionId session = give(keygen(RequestId.next()));
    awaitEnvelope(session);
    SessionId beyond = give(keygen(RequestId.next()));
    assertThat(awaitReport(beyond).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    assertThat(awaitReport(beyond).getRefused().getDetail()).contains("disk");
    driver().onCancel(coordinator, session);
    awaitEnded("bls_keygen cancelled none");
    Installation.until("it is free again", () -> !awaitEndOrReport(give(keygen(RequestId.next()))));
  }
}
