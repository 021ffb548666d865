package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.limit.FairPlaces;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.group.GroupSteps.Work;
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
import java.util.Optional;
import java.util.concurrent.CompletionStage;
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
  private final GroupSteps steps;
  private final WorkPool pool;
  private final EarlyEnvelopes early = new EarlyEnvelopes();
  private final FairPlaces places = new FairPlaces(MAX_RUNS);
  private final Map<SessionId, GroupRun> runs = new ConcurrentHashMap<>();
  private volatile boolean draining;

  /**
   * @param pool closed by its maker, after this
   */
  public GroupService(GroupPorts ports, WorkPool pool) {
    this.ports = ports;
    PartyNetwork network = ports.network();
    Member self = network.self();
    this.reports = new GroupReports(network, ports.telemetry());
    this.check = new GroupOrderCheck(ports.policy(), network.roster(), self, ports.limits());
    this.steps = new GroupSteps(ports.calls(), ports.memory().groups(), self);
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
    if (sender.role() != Member.Role.PARTY || envelope.length > SessionLimits.MAX_ENVELOPE_BYTES) {
      ports.telemetry().dropped("unacceptable");
      return;
    }
    var arrived = new EarlyEnvelopes.Arrived(sender.partyId(), envelope, receivedNanos);
    GroupRun run = runs.get(id);
    if (run != null) {
      enqueue(run, arrived);
    } else if (!early.add(id, arrived)) {
      ports.telemetry().dropped("early_overflow");
    } else {
      // The order may have come in between.
      GroupRun now = runs.get(id);
      if (now != null) {
        execute(now, () -> takeEarly(now));
      }
    }
  }

  private void enqueue(GroupRun run, EarlyEnvelopes.Arrived arrived) {
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
    early.expect(run.id);
    try {
      GroupPlan plan = check.plan(run.id, bytes);
      run.plan = plan;
      GroupRecord record = ports.memory().groups().find(plan.group(), plan.epoch()).orElse(null);
      if (record != null) {
        NotDoneException.unless(
            record.origin().equals(plan.origin()),
            RefusalReason.REFUSAL_REASON_GROUP_EXISTS,
            "this epoch of the group was begun for another request");
        Optional<GroupReport.Builder> done = steps.answer(plan, record);
        if (done.isPresent()) {
          end(run, done.get(), "done", NO_CAUSE);
          return;
        }
      }
      check.inTime(plan, ports.clock().instant());
      requireFree(run, plan);
      Work work = steps.work(plan, record);
      Duration left = Duration.between(ports.clock().instant(), plan.deadline());
      pool.after(left, () -> execute(run, () -> deadline(run)));
      if (work instanceof Work.Complete(ByteString attested)) {
        stored(
            run,
            ports
                .memory()
                .groups()
                .keepAttested(
                    plan.group(), plan.epoch(), attested, GroupAudit.done(plan, run.coordinator)));
      } else {
        claim(run, work, record != null);
      }
    } catch (NotDoneException e) {
      refuse(run, e);
    }
  }

  /** Refuses what this party has no time, room or leave for now. */
  private void requireFree(GroupRun run, GroupPlan plan) throws NotDoneException {
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
  }

  private void claim(GroupRun run, Work work, boolean begun) {
    GroupPlan plan = run.plan();
    String account = DiskShares.ofCoordinator(run.coordinator.name());
    ports
        .memory()
        .claims()
        .claimOnce(
            new ClaimLedger.Claim(
                plan.id(),
                plan.intent().requester(),
                plan.intent().requestId(),
                plan.intent().digest(),
                null,
                null,
                null,
                plan.intent().envelope().toByteString(),
                ports.memory().disk().mayTake(account) ? account : null),
            GroupAudit.accepted(plan, run.coordinator))
        .whenComplete(
            (outcome, failure) -> execute(run, () -> claimed(run, work, begun, outcome, failure)));
  }

  private void claimed(
      GroupRun run,
      Work work,
      boolean begun,
      ClaimLedger.@Nullable Outcome outcome,
      @Nullable Throwable failure) {
    if (run.over) {
      return; // too late meanwhile
    }
    if (failure != null || outcome == null) {
      log.error("the claim of an order about a group could not be stored", failure);
      refuse(run, RefusalReason.REFUSAL_REASON_INTERNAL, "the claim could not be stored");
    } else if (outcome != ClaimLedger.Outcome.CLAIMED) {
      refuse(run, NotDoneException.of(outcome));
    } else if (begun) {
      start(run, work);
    } else {
      GroupPlan plan = run.plan();
      ports
          .memory()
          .groups()
          .begin(
              GroupRecord.begun(
                  plan.group(), plan.epoch(), plan.origin(), plan.members().parties()))
          .whenComplete((first, stopped) -> execute(run, () -> begun(run, work, first, stopped)));
    }
  }

  private void begun(
      GroupRun run, Work work, @Nullable Boolean first, @Nullable Throwable failure) {
    if (run.over) {
      return;
    }
    if (failure != null || first == null) {
      log.error("an epoch of a group could not be begun", failure);
      refuse(run, RefusalReason.REFUSAL_REASON_INTERNAL, "the epoch could not be stored");
    } else if (!first) {
      refuse(
          run,
          RefusalReason.REFUSAL_REASON_GROUP_EXISTS,
          "this party knows the epoch of the group, or a later one");
    } else {
      start(run, work);
    }
  }

  private void start(GroupRun run, Work work) {
    switch (work) {
      case Work.Drawn(GroupRecord.Share share) -> keepShare(run, share);
      case Work.Complete _ -> throw new IllegalStateException("a group is kept without a claim");
      case Work.Session(var config, ByteString sealedShare) -> {
        ProtocolCore.Run session;
        try {
          session = ports.sessions().start(config, sealedShare);
        } catch (RefusedException e) {
          refuse(run, NotDoneException.of(e));
          return;
        }
        run.session = session;
        apply(run, session.firstStep());
        takeEarly(run);
      }
    }
  }

  // ---- the session, in the order's lane --------------------------------------------------------

  /** Hands over what came before the run; it stays where it is as long as there is none. */
  private void takeEarly(GroupRun run) {
    if (run.session != null || run.over) {
      early.take(run.id).forEach(arrived -> handle(run, arrived));
    }
  }

  private void handle(GroupRun run, EarlyEnvelopes.Arrived arrived) {
    ProtocolCore.Run session = run.session;
    if (session == null && !run.over) {
      if (!early.add(run.id, arrived)) {
        ports.telemetry().dropped("early_overflow");
      }
      return;
    }
    if (session != null) {
      Step step = session.handle(arrived.sender(), arrived.envelope());
      apply(run, step);
    }
    Arrays.fill(arrived.envelope(), (byte) 0);
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
    GroupPlan plan = run.plan();
    switch (plan.step()) {
      case GroupStep.Opening _, GroupStep.Issuing _ ->
          keepShare(run, new GroupRecord.Share(done.getKeyPublic(), done.getSealedShare()));
      case GroupStep.Publish _ ->
          stored(
              run,
              ports
                  .memory()
                  .groups()
                  .keepPublished(
                      plan.group(),
                      plan.epoch(),
                      done.getGroup(),
                      GroupAudit.done(plan, run.coordinator)));
      case GroupStep.Keep _ -> throw new IllegalStateException("a group is kept without a session");
    }
  }

  private void keepShare(GroupRun run, GroupRecord.Share share) {
    GroupPlan plan = run.plan();
    GroupStore groups = ports.memory().groups();
    var event = GroupAudit.done(plan, run.coordinator);
    stored(
        run,
        plan.step() instanceof GroupStep.Opening
            ? groups.keepOpening(plan.group(), plan.epoch(), share, event)
            : groups.keepIssuing(plan.group(), plan.epoch(), share, event));
  }

  /** The result is told once it is on disk, from there. */
  private void stored(GroupRun run, CompletionStage<Boolean> storing) {
    run.over = true;
    storing.whenComplete(
        (first, failure) ->
            execute(
                run,
                () -> {
                  if (failure != null) {
                    log.error("the result of a step could not be stored", failure);
                    refuse(
                        run,
                        RefusalReason.REFUSAL_REASON_INTERNAL,
                        "the result could not be stored");
                  } else {
                    tellStored(run);
                  }
                }));
  }

  /** Whether this order has stored it or another one of the same request: there is one result. */
  private void tellStored(GroupRun run) {
    GroupPlan plan = run.plan();
    try {
      GroupRecord record = ports.memory().groups().find(plan.group(), plan.epoch()).orElseThrow();
      end(run, steps.answer(plan, record).orElseThrow(), "done", NO_CAUSE);
    } catch (NotDoneException e) {
      refuse(run, e);
    }
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
    if (run.report == null) {
      end(
          run,
          GroupReport.newBuilder().setRefused(why.message()),
          "refused",
          why.reason().name().substring("REFUSAL_REASON_".length()).toLowerCase(Locale.ROOT));
    }
    forget(run);
  }

  private void end(GroupRun run, GroupReport.Builder report, String outcome, String cause) {
    run.over = true;
    run.report = report.setSessionId(run.id.bytes()).build();
    reports.ended(run, outcome, cause);
    reports.tell(run, run.report);
    if (run.session == null) {
      forget(run);
    }
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
    early.drop(run.id);
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
