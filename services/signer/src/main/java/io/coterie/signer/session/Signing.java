package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.Set;

/** Signs for a request, from a share or from a presignature. */
record Signing(KeyShareStore shares, PresignaturePool presignatures, RequestBindings bindings)
    implements SessionOperation {
  @Override
  public Beginning begin(Session session) throws RefusedException {
    KeyShare share = orderedShare(session.plan());
    OrderCheck.against(share, session.plan());
    return switch (share.state()) {
      case ACTIVE -> use(session, share);
      case PROVISIONAL -> new Beginning.AwaitKey();
      case GIVEN_UP ->
          throw new IllegalStateException("a share that was given up is not looked up");
    };
  }

  @Override
  public Ending complete(Session session, Done done) {
    bindings.signed(session.id, done);
    return new Ending.Signed(done.getSignature());
  }

  @Override
  public Set<Integer> exclusions(Abort abort) {
    return SessionOperation.ofUse(abort);
  }

  /** The refusal of a session whose request is bound to another one. */
  static RefusedException bound(Session session, ByteString order) {
    session.boundOrder = order;
    return new RefusedException(
        RefusalReason.REFUSAL_REASON_REQUEST_BOUND,
        "another session may still become the signature of the request");
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

  private Beginning use(Session session, KeyShare share) throws RefusedException {
    SessionPlan plan = session.plan();
    // Before anything is used up: a request that may not be signed costs no presignature.
    DecodedPayload payload = understood(plan, share);
    boolean atRandom = plan.protocol().signsAtRandom();
    if (atRandom) {
      switch (bindings.judge(plan)) {
        case RequestBindings.Verdict.Free free -> session.instead = free.instead();
        case RequestBindings.Verdict.Held held -> {
          if (session.gaveWay) {
            throw bound(session, ByteString.EMPTY);
          }
          return new Beginning.Await(held.session());
        }
        case RequestBindings.Verdict.Bound bound -> throw bound(session, bound.order());
      }
    }
    boolean presigned = plan.protocol().operation() == Protocol.Operation.SIGN_PRESIGNED;
    if (presigned) {
      session.presignature =
          presignatures
              .take(plan, session.coordinator.name())
              .orElseThrow(
                  () ->
                      new RefusedException(
                          RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN,
                          "this party has no such presignature for this key and signing set"));
    }
    if (atRandom && bindings.isForsaken(plan.id(), plan.partyIds())) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_NOT_READY, "another party takes no part");
    }
    session.share = share.session();
    // The use of a presignature was fixed when it was made: no share is opened for it.
    return new Beginning.Claim(presigned ? ByteString.EMPTY : share.sealed(), payload);
  }

  /** The share of the epoch that is ordered, if it is known to be coming, or else the held one. */
  private KeyShare orderedShare(SessionPlan plan) throws RefusedException {
    KeyShare held = shares.held(plan.key());
    return plan.epoch() == held.epoch() + 1
        ? shares.pending(plan.key()).filter(s -> s.epoch() == plan.epoch()).orElse(held)
        : held;
  }

  /** The payload that the session would sign, decoded by this party itself. */
  private static DecodedPayload understood(SessionPlan plan, KeyShare share)
      throws RefusedException {
    SigningIntent intent = plan.asked().toSign();
    if (intent == null) {
      throw new IllegalStateException("session " + plan.id() + " has nothing to sign");
    }
    try {
      return Payloads.decode(intent, verifyingKey(share, plan));
    } catch (IntentException e) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_BAD_PAYLOAD, "payload: " + e.problem().text());
    }
  }
}
