package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.CancelQuestion;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimWitnesses;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.operation.Operations;
import io.coterie.signer.operation.PresignaturePool;
import io.coterie.signer.order.OrderCheck;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.EarlyEnvelopes;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.EpochAnswers;
import io.coterie.signer.share.KeyActivation;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.trust.Member;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Collection;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The sessions of this party, as the channel and the process see them: orders, envelopes and
 * reports come in, and at the end running sessions finish or are stopped. Messages arrive on the
 * channel's threads and are only put into a lane there; everything else happens in the lane of the
 * session, and no lock is held across a call of the core, the store or the network.
 */
public final class SessionService implements AutoCloseable {
  /** How long {@link #close} waits for tasks that are being run. */
  private static final Duration CLOSE_TIME = Duration.ofSeconds(5);

  private final WorkPool pool;
  private final SessionTelemetry telemetry;
  private final Sessions sessions = new Sessions();
  private final RequestBindings bindings = new RequestBindings();
  private final Leases leases;
  private final ListeningRuns listening;
  private final Inbox inbox;
  private final PresignaturePool presignatures;
  private final KeyActivation activation;
  private final EpochAnswers epochs;
  private final Cancellations cancellations;
  private final ClaimWitnesses witnesses;
  private final SessionRecords records;
  private final DiskShares disk;
  private final Refusals refusals;
  private final SessionDriver driver;
  private final SessionOpening opening;
  private final Housekeeping housekeeping;
  private volatile boolean draining;

  /**
   * @param behind how far the slowest clock of some parties is behind this party's
   * @param pool closed by its maker, after this
   */
  public SessionService(
      SessionPorts ports,
      SessionLimits limits,
      Function<Collection<Integer>, Duration> behind,
      WorkPool pool) {
    PartyNetwork network = ports.network();
    ProtocolCore core = ports.core();
    ClaimLedger claims = ports.ledgers().claims();
    KeyShareStore shares = ports.ledgers().shares();
    InstantSource clock = ports.clock();
    int self = network.self().partyId();
    this.pool = pool;
    this.telemetry = ports.telemetry();
    this.leases = new Leases(limits);
    this.listening = new ListeningRuns(pool, clock);
    this.inbox = new Inbox(sessions, listening, telemetry, this::deliver);
    this.presignatures =
        new PresignaturePool(limits.presignatures(), core::discardPresignature, telemetry);
    this.activation =
        new KeyActivation(
            network,
            shares,
            pool.lane(),
            core,
            pool::nanos,
            telemetry::dropped,
            (share, sameEpoch) ->
                presignatures.refreshed(
                    share.key(), sameEpoch ? PresignaturePool.NO_EPOCH : share.epoch()));
    WorkPool.Lane questions = pool.lane();
    // Many may come at once, and signing goes first.
    questions.priority(WorkPool.Priority.BACKGROUND);
    this.epochs =
        new EpochAnswers(network, shares, core, questions, telemetry::dropped, pool::nanos);
    this.witnesses =
        new ClaimWitnesses(
            network,
            claims,
            ports.ledgers().shownClaims(),
            core,
            pool.lane(),
            this::exclusionsChanged,
            clock,
            pool::nanos);
    this.records = new SessionRecords(ports.audit(), telemetry, pool::nanos);
    RefusalReceipts receipts = new RefusalReceipts(core, self, clock, pool::nanos);
    SessionReports reports = new SessionReports(network, bindings, receipts);
    this.disk = new DiskShares(claims);
    this.refusals =
        new Refusals(claims, witnesses, bindings, reports, records, disk, ports.ledgers().holds());
    SessionMeans.Running running = new SessionMeans.Running(sessions, listening, inbox, leases);
    SessionMeans.Keys keys =
        new SessionMeans.Keys(
            shares, activation, new Exclusions(shares, ports.ledgers().holds(), presignatures));
    SessionClaims sessionClaims = new SessionClaims(claims, bindings, disk, self);
    SessionMeans.Claims means =
        new SessionMeans.Claims(
            sessionClaims, bindings, witnesses, new NonceRecording(ports.ledgers().exactNonces()));
    SessionMeans.Accounts accounts =
        new SessionMeans.Accounts(reports, refusals, records, telemetry);
    this.driver =
        new SessionDriver(network, running, keys, means, accounts, limits, behind, clock, pool);
    WorkPool.Lane cancelling = pool.lane();
    // The requester's own signing goes first.
    cancelling.priority(WorkPool.Priority.BACKGROUND);
    this.cancellations =
        new Cancellations(
            ports,
            limits,
            bindings,
            disk,
            witnesses,
            cancelling,
            sessions,
            session -> driver.endIfAllowed(session, Event.CANCEL, "cancelled"),
            telemetry::dropped,
            pool::nanos);
    Operations operations =
        new Operations(
            shares,
            presignatures,
            bindings,
            ports.policy(),
            ports.approvals(),
            core::discardPresignature,
            core::takeShare,
            self,
            pool::nanos);
    Admission admission =
        new Admission(
            ports.policy(),
            new OrderCheck(network.roster(), network.self(), limits),
            shares,
            leases,
            disk,
            operations,
            clock,
            network.roster().installation());
    this.opening =
        new SessionOpening(
            admission, running, keys, means, accounts, core, self, clock, pool, driver);
    bindings.load(claims.bindings(RequestBindings.MAX), SessionService::signingSet);
    this.housekeeping =
        new Housekeeping(
            inbox,
            presignatures,
            activation,
            witnesses,
            ports.ledgers(),
            disk,
            this::exclusionsChanged,
            new ForgottenShares(
                    sessions,
                    listening,
                    shares,
                    activation,
                    presignatures,
                    core::forgetPairs,
                    driver::refuse)
                ::forgotten,
            pool);
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
    Session session =
        new Session(id, sender, traceparent, pool.lane(), pool.nanos(), telemetry, driver::failed);
    if (draining) {
      refusals.unseen(
          session, RefusalReason.REFUSAL_REASON_NOT_READY, "this party is shutting down");
      return;
    }
    if (!leases.admit(session)) {
      refusals.unseen(
          session, RefusalReason.REFUSAL_REASON_OVERLOADED, "too many sessions at once");
      return;
    }
    Session known = sessions.add(session).orElse(null);
    if (known != null) {
      session.untilLastSent.close();
      known.run(
          () -> {
            if (sessions.get(id) != known) {
              // It ended before its turn came: its coordinator may have missed how.
              onOrder(sender, bytes, traceparent);
              return;
            }
            // It is followed already; the coordinator that repeats it may have missed an answer.
            opening.orderedAgain(known, session);
          });
      return;
    }
    session.run(() -> opening.begin(session, bytes));
  }

  /**
   * An envelope of the core.
   *
   * @param envelope no longer used by the caller; zeroed after use
   */
  public void onEnvelope(Member sender, SessionId id, byte[] envelope, long receivedNanos) {
    inbox.arrived(sender, id, envelope, receivedNanos);
  }

  /** A party states how far its ledger has come. */
  public void onClaimCount(Member sender, ClaimCount count) {
    witnesses.stated(sender, count);
  }

  /** A party says what it remembers of this one's ledger. */
  public void onClaimMemory(Member sender, ClaimMemory remembered) {
    witnesses.answered(sender, remembered);
  }

  /** A client asks, through a coordinator, which epoch of a key this party uses. */
  public void onEpochQuestion(Member sender, EpochQuestion question) {
    epochs.asked(sender, question);
  }

  /** A requester cancels a request, through a coordinator. */
  public void onCancelQuestion(Member sender, CancelQuestion question) {
    if (!draining) {
      cancellations.asked(sender, question);
    }
  }

  /** A peer's report. Only that a share is stored, or never will be, concerns other parties. */
  public void onReport(Member sender, SessionId id, SessionReport report) {
    if (sender.role() != Member.Role.PARTY) {
      return;
    }
    if (report.hasDeclined()) {
      declined(sender, id);
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
  private void declined(Member sender, SessionId id) {
    Session session = sessions.get(id);
    if (session == null && !bindings.declined(id, sender.partyId())) {
      // Its order may have come in between.
      session = sessions.get(id);
    }
    Session running = session;
    if (running != null) {
      running.run(() -> driver.declined(running, sender));
    } else if (!activation.declined(sender, id)) {
      telemetry.dropped("unacceptable");
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
      session.run(() -> driver.cancelled(session));
    }
  }

  /** How much of the disk each account may take. */
  public DiskShares disk() {
    return disk;
  }

  /** See {@link ClaimWitnesses#mayHaveForgotten}. */
  public boolean mayHaveForgotten(String requestId) {
    return witnesses.mayHaveForgotten(requestId);
  }

  private void deliver(Session session, EarlyEnvelopes.Arrived arrived) {
    driver.deliver(session, arrived);
  }

  private void exclusionsChanged() {
    driver.leaveExcluded();
  }

  private static Set<Integer> signingSet(ByteString order) {
    try {
      return Set.copyOf(Order.parseFrom(order).getSigningSetList());
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored order does not decode", e);
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
    listening.drain();
    return sessions.awaitNone(time.toNanos());
  }

  /** Ends what still runs. */
  @Override
  public void close() {
    draining = true;
    listening.drain();
    housekeeping.close();
    for (Session session : sessions.all()) {
      session.run(() -> driver.endIfAllowed(session, Event.STOP, SessionRecords.NO_CAUSE));
    }
    for (Session session : listening.close()) {
      session.run(session::closeRun);
    }
    try {
      drain(CLOSE_TIME);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
