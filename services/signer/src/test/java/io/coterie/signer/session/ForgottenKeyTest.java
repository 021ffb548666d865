package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Shares are destroyed, because their operator asks for it, while sessions use them. */
class ForgottenKeyTest extends SessionFixture {
  private static final ByteString OTHER = ByteString.copyFrom(new byte[16]);

  private void forget() {
    shares.forget(KEY, KeyFingerprint.of(shares.find(KEY).orElseThrow().keyPublic()));
    assertThat(shares.find(KEY)).isEmpty();
  }

  private void assertForgotten(SessionId session) {
    Refused refused = refused(session);
    assertThat(refused.getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_UNKNOWN_KEY);
    assertThat(refused.getDetail()).contains("had it forget its share");
  }

  /** Another share of the name and of the same epoch takes the place of the one that is there. */
  private void replace() {
    KeyShare held = shares.find(KEY).orElseThrow();
    KeyShare.Origin origin = held.origin();
    shares.put(
        new KeyShare(
            KEY,
            held.epoch(),
            held.scheme(),
            held.state(),
            held.parties(),
            held.members(),
            held.keyPublic(),
            ByteString.copyFromUtf8("another share"),
            new KeyShare.Origin(
                new SessionId(DIGEST.substring(1).concat(ByteString.copyFromUtf8("x"))),
                origin.coordinator(),
                origin.requester(),
                origin.requestId(),
                origin.intentDigest()),
            null));
  }

  private boolean hasSent(SessionId session) {
    return net.sent.stream()
        .map(Sent::message)
        .filter(PartyMessage::hasEnvelope)
        .anyMatch(message -> message.getEnvelope().getSessionId().equals(session.bytes()));
  }

  @Test
  void a_signing_ends_and_the_others_are_told_that_nothing_comes() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    forget();
    assertForgotten(session);
    awaitDeclined(session, bravo);
    awaitEnded("ecdsa_sign refused unknown_key");
  }

  @Test
  void a_refresh_ends_and_stores_nothing() {
    ecdsaKey();
    SessionId session = give(refresh(RequestId.next()));
    awaitEnvelope(session);
    forget();
    assertForgotten(session);
    awaitEnded("ecdsa_refresh refused unknown_key");
    peersPlayRefresh(session);
    assertThat(shares.find(KEY)).isEmpty();
  }

  /** Its operator was as fast as the disk. */
  @Test
  void a_refresh_whose_share_is_gone_at_once_does_not_end_well() {
    ecdsaKey();
    shares.destroying = true;
    SessionId session = give(refresh(RequestId.next()));
    peersPlayRefresh(session);
    assertForgotten(session);
    awaitEnded("ecdsa_refresh refused unknown_key");
  }

  @Test
  void a_session_that_makes_presignatures_ends_and_the_pool_is_empty() {
    ecdsaKey();
    presign();
    assertThat(watch.ready).isEqualTo(1);
    SessionId session = give(presigning());
    awaitEnvelope(session);
    forget();
    assertForgotten(session);
    awaitEnded("ecdsa_presign refused unknown_key");
    assertThat(watch.ready).isZero();
    assertThat(core.presignatures).isEmpty();
  }

  @Test
  void a_session_that_waits_for_the_share_ends() {
    ecdsaKey(KeyShare.State.PROVISIONAL, 1, "request");
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitMove(Event.KEY_PROVISIONAL);
    forget();
    assertForgotten(session);
  }

  @Test
  void a_session_that_is_being_claimed_never_begins() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    forget();
    assertForgotten(session);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitEnded("ecdsa_sign refused unknown_key");
    assertThat(hasSent(session)).isFalse();
  }

  @Test
  void what_uses_no_share_of_it_goes_on() {
    key(KeyShare.State.PROVISIONAL);
    SessionId another = give(keygen(RequestId.next()));
    awaitEnvelope(another);
    forget();
    bravoPlays(another);
    awaitEnded("bls_keygen completed none");
  }

  /** The share has given way meanwhile, as in a refresh. */
  @Test
  void a_session_of_another_name_goes_on() {
    ecdsaKey();
    SessionId signing = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(signing);
    replace();
    shares.forget("keys/other", KeyFingerprint.of(ECDSA_PUBLIC));
    bravoPlays(signing, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void a_session_that_uses_a_share_of_another_key_of_the_name_goes_on() {
    ecdsaKey();
    SessionId signing = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(signing);
    shares.forget(KEY, OTHER);
    bravoPlays(signing, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void a_session_that_waits_for_a_share_of_another_key_of_the_name_goes_on() {
    key(KeyShare.State.PROVISIONAL);
    start();
    SessionId signing = give(signing(1, 2));
    awaitMove(Event.KEY_PROVISIONAL);
    shares.forget(KEY, OTHER);
    KeyShare share = shares.find(KEY).orElseThrow();
    for (Member peer : List.of(bravo, charlie)) {
      driver().onReport(peer, share.session(), TestEvidence.completed(peer.partyId(), share));
    }
    awaitEnvelope(signing);
    awaitEnded("bls_sign contributed none");
  }

  /** The core keeps one presignature that it was to drop. */
  @Test
  void a_session_ends_even_if_the_pool_cannot_be_emptied() {
    ecdsaKey();
    presign();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    core.discardFails = true;
    assertThatThrownBy(this::forget).isInstanceOf(IllegalStateException.class);
    assertForgotten(session);
  }

  @Test
  void a_refresh_that_has_ended_listens_while_its_share_is_there() {
    ecdsaKey();
    SessionId session = refreshed(RequestId.next());
    shares.forget("keys/other", KeyFingerprint.of(ECDSA_PUBLIC));
    shares.forget(KEY, OTHER);
    awaitFound(session);
  }

  @Test
  void a_refresh_that_has_ended_does_not_listen_any_more() {
    ecdsaKey();
    SessionId session = refreshed(RequestId.next());
    assertThat(core.open).as("it listens").hasValue(1);
    forget();
    envelope(session, FakeCore.CHEAT);
    Installation.until("its run is closed", () -> core.open.get() == 0);
    assertThat(net.sent).noneMatch(sent -> sent.message().getReport().hasAborted());
  }

  /** The others have its contribution: it can only see what becomes of it. */
  @Test
  void a_session_that_has_sent_its_last_message_still_sees_the_signature() {
    ecdsaKey();
    SessionId session = SessionId.ofOrder(given(ecdsaIntent()));
    forget();
    plays(bravo, session, 3, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void a_presignature_of_another_share_of_the_name_and_epoch_is_unknown() {
    ecdsaKey();
    ByteString id = presign();
    replace();
    assertThat(awaitRefusal(give(presigned(id))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
  }

  @Test
  void no_presignature_is_kept_of_a_share_that_has_given_way() {
    ecdsaKey();
    SessionId session = give(presigning());
    awaitEnvelope(session);
    replace();
    bravoPlays(session, 2);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    awaitEnded("ecdsa_presign refused not_ready");
    assertThat(watch.pool).isEmpty();
    assertThat(core.presignatures).isEmpty();
  }

  @Test
  void no_session_begins_with_a_share_that_has_given_way() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    replace();
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    assertThat(hasSent(session)).isFalse();
  }
}
