package io.coterie.signer.order;

import io.coterie.platform.intent.IntentVerifier;

/**
 * The approvals without which no key of a rule signs for its requester.
 *
 * @param group whose members approve, {@code groups/{group}}
 * @param needed how many of them, 1 to 32
 */
public record NeededApprovals(String group, int needed) {

  /**
   * @throws IllegalArgumentException if no request could have them
   */
  public NeededApprovals {
    if (!IntentVerifier.isGroupName(group)) {
      throw new IllegalArgumentException(
          "approvals.group is not a name of 1 to 63 of [a-z0-9-], starting with a letter");
    }
    if (needed < 1 || needed > IntentVerifier.MAX_APPROVALS) {
      throw new IllegalArgumentException(
          "approvals.needed is not 1 to " + IntentVerifier.MAX_APPROVALS);
    }
  }
}
