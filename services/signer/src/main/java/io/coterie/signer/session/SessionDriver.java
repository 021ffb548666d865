package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.operation.Operation;
import io.coterie.signer.operation.Operation.Ending;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.EarlyEnvelopes;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Runs a session whose claim is on disk, and ends every session: it carries out what the core says
 * and what the session's {@link Operation} decides. Called in the session's lane.
 */
final class SessionDriver {
  private static final Logger log = LoggerFactory.getLogger(SessionDriver.class);

  private static final ByteString NO_RESULT = ByteString.EMPTY;

  private final PartyNetwork network;
  private final SessionMeans.Running running;
  private final SessionMeans.Keys keys;
  private final SessionMeans.Claims claims;
  private final SessionMeans.Accounts accounts;
  private final SessionLimits limits;
  private final Function<Collection<Integer>, Duration> behind;
  private final InstantSource clock;
  private final WorkPool pool;

  /**
   * @param behind how far the slowest clock of some parties is behind this party's
   */
  SessionDriver(
      PartyNetwork network,
      SessionMeans.Running running,
      SessionMeans.Keys keys,
      SessionMeans.Claims claims,
      SessionMeans.Accounts accounts,
      SessionLimits limits,
      Function<Collection<Integer>, Duration> behind,
      InstantSource clock,
      WorkPool pool) {
    this.network = network;
    this.running = running;
    this.keys = keys;
    this.claims = claims;
    this.accounts = accounts;
    this.limits = limits;
    this.behind = behind;
    this.clock = clock;
    this.pool = pool;
  }

  // ---- the run ---------------------------------------------------------------------------------

  /**
   * The core has started.
   *
   * @param first its first step
   */
  void started(Session session, Step first) {
    long now = pool.nanos();
    session.roundEnteredNanos = now;
    awaitWitnesses(session);
    apply(session, first, null, now);
    accounts.telemetry().started(session.plan().protocol(), pool.nanos() - session.orderedNanos);
  }

  /**
   * A message of a peer may be a guess at this party's secret, and what follows tells whether it
   * was right. So none is looked at before others remember that this session was claimed. New
   * shares end what is held against a store that went back, so it learns that before it makes them.
   */
  private void awaitWitnesses(Session session) {
    List<Integer> peers = claims.sessions().peers(session.plan());
    if (session.plan().protocol().needsWitnesses() && !peers.isEmpty()) {
      session.unwitnessed = true;
      claims
          .witnesses()
          .await(
              session.id,
              peers,
              keys.shares().find(session.plan().key()).map(KeyShare::parties).orElse(List.of()),
              session.coordinator,
              () -> session.run(() -> witnessed(session)));
    }
  }

  private void witnessed(Session session) {
    session.unwitnessed = false;
    claims.witnesses().forget(session.id);
    running.inbox().release(session);
  }

  /** Gives the core an envelope of a peer. */
  void deliver(Session session, EarlyEnvelopes.Arrived arrived) {
    switch (session.state) {
      case RUNNING, COMBINING -> {
        ProtocolCore.Run run = session.run;
        if (run == null) {
          throw new IllegalStateException("a running session without a run");
        }
        session.heard = true;
        Step step = run.handle(arrived.sender(), arrived.envelope());
        Arrays.fill(arrived.envelope(), (byte) 0);
        apply(session, step, arrived, pool.nanos());
      }
      case RECEIVED, WAITING_FOR_KEY, CLAIMING -> running.inbox().keep(session, arrived);
      case STORING, COMPLETED, ABORTED -> deliverLate(session, arrived);
      case EXCLUDING, REPEATED, REFUSED, TIMED_OUT, CANCELLED, CONTRIBUTED, STOPPED ->
          Arrays.fill(arrived.envelope(), (byte) 0);
    }
  }

  /**
   * After the end: the core answers what shows a deviation, or asks for what this party saw, and
   * drops all else. Its findings are reported as well; the session's own end stays as it was.
   */
  private void deliverLate(Session session, EarlyEnvelopes.Arrived arrived) {
    SessionPlan plan = session.plan();
    ProtocolCore.Run run = session.run;
    if (run == null || !plan.protocol().operation().makesShare()) {
      Arrays.fill(arrived.envelope(), (byte) 0);
      return;
    }
    Step step = run.handle(arrived.sender(), arrived.envelope());
    Arrays.fill(arrived.envelope(), (byte) 0);
    for (StepEffect effect : StepEffect.afterEnd(step)) {
      switch (effect) {
        case StepEffect.Send(Outgoing message) -> emit(session, message);
        case StepEffect.Ignore(String reason) -> accounts.telemetry().dropped(reason);
        case StepEffect.Fail(Abort abort) -> brokenAfterEnd(session, abort);
        case StepEffect.LeaveRound _,
            StepEffect.EnterRound _,
            StepEffect.Miss _,
            StepEffect.LastSent _,
            StepEffect.Complete _ ->
            throw new IllegalStateException("a run that has ended goes on");
      }
    }
  }

  private void brokenAfterEnd(Session session, Abort abort) {
    accounts.records().brokenAfterEnd(session, abort);
    accounts.reports().aborted(session, abort.toBuilder().clearSealedShare().build());
    if (session.state.isFinal()) {
      running.listening().stop(session);
    }
  }

  /**
   * Does what the core says.
   *
   * @param cause the envelope that led to the step, if one did
   */
  private void apply(
      Session session, Step step, EarlyEnvelopes.@Nullable Arrived cause, long nowNanos) {
    List<StepEffect> effects =
        StepEffect.of(step, session.plan().protocol(), session.state, session.round, cause != null);
    for (StepEffect effect : effects) {
      switch (effect) {
        case StepEffect.Send(Outgoing message) -> {
          if (!emit(session, message)) {
            // It takes no part, so it sees no signature either: others may go on without it. This
            // party is the late one, and nobody else is missing.
            session.missing = List.of();
            deadline(session);
            return;
          }
        }
        case StepEffect.LeaveRound _ -> {
          if (cause != null) {
            String straggler =
                network.roster().byPartyId(cause.sender()).map(Member::name).orElse(null);
            accounts.records().roundLeft(session, cause, straggler, nowNanos);
          }
        }
        case StepEffect.EnterRound(int round) -> {
          session.round = round;
          session.roundEnteredNanos = nowNanos;
          session.sentNanos = nowNanos;
        }
        case StepEffect.Miss(List<Integer> missing) -> session.missing = missing;
        case StepEffect.LastSent(boolean rests) -> lastSent(session, rests, nowNanos);
        case StepEffect.Ignore(String reason) -> accounts.telemetry().dropped(reason);
        case StepEffect.Complete(Done done) -> done(session, done);
        case StepEffect.Fail(Abort abort) -> aborted(session, abort);
      }
    }
    session.rank();
  }

  /** Whether a message of the core has left. */
  private boolean emit(Session session, Outgoing outgoing) {
    boolean may = session.operation().maySend(outgoing, clock.instant());
    if (may) {
      accounts.reports().message(session, outgoing);
    } else {
      accounts.telemetry().dropped("too_late");
    }
    return may;
  }

  private void lastSent(Session session, boolean rests, long nowNanos) {
    session.untilLastSent.close();
    if (!rests) {
      accounts.records().contributed(session, nowNanos);
    }
    if (!rests || !running.leases().combine(session)) {
      end(session, Event.LAST_SENT_UNOBSERVED, SessionRecords.NO_CAUSE, NO_RESULT);
      return;
    }
    session.move(Event.LAST_SENT);
    session.lane.priority(WorkPool.Priority.LEISURE);
    awaitLapse(session);
  }

  /** Waits for the contributions of others as long as they may be made, not only for the result. */
  private void awaitLapse(Session session) {
    Duration left = session.operation().lapse(limits, clock.instant()).orElse(null);
    if (left != null) {
      session.after(pool, left, () -> awaitSlowest(session));
    }
  }

  /**
   * Each contributes up to the deadline by its own clock. Looked at as late as this, since a party
   * that has just started hears of the clocks meanwhile.
   */
  private void awaitSlowest(Session session) {
    Duration slowest = behind.apply(session.plan().partyIds());
    if (slowest.isPositive() && SessionLifecycle.allows(session.state, Event.DEADLINE)) {
      session.after(pool, slowest, () -> deadline(session));
    } else {
      deadline(session);
    }
  }

  private void done(Session session, Done done) {
    done.getCulpritsList()
        .forEach(
            culprit ->
                log.warn(
                    "party {} was left out: {}", culprit.getParty(), culprit.getCause().name()));
    switch (session.operation().complete(done)) {
      case Ending.Signed(ByteString signature) -> {
        accounts.reports().signed(session, signature);
        end(session, Event.SIGNED, SessionRecords.NO_CAUSE, signature);
      }
      case Ending.NonceOpened opened ->
          claims
              .nonces()
              .record(
                  session,
                  opened,
                  step -> apply(session, step, null, pool.nanos()),
                  why -> refuse(session, why));
      case Ending.Presigned(List<ByteString> ids) -> {
        accounts.reports().presigned(session, ids);
        end(session, Event.PRESIGNED, SessionRecords.NO_CAUSE, NO_RESULT);
      }
      case Ending.Refused(RefusedException reason) -> refuse(session, reason);
      case Ending.Store store -> store(session, store);
    }
  }

  private void store(Session session, Ending.Store made) {
    SessionPlan plan = session.plan();
    KeyShare share = made.share();
    session.move(Event.SHARE_MADE);
    AuditEvent completed =
        Audit.ended(
            plan,
            session.coordinator,
            "stored",
            SessionRecords.NO_CAUSE,
            share.keyPublic().getPublicKey());
    (made.replaces()
            ? keys.shares().storeNext(share, plan.usesShare(network.self().partyId()), completed)
            : keys.shares().storeProvisional(share, completed))
        .whenComplete(
            (stored, failure) -> session.run(() -> stored(session, made, stored, failure)));
  }

  private void stored(
      Session session, Ending.Store made, @Nullable Boolean stored, @Nullable Throwable failure) {
    if (Boolean.TRUE.equals(stored)) {
      // Even if the session was stopped meanwhile: the share is on disk, so it is announced.
      keys.activation().stored(made.share());
    }
    if (!SessionLifecycle.allows(session.state, Event.SHARE_STORED)) {
      return;
    }
    if (failure != null) {
      log.error("a share could not be stored", failure);
      refuse(session, RefusalReason.REFUSAL_REASON_INTERNAL, "the share could not be stored");
    } else if (!Boolean.TRUE.equals(stored)) {
      refuse(session, made.otherwise());
    } else if (made.replaces() && keys.activation().isGone(made.share())) {
      refuse(session, ForgottenShares.reason());
    } else {
      end(
          session,
          Event.SHARE_STORED,
          SessionRecords.NO_CAUSE,
          made.share().keyPublic().getPublicKey());
    }
  }

  // ---- the ends --------------------------------------------------------------------------------

  private void aborted(Session session, Abort abort) {
    SessionPlan plan = session.plan();
    accounts.records().aborted(plan, abort);
    Set<Integer> excluded = session.operation().exclusions(abort);
    if (excluded.isEmpty()) {
      endAborted(session, abort);
      return;
    }
    // The exclusion is on disk before the session reports it, so that peers can rely on it.
    session.move(Event.EXCLUDE);
    session.unexcluded = true;
    keys.exclusions()
        .exclude(plan, session.share, abort, excluded)
        .whenComplete((_, failure) -> session.run(() -> excluded(session, abort, failure)));
    leaveExcluded(plan.key());
  }

  /** Somebody is excluded from a key now. */
  private void leaveExcluded(String key) {
    keys.exclusions().dropPresignatures(key);
    running
        .sessions()
        .all()
        .forEach(
            other ->
                other.run(
                    () ->
                        keys.exclusions()
                            .against(other, key)
                            .ifPresent(why -> refuse(other, why))));
  }

  /** Somebody may be excluded from any key now. */
  void leaveExcluded() {
    Set<String> affected = new HashSet<>();
    for (Session session : running.sessions().all()) {
      SessionPlan plan = session.plan;
      if (plan != null) {
        affected.add(plan.key());
      }
    }
    affected.forEach(this::leaveExcluded);
  }

  private void excluded(Session session, Abort abort, @Nullable Throwable failure) {
    if (failure == null) {
      session.unexcluded = false;
      endAborted(session, abort);
      return;
    }
    log.error("an exclusion could not be stored: the key is frozen", failure);
    endAborted(session, abort.toBuilder().setAdvice(Advice.ADVICE_FREEZE_KEY).build());
  }

  private void endAborted(Session session, Abort abort) {
    if (!SessionLifecycle.allows(session.state, Event.ABORT)) {
      return; // stopped meanwhile
    }
    if (abort.getCause() == AbortCause.ABORT_CAUSE_INTERNAL) {
      session.failed = true;
    } else {
      claims.bindings().failed(session.id);
    }
    Abort shown = abort.toBuilder().clearSealedShare().build();
    accounts.reports().aborted(session, shown);
    session.abort = shown;
    end(session, Event.ABORT, SessionRecords.label(abort.getCause()), NO_RESULT);
  }

  /** The time of a session is over. */
  void deadline(Session session) {
    if (session.state == State.WAITING_FOR_KEY) {
      refuse(
          session,
          RefusalReason.REFUSAL_REASON_NOT_READY,
          "the key did not become active before the deadline");
    } else if (SessionLifecycle.allows(session.state, Event.DEADLINE)) {
      SessionPlan plan = session.plan();
      // A party that only waits for the result has contributed: the coordinator warns if it missed
      // one.
      log.atLevel(session.state == State.COMBINING ? Level.INFO : Level.WARN)
          .log(
              "{} timed out in round {}, missing parties {}",
              plan.protocol().label(),
              session.round,
              claims.missing(session));
      reportMissing(session);
      session.operation().timedOut(session.missing);
      end(session, Event.DEADLINE, SessionRecords.NO_CAUSE, NO_RESULT);
    }
  }

  /**
   * The coordinator does not want the result any more. It is told the parties that the session
   * waits for: so it learns which one kept everybody waiting.
   */
  void cancelled(Session session) {
    if (session.state == State.RUNNING) {
      reportMissing(session);
    }
    if (session.state == State.COMBINING) {
      return; // the coordinator does not decide whether this party sees what it contributed to
    }
    endIfAllowed(session, Event.CANCEL, SessionRecords.NO_CAUSE);
  }

  private void reportMissing(Session session) {
    accounts.reports().timedOut(session, claims.missing(session));
  }

  /** A party does not contribute to a session, and never will. */
  void declined(Session session, Member sender) {
    SessionPlan plan = session.plan;
    if (plan == null || !plan.protocol().signsAtRandom()) {
      if (!keys.activation().declined(sender, session.id)) {
        accounts.telemetry().dropped("unacceptable");
      }
      return;
    }
    if (plan.partyIds().contains(sender.partyId())) {
      // Before the request may go on elsewhere: nothing more of this session leaves.
      endIfAllowed(session, Event.CANCEL, "declined");
      claims.bindings().declined(session.id, sender.partyId());
    }
  }

  void refuse(Session session, RefusalReason reason, String detail) {
    refuse(session, new RefusedException(reason, detail));
  }

  void refuse(Session session, RefusedException refusal) {
    session.refusal = refusal.detail();
    accounts.refusals().refuse(session, refusal);
    end(session, Event.REFUSE, SessionRecords.label(refusal.reason()), NO_RESULT);
  }

  void endIfAllowed(Session session, Event event, String cause) {
    if (SessionLifecycle.allows(session.state, event)) {
      end(session, event, cause, NO_RESULT);
    }
  }

  /** Ends a session, gives back everything it holds, and tells everybody who waits for it. */
  void end(Session session, Event event, String cause, ByteString result) {
    State before = session.state;
    session.move(event);
    claims.sessions().multiplied(session);
    accounts.records().audited(session, event, cause, result);
    SessionPlan plan = session.plan;
    accounts.refusals().ended(session);
    if (plan != null) {
      if (plan.protocol().operation().makesShare()) {
        if (event != Event.SHARE_STORED) {
          keys.activation().forget(plan.id());
        }
      }
      if (before == State.WAITING_FOR_KEY) {
        keys.activation().stopWaiting(plan.key(), session);
      }
    }
    accounts.records().counted(session, event, cause);
    session.stopClock();
    if (session.run != null && !running.listening().keep(session, event)) {
      session.closeRun();
    }
    running.inbox().drop(session.id);
    if (session.unwitnessed) {
      witnessed(session);
    }
    if (session.operation != null) {
      session.operation.ended();
    }
    session.untilEnd.close();
    session.untilLastSent.close();
    session.untilClaimed.close();
    running.sessions().end(session);
  }

  /** A task of a session has failed. */
  void failed(Session session) {
    if (session.state.isFinal()) {
      running.listening().stop(session);
    } else {
      fail(session);
    }
  }

  /** A bug here, or a poisoned run: the session ends, the service goes on. */
  private void fail(Session session) {
    session.failed = true;
    if (SessionLifecycle.allows(session.state, Event.ABORT)) {
      accounts
          .reports()
          .aborted(
              session,
              Abort.newBuilder()
                  .setRound(session.round)
                  .setCause(AbortCause.ABORT_CAUSE_INTERNAL)
                  .setAdvice(Advice.ADVICE_RETRY)
                  .build());
      end(session, Event.ABORT, SessionRecords.label(AbortCause.ABORT_CAUSE_INTERNAL), NO_RESULT);
    } else {
      refuse(session, RefusalReason.REFUSAL_REASON_INTERNAL, "this party failed");
    }
  }
}
