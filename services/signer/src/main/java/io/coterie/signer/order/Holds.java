package io.coterie.signer.order;

import io.coterie.proto.party.v1.RefusalReason;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The holds at this party: those that its operator has set, and its frozen keys. */
@FunctionalInterface
public interface Holds {
  /** All of them, in the order of their scopes; in memory. */
  List<Hold> all();

  /** Whether a session is held, for whatever cause. */
  default boolean isHeld(SessionPlan plan) {
    return Hold.on(all(), EnumSet.allOf(Hold.Cause.class), plan).isPresent();
  }

  /**
   * Refuses a session that the operator holds. A frozen key is refused with a reason of its own,
   * which says what to do about it.
   *
   * @throws RefusedException with ON_HOLD, saying which hold it is and why
   */
  default void check(SessionPlan plan) throws RefusedException {
    SessionPlan.Request request = plan.request();
    check(plan.key(), request == null ? null : request.requester());
  }

  /**
   * Refuses work that the operator holds.
   *
   * @param resource the key or group
   * @param requester null if nobody asked for it
   * @throws RefusedException as above
   */
  default void check(String resource, @Nullable String requester) throws RefusedException {
    Optional<Hold> hold = Hold.on(all(), EnumSet.of(Hold.Cause.OPERATOR), resource, requester);
    if (hold.isPresent()) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_ON_HOLD,
          hold.get().scope().text() + " is on hold here: " + hold.get().reason());
    }
  }
}
