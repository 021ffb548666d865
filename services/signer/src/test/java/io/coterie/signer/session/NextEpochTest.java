package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.KeyShareStore;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** Refresh and reshare: from the shares of one epoch to those of the next. */
abstract class NextEpochTest extends SessionFixture {
  @Test
  void culprit_of_a_refresh_is_reported_and_not_excluded_from_the_active_key() {
    ecdsaKey();
    SessionId session = give(refresh(RequestId.next()));
    awaitEnvelope(session);
    envelope(session, FakeCore.CHEAT);
    assertThat(awaitReport(session).getAborted().getCulpritsList()).containsExactly(2);
    assertThat(shares.exclusions).isEmpty();
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent())));
  }

  /**
   * Shares made before bravo has told that the store went back would be held to be of that time.
   */
  @Test
  void new_shares_are_not_made_before_others_have_told_what_they_remember() throws Exception {
    ecdsaKey();
    net.witnesses = false;
    SessionId unheard = give(refresh(RequestId.next()));
    awaitEnvelope(unheard);
    envelope(unheard, FakeCore.CHEAT);
    driver().onCancel(coordinator, unheard);
    awaitEnded("ecdsa_refresh cancelled none");
    List<Sent> statements = List.of(net.statements.take(), net.statements.take());
    assertThat(statements).flatExtracting(Sent::to).containsExactlyInAnyOrder(bravo, charlie);
    SessionId session = give(refresh(RequestId.next()));
    awaitEnvelope(session);
    peersPlayRefresh(session);
    statements.forEach(sent -> net.answer(sent.to().iterator().next(), sent.message()));
    // Those say nothing of the second session, which is a claim of its own.
    for (int peer = 0; peer < 2; peer++) {
      Sent next = net.statements.take();
      net.answer(next.to().iterator().next(), next.message());
    }
    assertThat(awaitReport(session).getCompleted().getKeyPublic().getEpoch()).isEqualTo(2);
  }

  @Test
  void a_run_that_is_over_here_still_hears_what_others_show() {
    ecdsaKey();
    SessionId session = refreshed(RequestId.next());
    int open = core.open.get();
    envelope(session, "noise".getBytes(StandardCharsets.UTF_8));
    envelope(session, FakeCore.CHEAT);
    java.util.function.Predicate<PartyMessage> found =
        m ->
            m.getReport().getSessionId().equals(session.bytes())
                && m.getReport().getAborted().getCulpritsList().equals(List.of(2));
    awaitSent("what was found is reported as well", found);
    Installation.until("it hears nothing more", () -> core.open.get() == open - 1);
    envelope(session, FakeCore.CHEAT);
    assertThat(net.sent.stream().filter(s -> found.test(s.message()))).hasSize(1);
    assertThat(shares.exclusions).isEmpty();
  }

  @Test
  void a_run_that_is_over_here_is_closed_at_its_deadline() {
    ecdsaKey();
    int open = core.open.get();
    peersPlayRefresh(give(refresh(RequestId.next())));
    awaitEnded("ecdsa_refresh completed none");
    time.pass(Duration.ofSeconds(20));
    assertThat(core.open.get()).as("open before the deadline").isGreaterThan(open);
    Installation.until(
        "it is closed",
        () -> {
          time.pass(Duration.ofSeconds(30));
          return core.open.get() == open;
        });
  }

  /** The runs of one key give way to each other before they cost another key its only one. */
  @Test
  void when_too_many_runs_are_listened_to_the_oldest_of_the_busiest_key_gives_way() {
    String quiet = "keys/quiet";
    SessionId first = aborted(keygen(RequestId.next()).setKey(quiet), quiet);
    List<SessionId> busy = new ArrayList<>();
    for (int run = 0; run < 64; run++) {
      busy.add(aborted(keygen(RequestId.next()), KEY));
    }
    Installation.until("one was closed", () -> core.open.get() == 64);
    for (SessionId heard : List.of(first, busy.get(1), busy.getLast())) {
      awaitFound(heard);
    }
    int found = net.sent.size();
    envelope(busy.getFirst(), FakeCore.CHEAT);
    awaitFound(busy.get(2)); // looked at after it
    assertThat(net.sent).hasSize(found + 1);
  }

  @Test
  void refresh_replaces_the_share_once_all_parties_have_theirs() {
    ecdsaKey();
    ByteString ready = presign();
    SessionId session = refreshed(RequestId.next());
    SessionConfig config = List.copyOf(core.configs).getLast();
    assertThat(config.getEpoch()).isEqualTo(1);
    assertThat(epoch()).as("the old one is used until then").isEqualTo(1);
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent())));
    peersHaveStored(session);
    Installation.until("the new one is used", () -> epoch() == 2);
    Installation.until("presignatures are worthless", () -> watch.pool.contains("refreshed"));
    assertThat(shares.pending(KEY)).isEmpty();
    assertThat(awaitRefusal(give(ecdsaSigning(ecdsaIntent()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    assertThat(awaitRefusal(give(presigned(ready).setEpoch(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent()).setEpoch(2)));
  }

  @Test
  void session_whose_share_is_replaced_while_it_is_claimed_does_not_start() {
    ecdsaKey();
    SessionId refresh = refreshed(RequestId.next());
    int started = core.started.get();
    ledger.held = true;
    SessionId signing = give(ecdsaSigning(ecdsaIntent()));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    peersHaveStored(refresh);
    Installation.until("the new one is used", () -> epoch() == 2);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    assertThat(awaitRefusal(signing)).isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    assertThat(core.started).hasValue(started);
  }

  @Test
  void signing_in_the_next_epoch_waits_for_it() {
    ecdsaKey();
    SessionId session = refreshed(RequestId.next());
    SessionId signing = give(ecdsaSigning(ecdsaIntent()).setEpoch(2));
    awaitMove(Event.KEY_PROVISIONAL);
    peersHaveStored(session);
    awaitEnvelope(signing);
    assertThat(List.copyOf(core.configs).getLast().getEpoch()).isEqualTo(2);
  }

  @Test
  void refresh_that_is_not_decided_is_not_replaced_by_another() {
    ecdsaKey();
    String request = RequestId.next();
    SessionId first = refreshed(request);
    net.sent.clear();
    assertThat(awaitRefusal(give(refresh(RequestId.next()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    // A party without it is asked to say so.
    Sent asked = awaitSent("it asks", m -> m.getReport().hasCompleted());
    assertThat(asked.to()).containsExactly(bravo, charlie);
    assertThat(asked.message().getReport().getSessionId()).isEqualTo(first.bytes());
    assertThat(epoch()).isEqualTo(1);
    driver().onReport(charlie, first, declined());
    Installation.until("it is abandoned", () -> shares.pending(KEY).isEmpty());
    SessionId second = refreshed(RequestId.next());
    peersHaveStored(second);
    Installation.until("the second is used", () -> epoch() == 2);
  }

  /** Also when there is no time left: nothing is started for it. */
  @Test
  void stored_refresh_is_told_to_whoever_asks_for_the_same_request() {
    ecdsaKey();
    String request = RequestId.next();
    Order.Builder order = refresh(request);
    SessionId first = give(order);
    peersPlayRefresh(first);
    awaitReport(first);
    awaitEnded("ecdsa_refresh completed none");
    for (boolean active : new boolean[] {false, true}) {
      if (active) {
        peersHaveStored(first);
        Installation.until("it is used", () -> epoch() == 2);
      }
      net.sent.clear();
      give(
          order
              .setCoordinatorNonce(
                  ByteString.copyFromUtf8(UUID.randomUUID().toString().substring(0, 32)))
              .setDeadline(Installation.in(Duration.ofSeconds(-10))));
      Sent told = awaitSent("the stored report", m -> m.getReport().hasCompleted());
      assertThat(told.message().getReport().getSessionId()).isEqualTo(first.bytes());
      assertThat(told.to()).contains(coordinator);
    }
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void party_without_a_share_says_so_and_stores_none_after() {
    ecdsaKey();
    SessionId session = give(refresh(RequestId.next()));
    awaitEnvelope(session);
    KeyPublic next = shares.find(KEY).orElseThrow().keyPublic().toBuilder().setEpoch(2).build();
    SessionReport completed = TestEvidence.completed(2, session, next, DIGEST);
    driver().onReport(bravo, session, completed);
    assertThat(awaitRefusal(give(presigning().setEpoch(9)))).isNotNull();
    assertThat(shares.declined).as("it still runs here").isEmpty();
    driver().onCancel(coordinator, session);
    awaitEnded("ecdsa_refresh cancelled none");
    driver().onReport(bravo, session, completed);
    Sent told = awaitSent("it says so", m -> m.getReport().hasDeclined());
    assertThat(told.to()).containsExactly(bravo);
    assertThat(told.message().getReport().getSessionId()).isEqualTo(session.bytes());
    assertThat(shares.declined).containsExactly(session);
  }

  @Test
  void party_declines_only_what_could_be_a_later_epoch_of_a_key() {
    ecdsaKey();
    KeyPublic keyPublic = shares.find(KEY).orElseThrow().keyPublic();
    SessionId unknown =
        new SessionId(ByteString.copyFrom(new byte[31]).concat(DIGEST.substring(31)));
    int number = 0;
    for (KeyPublic other :
        List.of(
            keyPublic,
            keyPublic.toBuilder().setKeyId("keys/other").build(),
            keyPublic.toBuilder().setEpoch(2).setKeyId("no name of a key").build())) {
      byte[] id = unknown.bytes().toByteArray();
      id[0] = (byte) ++number;
      SessionId session = new SessionId(ByteString.copyFrom(id));
      driver().onReport(bravo, session, TestEvidence.completed(2, session, other, DIGEST));
    }
    SessionId asked = refreshed(RequestId.next());
    peersHaveStored(asked);
    Installation.until("all were looked at", () -> epoch() == 2);
    assertThat(shares.declined).isEmpty();
  }

  @Test
  void only_a_party_of_the_key_that_has_not_stored_its_share_can_end_a_refresh() {
    ecdsaKey();
    SessionId session = refreshed(RequestId.next());
    SessionReport own = awaitReport(session);
    driver().onReport(coordinator, session, declined());
    driver().onReport(bravo, session, TestEvidence.completed(2, own));
    driver().onReport(bravo, session, declined());
    driver().onReport(charlie, session, TestEvidence.completed(3, own));
    Installation.until("it is used", () -> epoch() == 2);
  }

  @Test
  void refresh_leaves_nobody_out() {
    ecdsaKey();
    Order.Builder some = refresh(RequestId.next()).clearSigningSet();
    assertThat(awaitRefusal(give(some.addAllSigningSet(List.of(1, 2)))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    assertThat(awaitRefusal(give(refresh(RequestId.next()).setEpoch(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    shares.excluded.put(KEY, Set.of(2));
    awaitEnvelope(give(refresh(RequestId.next())));
    shares.excluded.put(KEY, Set.of(KeyShareStore.EVERY_PARTY));
    assertThat(awaitRefusal(give(refresh(RequestId.next()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_FROZEN);
  }

  @Test
  void newer_refresh_ends_a_run_of_an_older_one() {
    ecdsaKey();
    SessionId older = give(refresh(RequestId.next()));
    awaitEnvelope(older);
    SessionId newer = give(refresh(RequestId.next()));
    awaitEnvelope(newer);
    Installation.until(
        "the older ends", () -> watch.ended.contains("ecdsa_refresh cancelled superseded"));
    peersPlayRefresh(newer);
    awaitReport(newer);
  }
}
