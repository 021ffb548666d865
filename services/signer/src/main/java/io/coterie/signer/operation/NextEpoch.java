package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.ShareCheck;
import java.util.Set;

/**
 * Refresh and reshare: from the shares of one epoch to those of the next. A party that deals needs
 * its own; one that only receives has none, or has lost it, or has missed what became of it.
 *
 * @param coordinator roster name of the one that gave the order
 * @param self id of this party
 */
final class NextEpoch implements Operation {
  private final SessionPlan plan;
  private final String coordinator;
  private final KeyShareStore shares;
  private final int self;

  /** Epoch that the last reshare made: this one, or the last before the refresh. */
  private int reshareEpoch;

  NextEpoch(SessionPlan plan, String coordinator, KeyShareStore shares, int self) {
    this.plan = plan;
    this.coordinator = coordinator;
    this.shares = shares;
    this.self = self;
    this.reshareEpoch = plan.epoch() + 1;
  }

  @Override
  public Beginning begin() throws RefusedException {
    ByteString dealt = ByteString.EMPTY;
    SessionId dealtBy = plan.id();
    if (plan.usesShare(self)) {
      KeyShare share = shares.held(plan.key());
      ShareCheck.against(share, plan);
      if (share.state() != KeyShare.State.ACTIVE) {
        throw new RefusedException(
            RefusalReason.REFUSAL_REASON_NOT_READY, "the key is not active yet");
      }
      dealt = share.sealed();
      dealtBy = share.session();
      if (plan.work() instanceof SessionPlan.Work.Refresh) {
        reshareEpoch = share.reshareEpoch();
      }
    } else if (plan.work() instanceof SessionPlan.Work.Reshare reshare) {
      ShareCheck.sameKey(shares.lasting(plan.key()), reshare, plan.protocol().scheme());
      KeyShare held = shares.find(plan.key()).orElse(null);
      if (held != null && held.state() == KeyShare.State.ACTIVE && held.epoch() > plan.epoch()) {
        ShareCheck.against(held, plan);
      }
    }
    KeyShare earlier = shares.pending(plan.key()).orElse(null);
    if (earlier != null && earlier.epoch() > plan.epoch()) {
      return new Beginning.Undecided(earlier);
    }
    ShareCheck.notDecliners(shares.decliners(plan.key()), plan);
    return new Beginning.Claim(dealtBy, dealt, null, null, null);
  }

  @Override
  public Ending complete(Done done) {
    return new Ending.Store(
        KeyGeneration.share(plan, coordinator, done, plan.epoch() + 1, reshareEpoch, self),
        true,
        new RefusedException(
            RefusalReason.REFUSAL_REASON_NOT_READY,
            "another refresh or reshare of the key is not decided, or this one was abandoned"));
  }

  /** A party's deviation while new shares are made says nothing of its active one. */
  @Override
  public Set<Integer> exclusions(Abort abort) {
    return Operation.frozen(abort);
  }
}
