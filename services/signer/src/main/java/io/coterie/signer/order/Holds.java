package io.coterie.signer.order;

import io.coterie.proto.party.v1.RefusalReason;
import java.util.List;
import java.util.Optional;

/** The holds that the operator of this party has set. */
@FunctionalInterface
public interface Holds {
  /** All of them, in the order of their scopes; in memory. */
  List<Hold> all();

  /**
   * Refuses a session that is held.
   *
   * @throws RefusedException with ON_HOLD, saying which hold it is and why
   */
  default void check(SessionPlan plan) throws RefusedException {
    SessionPlan.Request request = plan.request();
    Optional<Hold> hold = Hold.on(all(), plan.key(), request == null ? null : request.requester());
    if (hold.isPresent()) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_ON_HOLD,
          hold.get().scope().text() + " is on hold here: " + hold.get().reason());
    }
  }
}
