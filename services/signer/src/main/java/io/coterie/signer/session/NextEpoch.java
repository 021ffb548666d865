package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.Set;

/**
 * Refresh and reshare: from the shares of one epoch to those of the next. A party that deals needs
 * its own; one that only receives has none, or has lost it, or has missed what became of it.
 *
 * @param self id of this party
 */
record NextEpoch(KeyShareStore shares, int self) implements SessionOperation {
  @Override
  public Beginning begin(Session session) throws RefusedException {
    SessionPlan plan = session.plan();
    ByteString dealt = ByteString.EMPTY;
    if (plan.usesShare(self)) {
      KeyShare share = shares.held(plan.key());
      OrderCheck.against(share, plan);
      if (share.state() != KeyShare.State.ACTIVE) {
        throw new RefusedException(
            RefusalReason.REFUSAL_REASON_NOT_READY, "the key is not active yet");
      }
      dealt = share.sealed();
      session.share = share.session();
    } else {
      KeyShare held = shares.find(plan.key()).orElse(null);
      if (held != null && held.state() == KeyShare.State.ACTIVE && held.epoch() > plan.epoch()) {
        OrderCheck.against(held, plan);
      }
    }
    KeyShare earlier = shares.pending(plan.key()).orElse(null);
    if (earlier != null && earlier.epoch() > plan.epoch()) {
      return new Beginning.Undecided(earlier);
    }
    OrderCheck.notDeserted(shares.deserters(plan.key()), plan);
    return new Beginning.Claim(dealt, null);
  }

  @Override
  public Ending complete(Session session, Done done) {
    return new Ending.Store(
        KeyGeneration.share(session, done, session.plan().epoch() + 1, self), true);
  }

  /** A party's deviation while new shares are made says nothing of its active one. */
  @Override
  public Set<Integer> exclusions(Abort abort) {
    return SessionOperation.frozen(abort);
  }
}
