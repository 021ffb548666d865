package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.limit.FairPlaces;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.EarlyEnvelopes;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The groups of this party, as the channel and the process see them. Messages arrive on the
 * channel's threads and are only put into a lane there; everything else happens in the lane of the
 * order, and no lock is held across a call of the core, the store or the network.
 *
 * <p>A handler judges, claims, acts, stores and reports, in that order: nothing of a session leaves
 * before its claim is on disk, and no result is told before it is.
 */
public final class GroupService implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(GroupService.class);

  /** Orders that are followed, or whose run still answers its peers. */
  static final int MAX_RUNS = 64;

  private static final String NO_CAUSE = "none";
  private static final Duration CLOSE_TIME = Duration.ofSeconds(5);

  private final GroupPorts ports;
  private final GroupReports reports;
  private final GroupOrderCheck check;
  private final GroupWork making;
  private final GroupWork admission;
  private final GroupWork opening;
  private final WorkPool pool;
  private final EarlyEnvelopes early = new EarlyEnvelopes();
  private final FairPlaces places = new FairPlaces(MAX_RUNS);
  private final Map<SessionId, GroupRun> runs = new ConcurrentHashMap<>();

  /** Those whose session has an id that a member has drawn, by that. */
  private final Map<SessionId, GroupRun> joins = new ConcurrentHashMap<>();

  private volatile boolean draining;

  /**
   * @param pool closed by its maker, after this
   */
  public GroupService(GroupPorts ports, WorkPool pool) {
    this.ports = ports;
    PartyNetwork network = ports.network();
    Member self = network.self();
    this.reports = new GroupReports(network, ports.telemetry());
    this.check =
        new GroupOrderCheck(
            ports.policy(), network.roster(), self, ports.limits(), ports.memory().groups());
    RunControl control = new Control();
    this.making = new GroupMaking(ports, check, control, self);
    this.admission = new MemberAdmission(ports, check, control, self);
    this.opening = new ApprovalOpening(ports, check, control, self);
    this.pool = pool;
  }

  // ---- what comes in, on the channel's threads -------------------------------------------------

  /** An order, from whoever sent it. */
  public void onOrder(Member sender, ByteString bytes, @Nullable String traceparent) {
    if (sender.role() != Member.Role.COORDINATOR) {
      reports.orderOfParty();
      return;
    }
    SessionId id = SessionId.ofOrder(bytes);
    GroupRun run = new GroupRun(id, sender, traceparent, pool.lane());
    if (draining) {
      refuse(run, RefusalReason.REFUSAL_REASON_NOT_READY, "this party is shutting down");
      return;
    }
    GroupRun known = runs.get(id);
    if (known == null && runs.size() >= MAX_RUNS) {
      refuse(run, RefusalReason.REFUSAL_REASON_OVERLOADED, "too many orders at once");
      return;
    }
    known = runs.putIfAbsent(id, run);
    if (known == null) {
      execute(run, () -> begin(run, bytes));
    } else {
      // The coordinator that repeats it may have missed the answer.
      GroupRun followed = known;
      execute(followed, () -> tellAgain(followed, sender));
    }
  }

  /**
   * An envelope of the core.
   *
   * @param envelope no longer used by the caller; zeroed after use
   */
  public void onEnvelope(Member sender, SessionId id, byte[] envelope, long receivedNanos) {
    if (envelope.length > SessionLimits.MAX_ENVELOPE_BYTES) {
      ports.telemetry().dropped("unacceptable");
      return;
    }
    // That of a coordinator is the member's, by its word: the core looks at the signature.
    var arrived = new EarlyEnvelopes.Arrived(sender.partyId(), envelope, receivedNanos);
    GroupRun run = find(id);
    if (run != null) {
      enqueue(run, sender, arrived);
    } else if (!early.add(id, arrived)) {
      ports.telemetry().dropped("early_overflow");
    } else {
      // The order may have come in between.
      GroupRun now = find(id);
      if (now != null) {
        execute(now, () -> takeEarly(now));
      }
    }
  }

  private @Nullable GroupRun find(SessionId session) {
    GroupRun run = runs.get(session);
    return run == null ? joins.get(session) : run;
  }

  private void enqueue(GroupRun run, Member sender, EarlyEnvelopes.Arrived arrived) {
    if (sender.role() != Member.Role.PARTY && !sender.equals(run.coordinator)) {
      ports.telemetry().dropped("unacceptable");
      return;
    }
    int bytes = arrived.envelope().length;
    if (!run.takeRoom(bytes)) {
      ports.telemetry().dropped("queue_overflow");
      return;
    }
    execute(
        run,
        () -> {
          run.giveRoomBack(bytes);
          handle(run, arrived);
        });
  }

  /** A task that fails ends its order, and no other. */
  private void execute(GroupRun run, Runnable task) {
    run.lane.execute(
        () -> {
          try {
            task.run();
          } catch (RuntimeException e) {
            log.error("an order about a group failed", e);
            refuse(run, RefusalReason.REFUSAL_REASON_INTERNAL, "this party failed");
          }
        });
  }

  // ---- from the order to the first message, in the order's lane --------------------------------

  private void begin(GroupRun run, ByteString bytes) {
    try {
      GroupPlan plan = check.plan(run.id, bytes);
      run.plan = plan;
      if (!plan.session().equals(run.id)) {
        NotDoneException.unless(
            joins.putIfAbsent(plan.session(), run) == null,
            RefusalReason.REFUSAL_REASON_SESSION_REPLAYED,
            "another order is for this session");
        run.named = true;
      }
      early.expect(plan.session());
      work(plan).begin(run);
    } catch (NotDoneException e) {
      refuse(run, e);
    }
  }

  private GroupWork work(GroupPlan plan) {
    return switch (plan.step()) {
      case GroupStep.Making _ -> making;
      case GroupStep.Admission _ -> admission;
      case GroupStep.Audit _ -> opening;
    };
  }

  /** The means of the work on an order, in its lane. */
  private final class Control implements RunControl {
    @Override
    public void execute(GroupRun run, Runnable task) {
      GroupService.this.execute(run, task);
    }

    @Override
    public void requireFree(GroupRun run) throws NotDoneException {
      GroupService.this.requireFree(run);
    }

    @Override
    public void start(GroupRun run, SessionConfig config, ByteString sealedShare) {
      ProtocolCore.Run session;
      try {
        session = ports.sessions().start(config, sealedShare);
      } catch (RefusedException e) {
        GroupService.this.refuse(run, NotDoneException.of(e));
        return;
      }
      run.session = session;
      apply(run, session.firstStep());
      takeEarly(run);
    }

    @Override
    public void done(GroupRun run, GroupReport.Builder report) {
      GroupService.this.end(run, report, "done", NO_CAUSE);
    }

    @Override
    public void refuse(GroupRun run, NotDoneException why) {
      GroupService.this.refuse(run, why);
    }
  }

  /** Refuses what this party has no time, room or leave for now, and watches its deadline. */
  private void requireFree(GroupRun run) throws NotDoneException {
    GroupPlan plan = run.plan();
    GroupPorts.Memory memory = ports.memory();
    String requester = plan.intent().requester();
    try {
      memory.holds().check(plan.group(), requester);
    } catch (RefusedException e) {
      throw NotDoneException.of(e);
    }
    NotDoneException.unless(
        !memory.mayHaveForgotten().test(plan.intent().requestId()),
        RefusalReason.REFUSAL_REASON_NOT_READY,
        "this party has just started and asks others what it may have forgotten");
    NotDoneException.unless(
        memory.disk().isOpen(),
        RefusalReason.REFUSAL_REASON_NOT_READY,
        "this party's disk is nearly full");
    NotDoneException.unless(
        memory.disk().mayCreateKey(requester),
        RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED,
        "this requester has taken its share of the party's disk, which its operator can enlarge");
    run.placed = places.take(requester, MAX_RUNS);
    NotDoneException.unless(
        run.placed,
        RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED,
        "too many orders of this requester at once");
    Duration left = Duration.between(ports.clock().instant(), plan.deadline());
    run.after(pool, left, () -> execute(run, () -> deadline(run)));
  }

  // ---- the session, in the order's lane --------------------------------------------------------

  /** Hands over what came before the run; it stays where it is as long as there is none. */
  private void takeEarly(GroupRun run) {
    if (run.session != null || run.over) {
      early.take(run.sessionId()).forEach(arrived -> handle(run, arrived));
    }
  }

  private void handle(GroupRun run, EarlyEnvelopes.Arrived arrived) {
    if (arrived.sender() == 0 && !run.hasMember()) {
      ports.telemetry().dropped("unacceptable");
      return;
    }
    ProtocolCore.Run session = run.session;
    if (session == null && !run.over) {
      if (!early.add(run.sessionId(), arrived)) {
        ports.telemetry().dropped("early_overflow");
      }
      return;
    }
    if (session != null) {
      Step step = session.handle(sender(run, arrived.sender()), arrived.envelope());
      apply(run, step);
    }
    Arrays.fill(arrived.envelope(), (byte) 0);
  }

  /** A coordinator, which has no number, carries the envelopes of the member. */
  private static int sender(GroupRun run, int arrivedFrom) {
    return arrivedFrom == 0 ? run.plan().members().memberNumber() : arrivedFrom;
  }

  private void apply(GroupRun run, Step step) {
    step.getOutgoingList().forEach(message -> reports.message(run, message));
    if (step.hasDropped()) {
      ports.telemetry().dropped(step.getDropped().getReason().name().toLowerCase(Locale.ROOT));
    }
    if (run.over) {
      // It has answered a peer. Its own end stays as it was, but a deviation that shows now is
      // told.
      if (step.hasAbort()) {
        brokenAfterEnd(run, step.getAbort());
      }
      return;
    }
    switch (step.getProgressCase()) {
      case WAITING -> {
        run.round = step.getRound();
        run.missing = List.copyOf(step.getWaiting().getMissingList());
      }
      case DONE -> done(run, step.getDone());
      case ABORT -> aborted(run, step.getAbort());
      case DROPPED, PROGRESS_NOT_SET -> {}
    }
  }

  private void done(GroupRun run, Done done) {
    run.over = true;
    work(run.plan()).done(run, done);
  }

  // ---- the ends --------------------------------------------------------------------------------

  private void aborted(GroupRun run, Abort abort) {
    run.over = true;
    String cause = GroupReports.label(abort.getCause());
    ports.audit().record(GroupAudit.aborted(run.plan(), run.coordinator, cause, abort));
    end(
        run,
        GroupReport.newBuilder().setAborted(abort.toBuilder().clearSealedShare()),
        "aborted",
        cause);
  }

  private void brokenAfterEnd(GroupRun run, Abort abort) {
    run.closeSession();
    String cause = GroupReports.label(abort.getCause());
    ports.audit().record(GroupAudit.aborted(run.plan(), run.coordinator, cause, abort));
    GroupReport.Builder report =
        GroupReport.newBuilder()
            .setSessionId(run.id.bytes())
            .setAborted(abort.toBuilder().clearSealedShare());
    reports.tell(run, report.build());
  }

  /** The time of an order is over: it ends, or its run answers nobody any more. */
  private void deadline(GroupRun run) {
    if (run.report == null && !run.over) {
      ports
          .audit()
          .record(GroupAudit.timedOut(run.plan(), run.coordinator, run.round, run.missing));
      end(
          run,
          GroupReport.newBuilder()
              .setTimedOut(TimedOut.newBuilder().setRound(run.round).addAllMissing(run.missing)),
          "timed_out",
          NO_CAUSE);
    }
    forget(run);
  }

  private void refuse(GroupRun run, RefusalReason reason, String detail) {
    refuse(run, new NotDoneException(reason, detail));
  }

  private void refuse(GroupRun run, NotDoneException why) {
    run.closeSession();
    if (run.report == null) {
      end(
          run,
          GroupReport.newBuilder().setRefused(why.message()),
          "refused",
          why.reason().name().substring("REFUSAL_REASON_".length()).toLowerCase(Locale.ROOT));
    } else {
      forget(run);
    }
  }

  private void end(GroupRun run, GroupReport.Builder report, String outcome, String cause) {
    run.over = true;
    run.report = report.setSessionId(run.id.bytes()).build();
    reports.ended(run, outcome, cause);
    if (run.session == null) {
      // Before the answer, at which the next order of the same session may come.
      forget(run);
    }
    reports.tell(run, run.report);
  }

  private void tellAgain(GroupRun run, Member sender) {
    GroupReport report = run.report;
    if (report != null && run.coordinator.equals(sender)) {
      reports.tell(run, report);
    }
  }

  /** Gives back what an order holds. */
  private void forget(GroupRun run) {
    run.closeSession();
    run.stopClock();
    early.drop(run.id);
    if (run.named) {
      joins.remove(run.sessionId(), run);
      early.drop(run.sessionId());
    }
    if (run.placed) {
      run.placed = false;
      places.giveBack(run.plan().intent().requester());
    }
    runs.remove(run.id, run);
  }

  /** Takes no new orders. */
  public void drain() {
    draining = true;
  }

  /** Ends what still runs; its coordinator hears nothing, as after a kill. */
  @Override
  public void close() {
    drain();
    List<GroupRun> left = List.copyOf(runs.values());
    CountDownLatch closed = new CountDownLatch(left.size());
    left.forEach(
        run ->
            run.lane.execute(
                () -> {
                  forget(run);
                  closed.countDown();
                }));
    try {
      if (!closed.await(CLOSE_TIME.toMillis(), TimeUnit.MILLISECONDS)) {
        log.warn("orders about groups did not end in time");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
