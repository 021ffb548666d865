package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.operation.Operations;
import io.coterie.signer.order.OrderCheck;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import java.time.InstantSource;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Judges an order before anything is done for it: its form, the requester's signature over its
 * intent, this party's policy, and whether all of them agree.
 */
final class Admission {
  private static final String NEARLY_FULL = "this party's disk is nearly full";

  private final PolicyGate gate;
  private final OrderCheck check;
  private final KeyShareStore shares;
  private final Leases leases;
  private final DiskShares disk;
  private final Operations operations;
  private final InstantSource clock;
  private final String installation;

  /**
   * @param installation that this party is of
   */
  Admission(
      PolicyGate gate,
      OrderCheck check,
      KeyShareStore shares,
      Leases leases,
      DiskShares disk,
      Operations operations,
      InstantSource clock,
      String installation) {
    this.gate = gate;
    this.check = check;
    this.shares = shares;
    this.leases = leases;
    this.disk = disk;
    this.operations = operations;
    this.clock = clock;
    this.installation = installation;
  }

  /**
   * A share that a request has made already, so that nothing is to run.
   *
   * @param forbidden whether the policy forbids the request now: its coordinator alone is told
   */
  record Made(KeyShare share, boolean forbidden) {}

  /**
   * Gives a session its plan and its operation, and a place among those of its requester.
   *
   * @return the share that this very request has made already, if there is one
   * @throws RefusedException if this party takes no part
   */
  Optional<Made> admit(Session session, ByteString bytes) throws RefusedException {
    Order order = OrderCheck.parse(bytes);
    // Before it is known whose the order is: not even that it is declined may be written now.
    RefusedException.unless(disk.isOpen(), RefusalReason.REFUSAL_REASON_NOT_READY, NEARLY_FULL);
    if (Protocol.of(order.getProtocol()).filter(Protocol::signsAtRandom).isPresent()) {
      session.order = order.toBuilder().clearSignedIntent().build();
    }
    VerifiedIntent intent;
    try {
      intent = order.hasSignedIntent() ? admitted(session, order.getSignedIntent()) : null;
    } catch (RefusedException forbidden) {
      Optional<KeyShare> made = madeAllTheSame(session, order, forbidden);
      if (made.isEmpty()) {
        throw forbidden;
      }
      return made.map(share -> new Made(share, true));
    }
    session.signed = intent != null;
    session.verified = intent != null || asksForPresignatures(order);
    SessionPlan plan = check.plan(session.id, order, intent, clock.instant());
    planned(session, plan);
    Optional<KeyShare> made = madeBefore(plan);
    if (made.isPresent()) {
      return made.map(share -> new Made(share, false));
    }
    check.inTime(order, intent, clock.instant());
    roomForKey(plan);
    roomForShare(session, plan);
    roomOnDisk(session, plan.request());
    countForRequester(session, plan.request());
    return Optional.empty();
  }

  private void planned(Session session, SessionPlan plan) {
    session.plan = plan;
    session.ofPairs = plan.protocol().isOfPairs();
    session.operation = operations.of(plan, session.order, session.coordinator);
  }

  /**
   * The share that a request has made which the policy forbids now: its requester, whose signature
   * was checked, hears by the coordinator how it ended. Nothing is done for it.
   */
  private Optional<KeyShare> madeAllTheSame(
      Session session, Order order, RefusedException forbidden) {
    VerifiedIntent intent = forbidden.intent().orElse(null);
    if (intent == null) {
      return Optional.empty();
    }
    try {
      SessionPlan plan = check.plan(session.id, order, intent, clock.instant());
      Optional<KeyShare> made = madeBefore(plan);
      if (made.isPresent()) {
        planned(session, plan);
      }
      return made;
    } catch (RefusedException _) {
      return Optional.empty(); // That it is forbidden is the reason to tell.
    }
  }

  /**
   * An intent that this party's policy admits; from its requester's signature on it is asked for.
   */
  private VerifiedIntent admitted(Session session, SignedIntent signed) throws RefusedException {
    try {
      VerifiedIntent intent = gate.admit(signed);
      session.asked = refusable(intent);
      return intent;
    } catch (RefusedException e) {
      session.asked = refusable(e.intent().orElse(null));
      // The policy looks at what an intent says after it has checked who signed it.
      session.verified = e.reason() == RefusalReason.REFUSAL_REASON_FORBIDDEN;
      session.signed = e.isSigned();
      throw e;
    }
  }

  private Receipts.@Nullable Refusable refusable(@Nullable VerifiedIntent intent) {
    return intent instanceof VerifiedIntent.Signing signing
        ? Receipts.Refusable.of(signing, installation)
        : null;
  }

  /** Whether it serves no requester. */
  private static boolean asksForPresignatures(Order order) {
    return Protocol.of(order.getProtocol())
        .filter(protocol -> protocol.operation() == Protocol.Operation.PRESIGN)
        .isPresent();
  }

  /** The share that this very request has made, whatever the time is. */
  private Optional<KeyShare> madeBefore(SessionPlan plan) throws RefusedException {
    if (!plan.protocol().operation().makesShare()) {
      return Optional.empty();
    }
    for (Optional<KeyShare> share : List.of(shares.pending(plan.key()), shares.find(plan.key()))) {
      if (share.isPresent() && madeForThis(plan.asked(), share.get())) {
        return share;
      }
    }
    return Optional.empty();
  }

  /** Whether a share is what the request asks for. */
  private static boolean madeForThis(SessionPlan.Request request, KeyShare share)
      throws RefusedException {
    KeyShare.Origin origin = share.origin();
    boolean sameRequest =
        origin.requester().equals(request.requester())
            && origin.requestId().equals(request.requestId());
    if (sameRequest && !origin.intentDigest().equals(request.intentDigest())) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_REQUEST_ID_REUSED,
          "the request id was used with another intent");
    }
    return sameRequest;
  }

  /** Shares of keys are never deleted by themselves, so who has many gets no further key. */
  private void roomForKey(SessionPlan plan) throws RefusedException {
    SessionPlan.Request request = plan.request();
    if (request != null && plan.protocol().operation().makesKey()) {
      RefusedException.unless(
          disk.mayCreateKey(request.requester()),
          RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED,
          "this requester's keys and records have taken its share of the party's disk, so it gets"
              + " no further key; its operator can enlarge the disk, or forget keys of no use");
    }
  }

  /** A share is written when its session is over, whatever was admitted meanwhile. */
  private void roomForShare(Session session, SessionPlan plan) throws RefusedException {
    if (plan.protocol().operation().makesShare()) {
      String requester = plan.asked().requester();
      long bytes = DiskShares.shareBytes(plan.parties().size());
      RefusedException.unless(
          disk.takeForShare(requester, bytes), RefusalReason.REFUSAL_REASON_NOT_READY, NEARLY_FULL);
      session.untilEnd.add(() -> disk.giveBackForShare(requester, bytes));
    }
  }

  private void roomOnDisk(Session session, SessionPlan.@Nullable Request request)
      throws RefusedException {
    String account =
        request == null
            ? DiskShares.ofCoordinator(session.coordinator.name())
            : request.requester();
    long bytes = DiskShares.sessionBytes(request == null ? 0 : request.bytes());
    if (!disk.take(account, bytes)) {
      // Saying on disk that the session is declined would take what is refused.
      session.order = null;
      throw request == null
          ? new RefusedException(
              RefusalReason.REFUSAL_REASON_OVERLOADED, SessionClaims.NO_ROOM_FOR_COORDINATOR)
          : new RefusedException(
              RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED,
              "this requester has taken its share of the party's disk, which its operator can"
                  + " enlarge");
    }
    session.untilClaimed.add(() -> disk.giveBack(account, bytes));
  }

  private void countForRequester(Session session, SessionPlan.@Nullable Request request)
      throws RefusedException {
    if (request != null && !leases.admit(session, request.requester())) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED,
          "too many sessions of this requester at once");
    }
  }
}
