package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.OrderCheck;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.ShareCheck;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** Makes presignatures for the pool. Nobody waits for them. */
final class Presigning implements Operation {
  private final SessionPlan plan;
  private final SessionPlan.Work.Presign work;
  private final String coordinator;
  private final KeyShareStore shares;
  private final PresignaturePool presignatures;
  private final Consumer<ByteString> discard;
  private final int self;
  private final LongSupplier nanos;

  /** The session that made the share which this one uses; this one itself until it began. */
  private SessionId share;

  /** Whether the pool keeps room for what this session makes. */
  private boolean reserved;

  /**
   * @param work of the plan
   * @param coordinator roster name of the one that gave the order
   * @param discard tells the core that a presignature is not kept
   * @param self id of this party
   * @param nanos a clock that only goes forward
   */
  Presigning(
      SessionPlan plan,
      SessionPlan.Work.Presign work,
      String coordinator,
      KeyShareStore shares,
      PresignaturePool presignatures,
      Consumer<ByteString> discard,
      int self,
      LongSupplier nanos) {
    this.plan = plan;
    this.share = plan.id();
    this.work = work;
    this.coordinator = coordinator;
    this.shares = shares;
    this.presignatures = presignatures;
    this.discard = discard;
    this.self = self;
    this.nanos = nanos;
  }

  @Override
  public Beginning begin() throws RefusedException {
    KeyShare held = shares.held(plan.key());
    ShareCheck.against(held, plan);
    if (held.state() != KeyShare.State.ACTIVE) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_NOT_READY, "the key is not active yet");
    }
    Signing.verifyingKey(held, plan);
    presignatures.working(coordinator, work.incarnation());
    switch (presignatures.reserve(plan.key(), work.count(), work.messageBlocks())) {
      case BUSY ->
          throw new RefusedException(
              RefusalReason.REFUSAL_REASON_OVERLOADED, "too many presignatures are being made");
      case FULL ->
          throw new RefusedException(
              RefusalReason.REFUSAL_REASON_POOL_FULL, "no more presignatures are kept");
      case NONE -> reserved = true;
    }
    share = held.session();
    return new Beginning.Claim(share, held.sealed(), null, null, null);
  }

  @Override
  public boolean background() {
    return true;
  }

  @Override
  public Ending complete(Done done) {
    List<Presignature> made = made(done, nanos.getAsLong());
    try {
      // Between order and end somebody may have been excluded, or the shares may be new ones.
      ShareCheck.notExcluded(shares.excluded(plan.key()), plan);
      KeyShare held = shares.held(plan.key());
      ShareCheck.against(held, plan);
      ShareCheck.unchanged(held, share);
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
  public void ended() {
    if (reserved) {
      reserved = false;
      presignatures.release(plan.key(), work.count(), work.messageBlocks());
    }
  }

  @Override
  public Set<Integer> exclusions(Abort abort) {
    return plan.protocol().isOfPairs()
        ? ExactSigning.exclusions(abort, plan, self)
        : Operation.ofUse(abort);
  }

  private List<Presignature> made(Done done, long nowNanos) {
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
              share,
              plan.epoch(),
              plan.partyIds(),
              plan.target(),
              work.messageBlocks(),
              coordinator,
              work.incarnation(),
              each.getSealed(),
              nowNanos));
    }
    if (made.size() != work.count()) {
      throw new IllegalStateException("the core made another number of presignatures than ordered");
    }
    return made;
  }
}
