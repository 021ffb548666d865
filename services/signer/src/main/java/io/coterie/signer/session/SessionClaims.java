package io.coterie.signer.session;

import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.operation.Operation;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Claims sessions in the ledger, each with what is at stake if this process dies in it, and notes
 * there when that is over.
 */
final class SessionClaims {
  /** Tells people why a coordinator's order is refused that no requester answers for. */
  static final String NO_ROOM_FOR_COORDINATOR =
      "this coordinator has taken its share of the party's disk, which its operator can enlarge";

  private final ClaimLedger ledger;
  private final RequestBindings bindings;
  private final DiskShares disk;
  private final int self;

  /**
   * @param self id of this party
   */
  SessionClaims(ClaimLedger ledger, RequestBindings bindings, DiskShares disk, int self) {
    this.ledger = ledger;
    this.bindings = bindings;
    this.disk = disk;
    this.self = self;
  }

  /** Claims a session; completes once that is on disk. */
  CompletionStage<Outcome> claim(
      Session session,
      ClaimLedger.@Nullable Binding binding,
      @Nullable SessionId instead,
      Operation.Beginning.Claim begun) {
    SessionPlan plan = session.plan();
    SessionPlan.Request request = plan.request();
    String coordinator = DiskShares.ofCoordinator(session.coordinator.name());
    return request == null
        ? ledger.claimSession(plan.id(), coordinator, multiplication(plan))
        : ledger.claimOnce(
            new ClaimLedger.Claim(
                plan.id(),
                request.requester(),
                request.requestId(),
                request.intentDigest(),
                binding,
                instead,
                multiplication(plan),
                request.signed(),
                disk.mayTake(coordinator) ? coordinator : null),
            Audit.accepted(plan, session.coordinator, begun.payload(), begun.approvals()));
  }

  /** The refusal of a session that the ledger does not let run. */
  RefusedException refusal(SessionPlan plan, Outcome outcome) {
    return switch (outcome) {
      case CLAIMED -> throw new IllegalStateException("session " + plan.id() + " is claimed");
      case SESSION_REPLAYED ->
          new RefusedException(
              RefusalReason.REFUSAL_REASON_SESSION_REPLAYED, "the session id was used before");
      case NEVER ->
          new RefusedException(
              RefusalReason.REFUSAL_REASON_REQUEST_CANCELLED,
              "this party has said that it never signs for the request");
      case FENCED ->
          new RefusedException(
              RefusalReason.REFUSAL_REASON_FENCED,
              "the request id was drawn before this party's store went back to an earlier state");
      case REQUEST_ID_REUSED ->
          new RefusedException(
              RefusalReason.REFUSAL_REASON_REQUEST_ID_REUSED,
              "the request id was used with another intent");
      case ORDERED_TOO_OFTEN ->
          new RefusedException(RefusalReason.REFUSAL_REASON_OVERLOADED, NO_ROOM_FOR_COORDINATOR);
      case REQUEST_BOUND -> RefusedException.boundTo(bindings.boundOrder(plan));
    };
  }

  /** Closes a session that multiplies on disk once it has ended, unless a check may be lost. */
  void multiplied(Session session) {
    if (session.multiplying && session.state.isFinal()) {
      session.multiplying = false;
      if (!checkMayBeLost(session)) {
        ledger.multiplied(session.id);
      }
    }
  }

  /** Ids of the other parties of a session. */
  List<Integer> peers(SessionPlan plan) {
    return plan.partyIds().stream().filter(party -> party != self).toList();
  }

  /** The multiplication that is at stake if this process dies; null if the session has none. */
  private ClaimLedger.@Nullable Multiplication multiplication(SessionPlan plan) {
    List<Integer> peers = peers(plan);
    return plan.protocol().multiplies() && !peers.isEmpty()
        ? new ClaimLedger.Multiplication(plan.key(), plan.epoch(), peers)
        : null;
  }

  /**
   * Whether a peer's message may have failed a check of a multiplication without an exclusion on
   * disk. Such a session stays open there and counts like a kill at the next start. It is one that
   * ended while its exclusion was not written, or by an error of this party or its core after the
   * core had heard a peer: nobody knows whether a check had failed before. Before it hears a peer,
   * it has checked nothing.
   */
  private static boolean checkMayBeLost(Session session) {
    return session.unexcluded || (session.failed && session.heard);
  }
}
