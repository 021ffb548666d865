package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import org.junit.jupiter.api.Test;

/** A requester whose requests never lapse: {@code lapse: never}. */
class StrictSigningTest extends SessionFixture {
  @Override
  PolicyGate policy() {
    return new PolicyGate() {
      @Override
      public VerifiedIntent admit(SignedIntent intent) throws RefusedException {
        return SessionFixture.admit(intent);
      }

      @Override
      public boolean isStrict(String requester) {
        return requester.equals("wallet");
      }
    };
  }

  @Test
  void a_party_that_has_contributed_believes_nobody_that_the_session_makes_no_signature() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId first = SessionId.ofOrder(given(intent));
    declines(bravo, first);
    awaitEnded("ecdsa_sign cancelled declined");
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    awaitEnvelope(give(with(charlie, ecdsaIntent())));
  }

  @Test
  void a_session_that_ended_without_a_contribution_gives_way_to_the_next() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId first = give(with(bravo, intent));
    awaitEnvelope(first);
    plays(bravo, first, 1, 1);
    declines(bravo, first);
    awaitEnded("ecdsa_sign cancelled declined");
    SessionId second = give(with(charlie, intent));
    awaitEnvelope(second);
    plays(charlie, second, 1, 3);
    awaitEnded("ecdsa_sign completed none");
  }
}
