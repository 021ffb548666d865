package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.operation.Operation;
import io.coterie.signer.operation.Operation.Beginning;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.ShareCheck;
import java.time.Duration;
import java.time.InstantSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes a session from its order to the start of its run: it is admitted, judged against its key,
 * claimed, and handed to {@link SessionDriver}. Called in the session's lane.
 */
final class SessionOpening {
  private static final Logger log = LoggerFactory.getLogger(SessionOpening.class);

  private final Admission admission;
  private final SessionMeans.Running running;
  private final SessionMeans.Keys keys;
  private final SessionMeans.Claims claims;
  private final SessionMeans.Accounts accounts;
  private final ProtocolCore core;
  private final int self;
  private final InstantSource clock;
  private final WorkPool pool;
  private final SessionDriver driver;

  /**
   * @param self id of this party
   */
  SessionOpening(
      Admission admission,
      SessionMeans.Running running,
      SessionMeans.Keys keys,
      SessionMeans.Claims claims,
      SessionMeans.Accounts accounts,
      ProtocolCore core,
      int self,
      InstantSource clock,
      WorkPool pool,
      SessionDriver driver) {
    this.admission = admission;
    this.running = running;
    this.keys = keys;
    this.claims = claims;
    this.accounts = accounts;
    this.core = core;
    this.self = self;
    this.clock = clock;
    this.pool = pool;
    this.driver = driver;
  }

  /**
   * An order came for a session that is followed already. All that was sent comes before the
   * refusal: a coordinator that takes over needs it, and the refusal tells it that no more will
   * come.
   */
  void orderedAgain(Session known, Session session) {
    accounts.reports().sendAgain(known.id, session);
    if (!known.coordinator.equals(session.coordinator)) {
      accounts
          .refusals()
          .unseen(
              session,
              RefusalReason.REFUSAL_REASON_SESSION_REPLAYED,
              "the order of another coordinator");
    }
  }

  /** Judges an order, and follows it if this party takes part. */
  void begin(Session session, ByteString bytes) {
    if (session.state != State.RECEIVED) {
      return; // The process ends, and has stopped it.
    }
    running.inbox().expect(session.id);
    try {
      Admission.Made made = admission.admit(session, bytes).orElse(null);
      if (made != null) {
        if (made.forbidden()) {
          keys.activation().tellAgain(made.share(), session.coordinator);
        } else {
          keys.activation().announceAgain(made.share(), session.coordinator);
        }
        driver.end(session, Event.SHARE_EXISTS, SessionRecords.NO_CAUSE, ByteString.EMPTY);
        return;
      }
      SessionPlan plan = session.plan();
      Duration left = Duration.between(clock.instant(), plan.deadline());
      session.after(pool, left, () -> driver.deadline(session));
      goOn(session);
    } catch (RefusedException e) {
      driver.refuse(session, e);
    } catch (RuntimeException e) {
      log.error("an order could not be judged", e);
      driver.refuse(
          session, RefusalReason.REFUSAL_REASON_INTERNAL, "the order could not be judged");
    }
  }

  /** Carries out the judgement of an order against its key. */
  private void goOn(Session session) throws RefusedException {
    SessionPlan plan = session.plan();
    SessionPlan.Request request = plan.request();
    if (request != null && claims.witnesses().mayHaveForgotten(request.requestId())) {
      // Whether it was claimed here before is what the others are being asked.
      claims.witnesses().whenMet(() -> session.run(() -> beginAgain(session)));
      return;
    }
    keys.exclusions().check(plan);
    switch (session.operation().begin()) {
      case Beginning.Claim claim -> {
        if (session.operation().background()) {
          session.untilLastSent.close();
          session.lane.priority(WorkPool.Priority.BACKGROUND);
        }
        if (plan.protocol().operation().makesShare()) {
          supersede(session);
          keys.activation().expect(plan);
        }
        claim(session, claim);
      }
      case Beginning.AwaitKey _ -> {
        session.move(Event.KEY_PROVISIONAL);
        keys.activation()
            .awaitActive(
                plan.key(), plan.epoch(), session, () -> session.run(() -> keyActive(session)));
      }
      case Beginning.Await(SessionId older) -> await(session, older);
      case Beginning.Undecided(KeyShare earlier) -> {
        keys.activation().askAbout(earlier);
        throw new RefusedException(
            RefusalReason.REFUSAL_REASON_NOT_READY,
            "an earlier refresh or reshare of the key is not decided");
      }
    }
  }

  /** Ends an older session of the same request if that still may end, and goes on after it. */
  private void await(Session session, SessionId id) throws RefusedException {
    Session older = running.sessions().get(id);
    if (older == null) {
      throw RefusedException.boundTo(ByteString.EMPTY);
    }
    older.run(
        () -> {
          // The newer order counts, unless the older session has given its contribution by now.
          if (older.state == State.CLAIMING || older.state == State.RUNNING) {
            driver.endIfAllowed(older, Event.CANCEL, "superseded");
          }
          session.run(() -> beginAgain(session));
        });
  }

  private void beginAgain(Session session) {
    if (session.state != State.RECEIVED) {
      return;
    }
    // It has waited: for the start of this party, for its key, or for an older session.
    if (!clock.instant().isBefore(session.plan().deadline())) {
      driver.deadline(session);
      return;
    }
    try {
      goOn(session);
    } catch (RefusedException e) {
      driver.refuse(session, e);
    }
  }

  private void keyActive(Session session) {
    if (!SessionLifecycle.allows(session.state, Event.KEY_ACTIVE)) {
      return;
    }
    session.move(Event.KEY_ACTIVE);
    beginAgain(session);
  }

  /** A run whose share is being stored goes on; any older one ends. */
  private void supersede(Session session) throws RefusedException {
    running
        .leases()
        .makeShare(session, session.plan().key())
        .ifPresent(
            other -> other.run(() -> driver.endIfAllowed(other, Event.CANCEL, "superseded")));
  }

  private void claim(Session session, Beginning.Claim begun) throws RefusedException {
    session.move(Event.CHECKED);
    session.share = begun.share();
    if (begun.presignature() != null) {
      // The core starts before the claim, so that the claim stores the message that will be sent: a
      // process that starts again sends it again, and the session waits for one write only.
      open(session, begun);
    }
    Operation operation = session.operation();
    ClaimLedger.Binding binding = operation.binding(session.firstStep).orElse(null);
    session.claiming = true;
    claims
        .sessions()
        .claim(session, binding, operation.instead(), begun)
        .whenComplete(
            (outcome, failure) ->
                session.run(() -> claimed(session, begun, binding, outcome, failure)));
  }

  private void claimed(
      Session session,
      Beginning.Claim begun,
      ClaimLedger.@Nullable Binding binding,
      ClaimLedger.@Nullable Outcome outcome,
      @Nullable Throwable failure) {
    session.untilClaimed.close();
    session.claiming = false;
    if (outcome == ClaimLedger.Outcome.CLAIMED) {
      session.claimed = true;
      session.multiplying = session.plan().protocol().multiplies();
      claims.sessions().multiplied(session); // if it was cancelled or too late meanwhile
      if (binding != null) {
        session.operation().bound(binding);
      }
    }
    if (!SessionLifecycle.allows(session.state, Event.CLAIMED)) {
      if (session.claimed) {
        accounts.records().claimedAfterEnd(session);
      }
      accounts.refusals().ended(session); // cancelled or too late meanwhile
      return;
    }
    if (failure != null || outcome == null) {
      log.error("the claim of a session could not be stored", failure);
      driver.refuse(
          session, RefusalReason.REFUSAL_REASON_INTERNAL, "the claim could not be stored");
    } else if (outcome != ClaimLedger.Outcome.CLAIMED) {
      driver.refuse(session, claims.sessions().refusal(session.plan(), outcome));
    } else {
      start(session, begun);
    }
  }

  private void start(Session session, Beginning.Claim begun) {
    session.move(Event.CLAIMED);
    try {
      // Checked again: a share that went back may have become active since. Its activation is on
      // disk before this claim, so everything that is held against it is known here by now.
      keys.exclusions().check(session.plan());
      if (!session.plan().protocol().operation().makesShare()) {
        // A newer share may be in use by now. A session that makes one looks before it keeps it.
        KeyShare held = keys.shares().held(session.plan().key());
        ShareCheck.against(held, session.plan());
        ShareCheck.unchanged(held, begun.share());
      }
      if (session.run == null) {
        open(session, begun);
      }
    } catch (RefusedException e) {
      driver.refuse(session, e);
      return;
    }
    session.operation().started();
    Step first = session.firstStep;
    if (first == null) {
      throw new IllegalStateException("a run without a first step");
    }
    session.firstStep = null;
    session.plan = session.plan().withoutPayload();
    driver.started(session, first);
    running.inbox().open(session);
  }

  /** Starts the core. Its first messages leave later. */
  private void open(Session session, Beginning.Claim begun) throws RefusedException {
    ProtocolCore.Run run = core.start(begun.config(session.plan(), self), begun.sealedShare());
    session.run = run;
    session.firstStep = run.firstStep();
  }
}
