package io.coterie.signer.order;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import java.util.Optional;

/** This party's own decision about an intent; nobody else's counts. */
@FunctionalInterface
public interface PolicyGate {
  /**
   * Verifies the requester's signature and applies its limits. Does not judge expiry: that needs
   * the clock, and is the order's check.
   *
   * @throws RefusedException with the first reason found, and with the intent if it was verified
   */
  VerifiedIntent admit(SignedIntent intent) throws RefusedException;

  /**
   * Whether this party contributes to one session of a request alone, whatever it is told of that
   * session.
   *
   * @param requester whose intent was admitted
   */
  default boolean isStrict(String requester) {
    return false;
  }

  /**
   * The approvals without which this party signs nothing for a requester; empty if it needs none.
   *
   * @param requester whose intent was admitted
   */
  default Optional<NeededApprovals> approvals(String requester) {
    return Optional.empty();
  }
}
