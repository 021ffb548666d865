package io.coterie.signer.operation;

import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ShareTaken;
import io.coterie.proto.core.v1.TakeShare;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShareStore;
import java.util.Set;

/**
 * Takes a key over from its owner. The party keeps its share once it has made the owner's test
 * signature with every other party, so a key that all parties have stored signs with any two.
 *
 * @param coordinator roster name of the one that gave the order
 * @param self id of this party
 */
record KeyImport(
    SessionPlan plan,
    SessionPlan.Work.Import work,
    String coordinator,
    KeyShareStore shares,
    ShareImporter importer,
    int self)
    implements Operation {
  @Override
  public Beginning begin() throws RefusedException {
    if (!shares.lasting(plan.key()).isEmpty()) {
      throw new RefusedException(RefusalReason.REFUSAL_REASON_KEY_EXISTS, "the key exists already");
    }
    if (work.share().isEmpty()) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, "the order has no shares of the key");
    }
    ShareTaken taken =
        importer
            .take(
                TakeShare.newBuilder()
                    .setKeyId(plan.key())
                    .setParty(self)
                    .setShare(work.share())
                    .build())
            .orElseThrow(() -> other("the share is not made for this party and key"));
    KeyPublic made = taken.getKeyPublic();
    if (!made.getPublicKey().equals(work.publicKey())) {
      throw other("the share is of another key than the requester has signed");
    }
    if (made.getThreshold() != plan.threshold()
        || made.getEpoch() != plan.epoch()
        || !made.getVerificationSharesList().stream()
            .map(VerificationShare::getParty)
            .toList()
            .equals(plan.partyIds())) {
      throw other("the share is for other parties than the requester has signed");
    }
    return new Beginning.Claim(plan.id(), taken.getSealedShare(), null, null, null);
  }

  private static RefusedException other(String detail) {
    return new RefusedException(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, detail);
  }

  @Override
  public Ending complete(Done done) {
    return new Ending.Store(
        KeyGeneration.share(plan, coordinator, done, plan.epoch(), 0, self),
        false,
        new RefusedException(
            RefusalReason.REFUSAL_REASON_KEY_EXISTS, "the key became active by another request"));
  }

  /** There is no key yet that somebody could be excluded from. */
  @Override
  public Set<Integer> exclusions(Abort abort) {
    return Set.of();
  }
}
