package io.coterie.coordinator.custody.request;

import io.coterie.platform.error.CustodyException;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;

/** Early refusal of bad intents; the signers check again and trust nothing of this. */
@FunctionalInterface
public interface IntentCheck {
  /**
   * Verifies an intent against the configured requesters.
   *
   * @throws CustodyException saying what is wrong
   */
  VerifiedIntent check(SignedIntent intent);
}
