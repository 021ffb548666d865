package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Makes presignatures for the pool. Nobody waits for them.
 *
 * @param discard tells the core that a presignature is not kept
 */
record Presigning(
    KeyShareStore shares, PresignaturePool presignatures, Consumer<ByteString> discard)
    implements SessionOperation {
  @Override
  public Beginning begin(Session session) throws RefusedException {
    SessionPlan plan = session.plan();
    KeyShare share = shares.held(plan.key());
    OrderCheck.against(share, plan);
    if (share.state() != KeyShare.State.ACTIVE) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_NOT_READY, "the key is not active yet");
    }
    Signing.verifyingKey(share, plan);
    presignatures.working(session.coordinator.name(), plan.coordinatorLife());
    switch (presignatures.reserve(plan.key(), plan.presignatureCount())) {
      case BUSY ->
          throw new RefusedException(
              RefusalReason.REFUSAL_REASON_OVERLOADED, "too many presignatures are being made");
      case FULL ->
          throw new RefusedException(
              RefusalReason.REFUSAL_REASON_POOL_FULL, "no more presignatures are kept");
      case NONE ->
          session.untilEnd.add(() -> presignatures.release(plan.key(), plan.presignatureCount()));
    }
    // Counted by the pool from now on; never in the way of a signature that somebody waits for.
    session.untilLastSent.close();
    session.lane.priority(WorkPool.Priority.BACKGROUND);
    session.share = share.session();
    return new Beginning.Claim(share.sealed(), null);
  }

  @Override
  public Ending complete(Session session, Done done) {
    SessionPlan plan = session.plan();
    List<Presignature> made = made(session, done, System.nanoTime());
    try {
      // Between order and end somebody may have been excluded, or the shares may be new ones.
      OrderCheck.notExcluded(shares.excluded(plan.key()), plan);
      OrderCheck.against(shares.held(plan.key()), plan);
    } catch (RefusedException e) {
      made.forEach(each -> discard.accept(each.id()));
      return new Ending.Refused(e);
    }
    if (!presignatures.put(made)) {
      return new Ending.Refused(
          new RefusedException(
              RefusalReason.REFUSAL_REASON_INTERNAL, "a presignature is there already"));
    }
    return new Ending.Presigned(made.stream().map(Presignature::id).toList());
  }

  @Override
  public Set<Integer> exclusions(Abort abort) {
    return SessionOperation.ofUse(abort);
  }

  private static List<Presignature> made(Session session, Done done, long nowNanos) {
    SessionPlan plan = session.plan();
    List<Presignature> made = new ArrayList<>();
    for (var each : done.getPresignaturesList()) {
      if (each.getId().size() != OrderCheck.PRESIGNATURE_ID_BYTES) {
        throw new IllegalStateException("the core made a presignature without an id");
      }
      made.add(
          new Presignature(
              each.getId(),
              plan.id(),
              plan.key(),
              plan.epoch(),
              plan.partyIds(),
              plan.target(),
              session.coordinator.name(),
              plan.coordinatorLife(),
              each.getSealed(),
              nowNanos));
    }
    if (made.size() != plan.presignatureCount()) {
      throw new IllegalStateException("the core made another number of presignatures than ordered");
    }
    return made;
  }
}
