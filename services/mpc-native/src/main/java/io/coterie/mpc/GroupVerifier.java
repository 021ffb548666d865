package io.coterie.mpc;

import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;

/**
 * Does the calls about groups of anonymous approvers that need no secret: a group is checked, an
 * application bound to its ticket, a member registered, approvals are counted, openings combined.
 */
@FunctionalInterface
public interface GroupVerifier {

  /**
   * A pure function of its argument, but for the randomness of the core. Everything in it that came
   * from others may be hostile.
   *
   * @return the reply that belongs to the call, or {@code GroupRefused} with the reason, and the
   *     party or the approval whose contribution it was
   * @throws MpcException with INVALID_ARGUMENT if there is no call, or SETUP_REFUSED if the
   *     caller's own configuration is not valid or the call needs a vault
   */
  GroupReply call(GroupCall call);
}
