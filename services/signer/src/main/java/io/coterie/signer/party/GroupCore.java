package io.coterie.signer.party;

import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.signer.order.RefusedException;

/** The calls of the core about groups of approvers, done as this party. */
@FunctionalInterface
public interface GroupCore {
  /**
   * Does a call. A record in the reply is stored before anything else that the reply has is sent.
   *
   * @param call everything in it that came from others may be hostile
   * @return the reply that belongs to the call, or {@code GroupRefused}
   * @throws RefusedException if this party's own part of the call is not valid
   */
  GroupReply call(GroupCall call) throws RefusedException;
}
