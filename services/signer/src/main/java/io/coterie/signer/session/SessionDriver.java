package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.Member;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.session.Operation.Beginning;
import io.coterie.signer.session.Operation.Ending;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ScheduledFuture;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Runs this party's sessions: order in, envelopes in and out, report out. Messages arrive on the
 * channel's threads and are only put into a lane there; everything else happens in the lane of the
 * session, and no lock is held across a call of the core, the store or the network.
 */
public final class SessionDriver implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SessionDriver.class);

  private static final Duration TICK = Duration.ofMillis(500);

  /** How often the ledger is asked to forget what is of no use any more. */
  private static final Duration FORGET = Duration.ofMinutes(1);

  /** How long a binding is kept after its intent has expired: clocks are set. */
  private static final Duration KEEP = Duration.ofHours(1);

  /** How long {@link #close} waits for tasks that are being run. */
  private static final Duration CLOSE_TIME = Duration.ofSeconds(5);

  private static final ByteString NO_RESULT = ByteString.EMPTY;

  private final PartyNetwork network;
  private final ClaimLedger claims;
  private final KeyShareStore shares;
  private final ProtocolCore core;
  private final SessionTelemetry telemetry;
  private final SessionLimits limits;
  private final InstantSource clock;
  private final WorkPool pool;

  /** Work that reads the disk now and then. */
  private final WorkPool.Lane housekeeping;

  private final KeyActivation activation;
  private final ClaimWitnesses witnesses;
  private final ScheduledFuture<?> ticking;

  private final Sessions sessions = new Sessions();

  private final ListeningRuns listening = new ListeningRuns();
  private final EarlyEnvelopes early = new EarlyEnvelopes();
  private final Leases leases;
  private final SessionRecords records;
  private final QueuedBytes queued = new QueuedBytes();
  private final PresignaturePool presignatures;
  private final RequestBindings bindings = new RequestBindings();
  private final SessionReports reports;
  private final SessionClaims sessionClaims;
  private final Refusals refusals;
  private final Admission admission;

  private volatile boolean draining;

  /** When the ledger was last asked to forget; touched by the timer alone. */
  private long forgotNanos = System.nanoTime();

  /**
   * @param pool closed by whoever made it, after this
   */
  public SessionDriver(
      PartyNetwork network,
      PolicyGate gate,
      ClaimLedger claims,
      KeyShareStore shares,
      ShownClaims shownClaims,
      ProtocolCore core,
      AuditLog audit,
      SessionTelemetry telemetry,
      SessionLimits limits,
      InstantSource clock,
      WorkPool pool) {
    this.network = network;
    this.claims = claims;
    this.shares = shares;
    this.core = core;
    this.records = new SessionRecords(audit, telemetry);
    this.telemetry = telemetry;
    this.limits = limits;
    this.leases = new Leases(limits);
    this.clock = clock;
    this.pool = pool;
    this.housekeeping = pool.lane();
    this.presignatures =
        new PresignaturePool(limits.presignatures(), core::discardPresignature, telemetry);
    this.activation =
        new KeyActivation(
            network,
            shares,
            pool.lane(),
            core,
            telemetry,
            (share, sameEpoch) ->
                presignatures.refreshed(
                    share.key(), sameEpoch ? PresignaturePool.NO_EPOCH : share.epoch()));
    this.witnesses =
        new ClaimWitnesses(
            network, claims, shownClaims, core, pool.lane(), this::leaveExcluded, System::nanoTime);
    this.reports = new SessionReports(network, bindings);
    this.sessionClaims = new SessionClaims(claims, bindings, network.self().partyId());
    this.refusals = new Refusals(claims, bindings, reports);
    Operations operations =
        new Operations(
            shares, presignatures, bindings, core::discardPresignature, network.self().partyId());
    this.admission =
        new Admission(
            gate,
            new OrderCheck(network.roster(), network.self(), limits),
            shares,
            leases,
            operations,
            clock);
    bindings.load(claims.bindings(RequestBindings.MAX), SessionDriver::signingSet);
    this.ticking = pool.every(TICK, this::tick);
    telemetry.live(sessions::size);
    activation.resume();
  }

  // ---- what comes in, on the channel's threads -------------------------------------------------

  /** An order, from whoever sent it. */
  public void onOrder(Member sender, ByteString bytes, @Nullable String traceparent) {
    SessionId id = SessionId.ofOrder(bytes);
    if (sender.role() != Member.Role.COORDINATOR) {
      records.orderOfParty(id, sender);
      return;
    }
    Session session = new Session(id, sender, traceparent, pool.lane(), telemetry, this::failed);
    if (draining) {
      refuseUnseen(session, RefusalReason.REFUSAL_REASON_NOT_READY, "this party is shutting down");
      return;
    }
    if (!leases.admit(session)) {
      refuseUnseen(session, RefusalReason.REFUSAL_REASON_OVERLOADED, "too many sessions at once");
      return;
    }
    Session known = sessions.add(session).orElse(null);
    if (known != null) {
      session.untilLastSent.close();
      // It is already being followed; whoever orders it again may have missed what was sent in it.
      known.run(() -> orderedAgain(known, session));
      return;
    }
    session.run(() -> begin(session, bytes));
  }

  /**
   * What was sent comes before the refusal: a coordinator that takes over from another one, and
   * orders the session in which a request is bound, is helped by the one and told by the other that
   * this is all.
   */
  private void orderedAgain(Session known, Session session) {
    reports.sendAgain(known.id, session);
    if (!known.coordinator.equals(session.coordinator)) {
      refuseUnseen(
          session,
          RefusalReason.REFUSAL_REASON_SESSION_REPLAYED,
          "the order of another coordinator");
    }
  }

  /**
   * An envelope of the core.
   *
   * @param envelope given up by the caller; zeroed after use
   */
  public void onEnvelope(Member sender, SessionId id, byte[] envelope, long receivedNanos) {
    if (sender.role() != Member.Role.PARTY || envelope.length > SessionLimits.MAX_ENVELOPE_BYTES) {
      telemetry.dropped("unacceptable");
      return;
    }
    EarlyEnvelopes.Arrived arrived =
        new EarlyEnvelopes.Arrived(sender.partyId(), envelope, receivedNanos);
    Session session = sessions.get(id);
    if (session == null) {
      session = listening.get(id);
    }
    if (session != null) {
      enqueue(session, arrived);
    } else if (!sessions.hasEnded(id)) {
      if (!early.add(id, arrived)) {
        telemetry.dropped("early_overflow");
        return;
      }
      // The order may have come in between, and its run may have begun.
      Session now = sessions.get(id);
      if (now != null) {
        early.take(id).forEach(a -> enqueue(now, a));
      }
    }
  }

  /** A party states how far its ledger has come. */
  public void onClaimCount(Member sender, ClaimCount count) {
    witnesses.stated(sender, count);
  }

  /** A party says what it remembers of this one's ledger. */
  public void onClaimMemory(Member sender, ClaimMemory remembered) {
    witnesses.answered(sender, remembered);
  }

  /** A peer's report. Only that a share is stored, or never will be, concerns other parties. */
  public void onReport(Member sender, SessionId id, SessionReport report) {
    if (sender.role() != Member.Role.PARTY) {
      return;
    }
    if (report.hasForsaken()) {
      forsaken(sender, id);
      return;
    }
    if (!report.getCompleted().hasKeyPublic()) {
      return;
    }
    Completed completed = report.getCompleted();
    if (completed.getKeyPublic().getSerializedSize() > SessionLimits.MAX_KEY_PUBLIC_BYTES
        || completed.getCertificateCount() > SessionLimits.MAX_PARTIES
        || !activation.reported(sender, id, completed)) {
      telemetry.dropped("unacceptable");
    }
  }

  /** A party will give nothing of a session: of a signature, or of shares. */
  private void forsaken(Member sender, SessionId id) {
    Session session = sessions.get(id);
    if (session == null && !bindings.forsaken(id, sender.partyId())) {
      // Its order may have come in between.
      session = sessions.get(id);
    }
    Session running = session;
    if (running != null) {
      running.run(() -> forsaken(running, sender));
    } else if (!activation.forsaken(sender, id)) {
      telemetry.dropped("unacceptable");
    }
  }

  private void forsaken(Session session, Member sender) {
    SessionPlan plan = session.plan;
    if (plan == null || !plan.protocol().signsAtRandom()) {
      if (!activation.forsaken(sender, session.id)) {
        telemetry.dropped("unacceptable");
      }
      return;
    }
    if (plan.partyIds().contains(sender.partyId())) {
      // Before the request may go on elsewhere: nothing more of this session leaves.
      endIfAllowed(session, Event.CANCEL, "forsaken");
      bindings.forsaken(session.id, sender.partyId());
    }
  }

  /** The coordinator no longer wants the result; also of a session that has made a presignature. */
  public void onCancel(Member sender, SessionId id) {
    if (sender.role() != Member.Role.COORDINATOR) {
      return;
    }
    Session session = sessions.get(id);
    if (session == null) {
      presignatures.cancelled(id, sender.name());
    } else if (session.coordinator.equals(sender)) {
      session.run(() -> cancelled(session));
    }
  }

  // ---- the way of an order, in the session's lane ----------------------------------------------

  private void begin(Session session, ByteString bytes) {
    early.expect(session.id);
    try {
      KeyShare made = admission.admit(session, bytes).orElse(null);
      if (made != null) {
        activation.announceAgain(made, session.coordinator);
        end(session, Event.SHARE_EXISTS, SessionRecords.NO_CAUSE, NO_RESULT);
        return;
      }
      SessionPlan plan = session.plan();
      Duration left = Duration.between(clock.instant(), plan.deadline());
      session.deadline = pool.after(left, () -> session.run(() -> deadline(session)));
      OrderCheck.notExcluded(shares.excluded(plan.key()), plan);
      goOn(session);
    } catch (RefusedException e) {
      refuse(session, e);
    } catch (RuntimeException e) {
      log.error("an order could not be judged", e);
      refuse(session, RefusalReason.REFUSAL_REASON_INTERNAL, "the order could not be judged");
    }
  }

  /** Carries out the judgement of an order against its key. */
  private void goOn(Session session) throws RefusedException {
    SessionPlan plan = session.plan();
    switch (session.operation().begin()) {
      case Beginning.Claim claim -> {
        if (session.operation().background()) {
          session.untilLastSent.close();
          session.lane.priority(WorkPool.Priority.BACKGROUND);
        }
        if (plan.protocol().operation().makesShare()) {
          supersede(session);
          activation.expect(plan);
        }
        claim(session, claim);
      }
      case Beginning.AwaitKey _ -> {
        session.move(Event.KEY_PROVISIONAL);
        activation.awaitActive(
            plan.key(), plan.epoch(), session, () -> session.run(() -> keyActive(session)));
      }
      case Beginning.Await(SessionId older) -> await(session, older);
      case Beginning.Undecided(KeyShare earlier) -> {
        activation.askAbout(earlier);
        throw new RefusedException(
            RefusalReason.REFUSAL_REASON_NOT_READY,
            "an earlier refresh or reshare of the key is not decided");
      }
    }
  }

  /** Ends an older session of the same request if that still may end, and goes on after it. */
  private void await(Session session, SessionId id) throws RefusedException {
    Session older = sessions.get(id);
    if (older == null) {
      throw BoundSigning.boundTo(ByteString.EMPTY);
    }
    older.run(
        () -> {
          // The newer order counts, unless the older session has given its contribution by now.
          if (older.state == State.CLAIMING || older.state == State.RUNNING) {
            endIfAllowed(older, Event.CANCEL, "superseded");
          }
          session.run(() -> beginAgain(session));
        });
  }

  private void beginAgain(Session session) {
    if (session.state != State.RECEIVED) {
      return;
    }
    try {
      goOn(session);
    } catch (RefusedException e) {
      refuse(session, e);
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
    leases
        .makeShare(session, session.plan().key())
        .ifPresent(other -> other.run(() -> endIfAllowed(other, Event.CANCEL, "superseded")));
  }

  private void claim(Session session, Beginning.Claim begun) throws RefusedException {
    session.move(Event.CHECKED);
    session.share = begun.share();
    if (begun.presignature() != null) {
      // What is sent is known before it may be, and is claimed with the request: so a process that
      // starts again can send it again, and the claim is all that the disk is waited for.
      open(session, begun);
    }
    Operation operation = session.operation();
    ClaimLedger.Binding binding = operation.binding(session.firstStep).orElse(null);
    sessionClaims
        .claim(session, binding, operation.instead(), begun.payload())
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
    if (outcome == ClaimLedger.Outcome.CLAIMED) {
      session.multiplying = session.plan().protocol().multiplies();
      sessionClaims.multiplied(session); // if it was cancelled or too late meanwhile
      if (binding != null) {
        session.operation().bound(binding);
      }
    }
    if (!SessionLifecycle.allows(session.state, Event.CLAIMED)) {
      refusals.ended(session); // cancelled or too late meanwhile
      return;
    }
    if (failure != null || outcome == null) {
      log.error("the claim of a session could not be stored", failure);
      refuse(session, RefusalReason.REFUSAL_REASON_INTERNAL, "the claim could not be stored");
    } else if (outcome != ClaimLedger.Outcome.CLAIMED) {
      refuse(session, sessionClaims.refusal(session.plan(), outcome));
    } else {
      start(session, begun);
    }
  }

  private void start(Session session, Beginning.Claim begun) {
    session.move(Event.CLAIMED);
    try {
      if (session.run == null) {
        open(session, begun);
      }
    } catch (RefusedException e) {
      refuse(session, e);
      return;
    }
    session.operation().started();
    long now = System.nanoTime();
    SessionPlan plan = session.plan();
    Step first = session.firstStep;
    if (first == null) {
      throw new IllegalStateException("a run without a first step");
    }
    session.firstStep = null;
    session.plan = plan.withoutPayload();
    session.roundEnteredNanos = now;
    awaitWitnesses(session);
    apply(session, first, null, now);
    telemetry.started(plan.protocol(), System.nanoTime() - session.orderedNanos);
    // Through the lane: once this party has sent its last message, they give way to others.
    early.take(session.id).forEach(a -> enqueue(session, a));
  }

  /** Starts the core. What it says first leaves later. */
  private void open(Session session, Beginning.Claim begun) throws RefusedException {
    DecodedPayload payload = begun.payload();
    SessionConfig.Builder config =
        session
            .plan()
            .config(network.self().partyId())
            .setPayload(payload == null ? ByteString.EMPTY : payload.toSign());
    Presignature presignature = begun.presignature();
    if (presignature != null) {
      config.setPresignatureId(presignature.id()).setSealedPresignature(presignature.sealed());
    }
    ProtocolCore.Run run = core.start(config.build(), begun.sealedShare());
    session.run = run;
    session.firstStep = run.firstStep();
  }

  // ---- the run ---------------------------------------------------------------------------------

  private void enqueue(Session session, EarlyEnvelopes.Arrived arrived) {
    if (!queued.add(session.id, arrived.sender(), arrived.envelope())) {
      telemetry.dropped("queue_overflow");
      return;
    }
    session.run(
        () -> {
          if (session.unwitnessed) {
            session.unheard.add(arrived);
          } else {
            handle(session, arrived);
          }
        });
  }

  private void handle(Session session, EarlyEnvelopes.Arrived arrived) {
    queued.remove(session.id, arrived.sender(), arrived.envelope());
    deliver(session, arrived);
  }

  /**
   * A message of a peer may be a guess at this party's secret, and what follows tells whether it
   * was right. So none is looked at before others remember that this session was claimed. New
   * shares end what is held against a store that went back, so it learns that before it makes them.
   */
  private void awaitWitnesses(Session session) {
    List<Integer> peers = sessionClaims.peers(session.plan());
    if (session.plan().protocol().needsWitnesses() && !peers.isEmpty()) {
      session.unwitnessed = true;
      witnesses.await(session.id, peers, () -> session.run(() -> witnessed(session)));
    }
  }

  private void witnessed(Session session) {
    session.unwitnessed = false;
    witnesses.forget(session.id);
    List<EarlyEnvelopes.Arrived> unheard = List.copyOf(session.unheard);
    session.unheard.clear();
    unheard.forEach(arrived -> handle(session, arrived));
  }

  private void deliver(Session session, EarlyEnvelopes.Arrived arrived) {
    switch (session.state) {
      case RUNNING, COMBINING -> {
        ProtocolCore.Run run = session.run;
        if (run == null) {
          throw new IllegalStateException("a running session without a run");
        }
        session.heard = true;
        Step step = run.handle(arrived.sender(), arrived.envelope());
        Arrays.fill(arrived.envelope(), (byte) 0);
        apply(session, step, arrived, System.nanoTime());
      }
      case RECEIVED, WAITING_FOR_KEY, CLAIMING -> {
        if (!early.add(session.id, arrived)) {
          telemetry.dropped("early_overflow");
        }
      }
      case STORING, COMPLETED, ABORTED -> deliverLate(session, arrived);
      case EXCLUDING, REPEATED, REFUSED, TIMED_OUT, CANCELLED, CONTRIBUTED, STOPPED ->
          Arrays.fill(arrived.envelope(), (byte) 0);
    }
  }

  /**
   * After the end: the core answers what shows a deviation, or asks for what this party saw, and
   * drops all else. What it finds is reported as well; the session's own end stays as it was.
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
        case StepEffect.Ignore(String reason) -> telemetry.dropped(reason);
        case StepEffect.Fail(Abort abort) -> brokenAfterEnd(session, abort);
        case StepEffect.LeaveRound _,
            StepEffect.EnterRound _,
            StepEffect.Miss _,
            StepEffect.RestUntilResult _,
            StepEffect.Complete _ ->
            throw new IllegalStateException("a run that has ended goes on");
      }
    }
  }

  private void brokenAfterEnd(Session session, Abort abort) {
    records.brokenAfterEnd(session, abort);
    reports.aborted(session, abort.toBuilder().clearSealedShare().build());
    if (session.state.isFinal()) {
      stopListening(session);
    }
  }

  /** Leaves the run of a session that has ended open for what others show, until its deadline. */
  private boolean listens(Session session, Event event) {
    SessionPlan plan = session.plan;
    if (plan == null
        || !plan.protocol().operation().makesShare()
        || (event != Event.SHARE_STORED && event != Event.ABORT)
        || draining) {
      return false;
    }
    Duration left = Duration.between(clock.instant(), plan.deadline());
    if (left.isNegative()) {
      return false;
    }
    session.deadline = pool.after(left, () -> session.run(() -> stopListening(session)));
    listening.add(session).ifPresent(other -> other.run(() -> closeRun(other)));
    return true;
  }

  private void stopListening(Session session) {
    if (listening.remove(session)) {
      closeRun(session);
    }
  }

  private static void closeRun(Session session) {
    if (session.deadline != null) {
      session.deadline.cancel(false);
    }
    if (session.run != null) {
      session.run.close();
      session.run = null;
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
        case StepEffect.Send(Outgoing message) -> emit(session, message);
        case StepEffect.LeaveRound _ -> {
          if (cause != null) {
            leaveRound(session, cause, nowNanos);
          }
        }
        case StepEffect.EnterRound(int round) -> {
          session.round = round;
          session.roundEnteredNanos = nowNanos;
          session.sentNanos = nowNanos;
        }
        case StepEffect.Miss(List<Integer> missing) -> session.missing = missing;
        case StepEffect.RestUntilResult _ -> lastSent(session);
        case StepEffect.Ignore(String reason) -> telemetry.dropped(reason);
        case StepEffect.Complete(Done done) -> done(session, done);
        case StepEffect.Fail(Abort abort) -> aborted(session, abort);
      }
    }
  }

  private void leaveRound(Session session, EarlyEnvelopes.Arrived cause, long nowNanos) {
    Protocol protocol = session.plan().protocol();
    // A session that only waits for its result lets messages lie on purpose: what counts there is
    // when the last one came.
    long left = session.state == State.COMBINING ? cause.receivedNanos() : nowNanos;
    telemetry.roundLeft(protocol, session.round, Math.max(0, left - session.roundEnteredNanos));
    network
        .roster()
        .byPartyId(cause.sender())
        .ifPresent(
            straggler ->
                telemetry.waited(
                    protocol,
                    session.round,
                    straggler.name(),
                    Math.max(0, cause.receivedNanos() - session.sentNanos)));
  }

  private void emit(Session session, Outgoing outgoing) {
    if (!session.operation().maySend(outgoing, clock.instant())) {
      telemetry.dropped("too_late");
      return;
    }
    PartyMessage message = SessionReports.envelope(session.id, outgoing.getEnvelope());
    if (outgoing.getRecipient() != 0) {
      network
          .roster()
          .byPartyId(outgoing.getRecipient())
          .ifPresent(member -> network.send(member, message, session.traceparent));
      return;
    }
    List<Member> recipients = new ArrayList<>();
    for (Member party : session.plan().parties()) {
      if (party.partyId() != network.self().partyId()) {
        recipients.add(party);
      }
    }
    recipients.add(session.coordinator);
    network.broadcast(recipients, message, session.traceparent);
  }

  private void lastSent(Session session) {
    session.untilLastSent.close();
    if (!leases.combine(session)) {
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
    if (left != null && session.deadline != null) {
      session.deadline.cancel(false);
      session.deadline = pool.after(left, () -> session.run(() -> deadline(session)));
    }
  }

  private void done(Session session, Done done) {
    done.getCulpritsList()
        .forEach(
            culprit ->
                log.warn(
                    "party {} was left out: {}", culprit.getParty(), culprit.getCause().name()));
    switch (session.operation().complete(done)) {
      case Ending.Signed(ByteString signature) ->
          end(session, Event.SIGNED, SessionRecords.NO_CAUSE, signature);
      case Ending.Presigned(List<ByteString> ids) -> {
        reports.presigned(session, ids);
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
            ? shares.storeNext(share, plan.usesShare(network.self().partyId()), completed)
            : shares.storeProvisional(share, completed))
        .whenComplete(
            (stored, failure) -> session.run(() -> stored(session, made, stored, failure)));
  }

  private void stored(
      Session session, Ending.Store made, @Nullable Boolean stored, @Nullable Throwable failure) {
    if (Boolean.TRUE.equals(stored)) {
      // Even if the session was stopped meanwhile: the share is on disk, so it is announced.
      activation.stored(made.share());
    }
    if (!SessionLifecycle.allows(session.state, Event.SHARE_STORED)) {
      return;
    }
    if (failure != null) {
      log.error("a share could not be stored", failure);
      refuse(session, RefusalReason.REFUSAL_REASON_INTERNAL, "the share could not be stored");
    } else if (Boolean.TRUE.equals(stored)) {
      end(
          session,
          Event.SHARE_STORED,
          SessionRecords.NO_CAUSE,
          made.share().keyPublic().getPublicKey());
    } else {
      refuse(session, made.otherwise());
    }
  }

  // ---- the ends --------------------------------------------------------------------------------

  private void aborted(Session session, Abort abort) {
    SessionPlan plan = session.plan();
    records.aborted(plan, abort);
    Set<Integer> excluded = session.operation().exclusions(abort);
    if (excluded.isEmpty()) {
      endAborted(session, abort);
      return;
    }
    // On disk before it is reported: whoever is told must be able to rely on it.
    session.move(Event.EXCLUDE);
    session.unexcluded = true;
    shares
        .exclude(
            new KeyShareStore.Exclusion(
                plan.key(),
                excluded,
                plan.id(),
                session.share,
                plan.epoch(),
                abort.getSealedShare()))
        .whenComplete((_, failure) -> session.run(() -> excluded(session, abort, failure)));
    leaveExcluded(plan.key());
  }

  /** Somebody is excluded from a key now. */
  private void leaveExcluded(String key) {
    Set<Integer> now = shares.excluded(key);
    presignatures.excluded(
        key, party -> now.contains(party) || now.contains(KeyShareStore.EVERY_PARTY));
    sessions.all().forEach(other -> other.run(() -> leaveExcluded(other, key)));
  }

  /** Somebody may be excluded from any key now. */
  private void leaveExcluded() {
    Set<String> keys = new HashSet<>();
    for (Session session : sessions.all()) {
      SessionPlan plan = session.plan;
      if (plan != null) {
        keys.add(plan.key());
      }
    }
    keys.forEach(this::leaveExcluded);
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

  /** What still runs with a party that is excluded now is not gone on with. */
  private void leaveExcluded(Session session, String key) {
    SessionPlan plan = session.plan;
    if (plan == null
        || !plan.key().equals(key)
        || session.state == State.COMBINING
        || !SessionLifecycle.allows(session.state, Event.REFUSE)) {
      return;
    }
    try {
      OrderCheck.notExcluded(shares.excluded(key), plan);
    } catch (RefusedException e) {
      refuse(session, e);
    }
  }

  private void endAborted(Session session, Abort abort) {
    if (!SessionLifecycle.allows(session.state, Event.ABORT)) {
      return; // stopped meanwhile
    }
    if (abort.getCause() == AbortCause.ABORT_CAUSE_INTERNAL) {
      session.failed = true;
    } else {
      bindings.failed(session.id);
    }
    Abort shown = abort.toBuilder().clearSealedShare().build();
    reports.aborted(session, shown);
    session.abort = shown;
    end(session, Event.ABORT, SessionRecords.label(abort.getCause()), NO_RESULT);
  }

  private void deadline(Session session) {
    if (session.state == State.WAITING_FOR_KEY) {
      refuse(
          session,
          RefusalReason.REFUSAL_REASON_NOT_READY,
          "the key did not become active before the deadline");
    } else if (SessionLifecycle.allows(session.state, Event.DEADLINE)) {
      SessionPlan plan = session.plan();
      // Who only waits for a result has done its part: the coordinator warns, if it missed any.
      log.atLevel(session.state == State.COMBINING ? Level.INFO : Level.WARN)
          .log(
              "{} timed out in round {}, missing parties {}",
              plan.protocol().label(),
              session.round,
              missing(session));
      reportMissing(session);
      session.operation().timedOut(session.missing);
      end(session, Event.DEADLINE, SessionRecords.NO_CAUSE, NO_RESULT);
    }
  }

  /**
   * Says what it was waiting for: that is how the coordinator learns who kept everybody waiting.
   */
  private void cancelled(Session session) {
    if (session.state == State.RUNNING) {
      reportMissing(session);
    }
    if (session.state == State.COMBINING && session.order != null) {
      return; // the coordinator does not decide whether this party sees what its part was for
    }
    endIfAllowed(session, Event.CANCEL, SessionRecords.NO_CAUSE);
  }

  private void reportMissing(Session session) {
    reports.timedOut(session, missing(session));
  }

  /**
   * Whom a session waits for. While the core hears nobody it misses everybody, also those whose
   * message lies here.
   */
  private List<Integer> missing(Session session) {
    if (!session.unwitnessed) {
      return session.missing;
    }
    Set<Integer> missing = new TreeSet<>(session.missing);
    session.unheard.forEach(arrived -> missing.remove(arrived.sender()));
    missing.addAll(witnesses.lacking(session.id));
    return List.copyOf(missing);
  }

  private void refuse(Session session, RefusalReason reason, String detail) {
    refuse(session, new RefusedException(reason, detail));
  }

  private void refuse(Session session, RefusedException refusal) {
    refusals.refuse(session, refusal);
    end(session, Event.REFUSE, SessionRecords.label(refusal.reason()), NO_RESULT);
  }

  /** Refuses an order that does not become a session. */
  private void refuseUnseen(Session session, RefusalReason reason, String detail) {
    reports.refused(session, new RefusedException(reason, detail));
    records.refusedUnseen(session, reason);
  }

  private void endIfAllowed(Session session, Event event, String cause) {
    if (SessionLifecycle.allows(session.state, event)) {
      end(session, event, cause, NO_RESULT);
    }
  }

  private void end(Session session, Event event, String cause, ByteString result) {
    State before = session.state;
    session.move(event);
    sessionClaims.multiplied(session);
    records.audited(session, event, cause, result);
    SessionPlan plan = session.plan;
    refusals.ended(session);
    if (plan != null) {
      if (plan.protocol().operation().makesShare()) {
        if (event != Event.SHARE_STORED) {
          activation.forget(plan.id());
        }
      }
      if (before == State.WAITING_FOR_KEY) {
        activation.giveUpWaiting(plan.key(), session);
      }
    }
    records.counted(session, event, cause);
    if (session.deadline != null) {
      session.deadline.cancel(false);
    }
    if (session.run != null && !listens(session, event)) {
      closeRun(session);
    }
    early.drop(session.id);
    if (session.unwitnessed) {
      witnessed(session);
    }
    if (session.operation != null) {
      session.operation.ended();
    }
    session.untilEnd.close();
    session.untilLastSent.close();
    sessions.end(session);
  }

  // ---- counting, logging, time -----------------------------------------------------------------

  private void failed(Session session) {
    if (session.state.isFinal()) {
      stopListening(session);
    } else {
      fail(session);
    }
  }

  /** A bug here, or a poisoned run: the session ends, the service goes on. */
  private void fail(Session session) {
    session.failed = true;
    if (SessionLifecycle.allows(session.state, Event.ABORT)) {
      reports.aborted(
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

  private static Set<Integer> signingSet(ByteString order) {
    try {
      return Set.copyOf(Order.parseFrom(order).getSigningSetList());
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored order does not decode", e);
    }
  }

  private void tick() {
    try {
      long now = System.nanoTime();
      early.expire(now);
      presignatures.expire(now);
      activation.tick(now);
      housekeeping.execute(shares::housekeep);
      witnesses.tick();
      if (now - forgotNanos >= FORGET.toNanos()) {
        forgotNanos = now;
        claims.forgetBindings(clock.instant().minus(KEEP));
      }
    } catch (RuntimeException e) {
      log.error("housekeeping failed", e);
    }
  }

  // ---- the end of the service ------------------------------------------------------------------

  /**
   * Refuses new orders and waits for running sessions.
   *
   * @return whether all ended in time
   */
  public boolean drain(Duration time) throws InterruptedException {
    draining = true;
    return sessions.awaitNone(time.toNanos());
  }

  /** Ends what still runs. */
  @Override
  public void close() {
    draining = true;
    ticking.cancel(false);
    for (Session session : sessions.all()) {
      session.run(() -> endIfAllowed(session, Event.STOP, SessionRecords.NO_CAUSE));
    }
    for (Session session : listening.close()) {
      session.run(() -> closeRun(session));
    }
    try {
      drain(CLOSE_TIME);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
