package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.Set;

/**
 * Makes the first shares of a key.
 *
 * @param self id of this party
 */
record KeyGeneration(KeyShareStore shares, int self) implements SessionOperation {
  @Override
  public Beginning begin(Session session) throws RefusedException {
    if (shares
        .find(session.plan().key())
        .filter(share -> share.state() == KeyShare.State.ACTIVE)
        .isPresent()) {
      throw new RefusedException(RefusalReason.REFUSAL_REASON_KEY_EXISTS, "the key exists already");
    }
    return new Beginning.Claim(ByteString.EMPTY, null);
  }

  @Override
  public Ending complete(Session session, Done done) {
    return new Ending.Store(share(session, done, session.plan().epoch(), self), false);
  }

  /** A key generation that was aborted has made no key that somebody could be excluded from. */
  @Override
  public Set<Integer> exclusions(Abort abort) {
    return Set.of();
  }

  /** The share that a run has made, once it is known to be the ordered one. */
  static KeyShare share(Session session, Done done, int epoch, int self) {
    SessionPlan plan = session.plan();
    if (done.getKeyPublic().getEpoch() != epoch) {
      throw new IllegalStateException("the core made a share of another epoch than ordered");
    }
    if (done.getSealedShare().isEmpty() == plan.holders().contains(self)) {
      throw new IllegalStateException("the core made a share for another party than ordered");
    }
    return new KeyShare(
        plan.key(),
        epoch,
        plan.protocol().scheme(),
        KeyShare.State.PROVISIONAL,
        plan.holders(),
        plan.partyIds(),
        done.getKeyPublic(),
        done.getSealedShare(),
        plan.id(),
        session.coordinator.name(),
        plan.asked().requester(),
        plan.asked().requestId(),
        plan.asked().intentDigest(),
        null);
  }
}
