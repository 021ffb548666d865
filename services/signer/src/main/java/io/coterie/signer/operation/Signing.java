package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.ShareCheck;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Signs for a request from a share; made again, the signature would be the same. */
final class Signing implements Operation {
  private final String coordinator;
  private final KeyShareStore shares;
  private final @Nullable NeededApprovals needed;
  private final ApprovalGate approvals;
  private SessionPlan plan;

  /**
   * @param coordinator roster name of the one that gave the order
   * @param needed approvals without which this party does not sign; null if it needs none
   */
  Signing(
      SessionPlan plan,
      String coordinator,
      KeyShareStore shares,
      @Nullable NeededApprovals needed,
      ApprovalGate approvals) {
    this.plan = plan;
    this.coordinator = coordinator;
    this.shares = shares;
    this.needed = needed;
    this.approvals = approvals;
  }

  SessionPlan plan() {
    return plan;
  }

  @Override
  public Beginning begin() throws RefusedException {
    return judge() instanceof Beginning.Claim claim ? approved(claim) : new Beginning.AwaitKey();
  }

  /** All of the judgement but the approvals, which cost more than the rest. */
  Beginning judge() throws RefusedException {
    KeyShare share = orderedShare();
    ShareCheck.against(share, plan);
    return switch (share.state()) {
      case ACTIVE ->
          new Beginning.Claim(share.session(), share.sealed(), understood(share), null, null);
      case PROVISIONAL -> new Beginning.AwaitKey();
      case ABANDONED ->
          throw new IllegalStateException("a share that was abandoned is not looked up");
    };
  }

  /** The claim, once as many approve the request as this party needs. */
  Beginning.Claim approved(Beginning.Claim judged) throws RefusedException {
    return needed == null
        ? judged
        : judged.with(approvals.count(needed, plan.asked(), coordinator));
  }

  /** The core has the payload: many sessions only wait then, and keep none. */
  @Override
  public void started() {
    plan = plan.withoutPayload();
  }

  @Override
  public Ending complete(Done done) {
    return new Ending.Signed(done.getSignature());
  }

  @Override
  public Set<Integer> exclusions(Abort abort) {
    return Operation.ofUse(abort);
  }

  /** The intent of the requester. */
  SigningIntent intent() {
    SigningIntent intent = plan.asked().toSign();
    if (intent == null) {
      throw new IllegalStateException("session " + plan.id() + " has nothing to sign");
    }
    return intent;
  }

  /** The public key that signatures will verify under. */
  static ByteString verifyingKey(KeyShare share, SessionPlan plan) throws RefusedException {
    try {
      return SchemeKeys.of(share.scheme()).verifyingKey(share.keyPublic(), plan.target());
    } catch (IllegalArgumentException e) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
          "the key has no such descendant or output key: " + plan.target().pathText());
    }
  }

  /** The share of the epoch that is ordered, if it is known to be coming, or else the held one. */
  private KeyShare orderedShare() throws RefusedException {
    KeyShare held = shares.held(plan.key());
    return plan.epoch() == held.epoch() + 1
        ? shares.pending(plan.key()).filter(s -> s.epoch() == plan.epoch()).orElse(held)
        : held;
  }

  /** The payload that the session would sign, decoded by this party itself. */
  private DecodedPayload understood(KeyShare share) throws RefusedException {
    try {
      return Payloads.decode(intent(), verifyingKey(share, plan));
    } catch (IntentException e) {
      throw new RefusedException(RefusalReason.REFUSAL_REASON_BAD_PAYLOAD, "payload: " + e.text());
    }
  }
}
