package io.coterie.signer.session;

import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimWitnesses;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.order.Holds;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.session.SessionLifecycle.State;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells why this party takes no part. If the session's signature would be random, the party also
 * says, on disk first, that it never contributes, so that the request is free for another session.
 * It does not say so if no requester has asked for the session: anybody could fill the disk then.
 */
final class Refusals {
  private static final Logger log = LoggerFactory.getLogger(Refusals.class);

  private final ClaimLedger claims;
  private final ClaimWitnesses witnesses;
  private final RequestBindings bindings;
  private final SessionReports reports;
  private final SessionRecords records;
  private final DiskShares disk;
  private final Holds holds;

  Refusals(
      ClaimLedger claims,
      ClaimWitnesses witnesses,
      RequestBindings bindings,
      SessionReports reports,
      SessionRecords records,
      DiskShares disk,
      Holds holds) {
    this.claims = claims;
    this.witnesses = witnesses;
    this.bindings = bindings;
    this.reports = reports;
    this.records = records;
    this.disk = disk;
    this.holds = holds;
  }

  /** A session is refused in its present state. */
  void refuse(Session session, RefusedException refusal) {
    Order order = session.order;
    if (order == null) {
      reports.refused(session, refusal);
      return;
    }
    // Not of a run that is refused now, in the middle.
    boolean past =
        session.state == State.RECEIVED
            || refusal.reason() == RefusalReason.REFUSAL_REASON_SESSION_REPLAYED;
    SessionPlan plan = session.plan;
    SessionPlan.Request request = plan == null ? null : plan.request();
    String requestId = request == null ? null : request.requestId();
    String account = DiskShares.ofCoordinator(session.coordinator.name());
    CompletionStage<Boolean> decline =
        session.verified && disk.mayTake(account) && !witnesses.mayHaveForgotten(requestId)
            ? claims.decline(session.id, account, requestId)
            : CompletableFuture.completedFuture(false);
    decline.whenComplete(
        (declined, failure) ->
            session.run(
                () -> {
                  if (failure != null) {
                    log.error("a session could not be declined", failure);
                  } else if (Boolean.TRUE.equals(declined)
                      || bindings.answer(session.id).declined()) {
                    reports.declined(session, order);
                  } else if (past && maySendAgain(session)) {
                    reports.sendAgain(session.id, session);
                  }
                  reports.refused(session, refusal);
                }));
  }

  /**
   * Whether what this party has of a session of the past may leave. It may be stored and not sent
   * yet: it stays for an order of nobody who may give one now, under a hold whatever else speaks
   * against the order, and where the store may have forgotten that it was withheld.
   */
  private boolean maySendAgain(Session session) {
    SessionPlan plan = session.plan;
    if (plan == null || bindings.answer(session.id).sent().isEmpty()) {
      return false;
    }
    String requestId = plan.asked().requestId();
    try {
      return !holds.isHeld(plan)
          && !witnesses.mayHaveForgotten(requestId)
          && !claims.isFenced(requestId);
    } catch (RuntimeException e) {
      log.error("this party cannot look up whether it may send a contribution again", e);
      return false;
    }
  }

  /** Refuses an order that does not become a session. */
  void unseen(Session session, RefusalReason reason, String detail) {
    reports.refused(session, new RefusedException(reason, detail));
    records.refusedUnseen(session, reason, detail);
  }

  /**
   * A session has ended; others learn if this party has not contributed to it and never will. Its
   * claim may have the contribution, which another process must not send.
   */
  void ended(Session session) {
    Order order = session.order;
    if (order == null || !bindings.ended(session.id)) {
      return;
    }
    SessionPlan plan = session.plan();
    if (plan.work() instanceof SessionPlan.Work.SignPresigned) {
      claims
          .withhold(plan.asked().requester(), plan.asked().requestId(), session.id)
          .whenComplete(
              (_, failure) ->
                  session.run(
                      () -> {
                        if (failure == null) {
                          bindings.withheld(session.id);
                          reports.declined(session, order);
                        } else {
                          log.error("a contribution could not be withheld", failure);
                        }
                      }));
    } else {
      reports.declined(session, order);
    }
  }
}
