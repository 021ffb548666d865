package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.signer.order.Hold;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An order that the operator holds is refused, whatever a requester has signed. */
class HeldTest extends SessionFixture {
  private void hold(String scope) {
    holds.set(
        List.of(new Hold(new Hold.Scope(scope), Hold.Cause.OPERATOR, "a theft", Instant.EPOCH)));
  }

  private void assertHeld(SessionId session, String scope) {
    Refused refused = awaitReport(session).getRefused();
    assertThat(refused.getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_ON_HOLD);
    assertThat(refused.getDetail()).isEqualTo(scope + " is on hold here: a theft");
  }

  @ParameterizedTest
  @ValueSource(strings = {"installation", KEY, "requesters/wallet"})
  void what_is_held_is_refused_and_claims_nothing(String scope) {
    key(KeyShare.State.ACTIVE);
    hold(scope);
    assertHeld(give(signing(1)), scope);
    assertThat(ledger.accepted).isEmpty();
    holds.set(List.of());
    give(signing(1));
    awaitEnded("bls_sign completed none");
  }

  @ParameterizedTest
  @ValueSource(strings = {"installation", KEY, "requesters/wallet"})
  void no_key_is_made_either(String scope) {
    hold(scope);
    assertHeld(give(keygen(RequestId.next())), scope);
  }

  @ParameterizedTest
  @ValueSource(strings = {"keys/other", "keys/mai", "requesters/wall"})
  void the_rest_goes_on(String scope) {
    key(KeyShare.State.ACTIVE);
    hold(scope);
    give(signing(1));
    awaitEnded("bls_sign completed none");
  }

  /** Its operator has to know that the disk is to be mended first. */
  @Test
  void a_freeze_is_a_hold_with_a_refusal_of_its_own() {
    key(KeyShare.State.ACTIVE);
    holds.set(List.of(new Hold(new Hold.Scope(KEY), Hold.Cause.FREEZE, "a full disk", null)));
    shares.excluded.put(KEY, Set.of(KeyShareStore.EVERY_PARTY));
    assertThat(awaitReport(give(signing(1))).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_FROZEN);
    assertThat(ledger.accepted).isEmpty();
  }

  @Test
  void presignatures_have_no_requester_and_are_held_with_their_key() {
    ecdsaKey();
    hold("requesters/wallet");
    presign();
    hold(KEY);
    assertHeld(give(presigning()), KEY);
  }

  @Test
  void a_session_that_runs_is_left_when_it_is_held() {
    SessionId session = give(keygen(RequestId.next()));
    awaitEnvelope(session);
    hold(KEY);
    assertHeld(session, KEY);
    awaitEnded("bls_keygen refused on_hold");
  }
}
