package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import java.util.Set;

/**
 * Makes the first shares of a key.
 *
 * @param coordinator roster name of the one that gave the order
 * @param self id of this party
 */
record KeyGeneration(SessionPlan plan, String coordinator, KeyShareStore shares, int self)
    implements Operation {
  @Override
  public Beginning begin() throws RefusedException {
    if (!shares.lasting(plan.key()).isEmpty()) {
      throw new RefusedException(RefusalReason.REFUSAL_REASON_KEY_EXISTS, "the key exists already");
    }
    return new Beginning.Claim(plan.id(), ByteString.EMPTY, null, null, null);
  }

  @Override
  public Ending complete(Done done) {
    return new Ending.Store(
        share(plan, coordinator, done, plan.epoch(), 0, self),
        false,
        new RefusedException(
            RefusalReason.REFUSAL_REASON_KEY_EXISTS, "the key became active by another request"));
  }

  /** A key generation that was aborted has made no key that somebody could be excluded from. */
  @Override
  public Set<Integer> exclusions(Abort abort) {
    return Set.of();
  }

  /**
   * The share that a run has made, once it is known to be the ordered one.
   *
   * @param reshareEpoch epoch that the last reshare made; 0 if there was none
   */
  static KeyShare share(
      SessionPlan plan, String coordinator, Done done, int epoch, int reshareEpoch, int self) {
    if (done.getKeyPublic().getEpoch() != epoch) {
      throw new IllegalStateException("the core made a share of another epoch than ordered");
    }
    if (done.getSealedShare().isEmpty() == plan.holders().contains(self)) {
      throw new IllegalStateException("the core made a share for another party than ordered");
    }
    return new KeyShare(
        plan.key(),
        epoch,
        reshareEpoch,
        plan.protocol().scheme(),
        KeyShare.State.PROVISIONAL,
        plan.holders(),
        plan.partyIds(),
        done.getKeyPublic(),
        done.getSealedShare(),
        new KeyShare.Origin(
            plan.id(),
            coordinator,
            plan.asked().requester(),
            plan.asked().requestId(),
            plan.asked().intentDigest()),
        null);
  }
}
