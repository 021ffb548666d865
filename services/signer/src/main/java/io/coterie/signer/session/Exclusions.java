package io.coterie.signer.session;

import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.signer.operation.PresignaturePool;
import io.coterie.signer.order.Holds;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.ShareCheck;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;

/**
 * Keeps this party from using a key with parties that it has excluded from the key, and from what
 * its operator holds.
 */
final class Exclusions {
  private final KeyShareStore shares;
  private final Holds holds;
  private final PresignaturePool presignatures;

  Exclusions(KeyShareStore shares, Holds holds, PresignaturePool presignatures) {
    this.shares = shares;
    this.holds = holds;
    this.presignatures = presignatures;
  }

  /**
   * Refuses a session that is held, or with an excluded party.
   *
   * @throws RefusedException if it is, or one takes part
   */
  void check(SessionPlan plan) throws RefusedException {
    holds.check(plan);
    ShareCheck.notExcluded(shares.excluded(plan.key()), plan);
  }

  /**
   * Excludes parties because of an abort: at once in memory, on disk when it completes.
   *
   * @param share the session that made the share which the session used
   */
  CompletionStage<Boolean> exclude(
      SessionPlan plan, SessionId share, Abort abort, Set<Integer> parties) {
    return shares.exclude(
        new KeyShareStore.Exclusion(
            plan.key(), parties, plan.id(), share, plan.epoch(), abort.getSealedShare()));
  }

  /** Drops the presignatures of a key that are made with parties that are excluded now. */
  void dropPresignatures(String key) {
    Set<Integer> now = shares.excluded(key);
    presignatures.excluded(
        key, party -> now.contains(party) || now.contains(KeyShareStore.EVERY_PARTY));
  }

  /** The refusal of a session of a key that runs and is refused now, if it is. */
  Optional<RefusedException> against(Session session, String key) {
    SessionPlan plan = session.plan;
    if (plan == null
        || !plan.key().equals(key)
        || session.state == SessionLifecycle.State.COMBINING
        || !SessionLifecycle.allows(session.state, Event.REFUSE)) {
      return Optional.empty();
    }
    try {
      check(plan);
      return Optional.empty();
    } catch (RefusedException e) {
      return Optional.of(e);
    }
  }
}
