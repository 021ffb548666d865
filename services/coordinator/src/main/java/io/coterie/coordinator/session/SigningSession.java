package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.SessionPlan.Work;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.MpcSession;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Culprit;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A signing session: this coordinator is an observer of the core over the envelopes that the
 * parties also send to it. The core combines; the verifier decides. Where signatures are checked
 * together ({@link SignatureChecks}) the core combines without looking, and looks at each
 * contribution if what comes out is none.
 */
public final class SigningSession extends ObservedSession {
  private static final Logger log = LoggerFactory.getLogger(SigningSession.class);

  /**
   * Envelopes of one party that may wait for the core: two rounds' worth and a duplicate of each.
   */
  private static final int WAITING_PER_PARTY = 4;

  private final Work.Sign work;
  private final boolean again;
  private final BoundedLane lane;

  /** Used in the lane only. */
  private @Nullable MpcSession core;

  /** Whether the core is done, so that its result is or was checked. Used in the lane only. */
  private boolean combined;

  /** Whether the core combines without looking at the contributions. Used in the lane only. */
  private boolean unseen;

  /** Contributions that the core has taken meanwhile. Used in the lane only. */
  private final List<Contribution> taken = new ArrayList<>();

  private record Contribution(int sender, ByteString envelope) {}

  /** Parties whose contribution has not come; written in the lane. */
  private volatile Set<Integer> missing;

  private volatile int round = 1;

  /** Envelopes of each party in the lane, so that no party takes the room of others. */
  private final Map<Integer, AtomicInteger> waitingOf = new ConcurrentHashMap<>();

  /**
   * @param again whether the parties have had the order before: one that has answered it says that
   *     there is nothing to be run, beside its answer
   */
  SigningSession(
      ByteString order,
      SessionPlan plan,
      Work.Sign work,
      boolean again,
      Protocol protocol,
      Sessions sessions,
      SecureChannel channel) {
    super(order, plan, protocol, sessions, channel);
    this.work = work;
    this.again = again;
    this.unseen = sessions.checksTogether(plan.scheme());
    this.lane = new BoundedLane(sessions.pool(), WAITING_PER_PARTY * plan.parties().size() + 1);
    this.missing = partiesWithout(Set.of());
  }

  /** Starts observing; the order travels meanwhile. */
  void observe() {
    if (protocol.isOfPairs()) {
      return; // The parties talk with each other alone, and tell what came of it.
    }
    lane.offer(
        () -> {
          try {
            take(observer().firstStep());
          } catch (MpcException e) {
            broken(e);
          }
        });
  }

  private MpcSession observer() {
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(protocol.id())
            .setSessionId(id.bytes())
            .setThreshold(plan.threshold())
            .setKeyId(work.keyPublic().getKeyId())
            .setEpoch(plan.epoch())
            .setPayload(work.what().payload())
            .setKeyPublic(work.keyPublic())
            .setUnverified(unseen);
    work.what().target().into(config);
    if (work.presignature() != null) {
      config.setPresignatureId(work.presignature());
    }
    for (Member m : plan.parties()) {
      config.addParties(
          Party.newBuilder()
              .setId(m.partyId())
              .setEvidenceKey(ByteString.copyFrom(m.evidenceKey())));
    }
    MpcSession observer = sessions.core().observe(config.build());
    core = observer;
    return observer;
  }

  @Override
  void onEnvelope(Member sender, SessionEnvelope envelope, long receivedNanos) {
    AtomicInteger waiting = waitingOf.computeIfAbsent(sender.partyId(), _ -> new AtomicInteger());
    if (waiting.incrementAndGet() > WAITING_PER_PARTY
        || !lane.offer(
            () -> {
              waiting.decrementAndGet();
              handle(sender, envelope.getEnvelope(), receivedNanos);
            })) {
      waiting.decrementAndGet();
      sessions.telemetry().dropped("lane_full");
    }
  }

  private void handle(Member sender, ByteString envelope, long receivedNanos) {
    MpcSession session = core;
    if (session == null || combined || hasEnded()) {
      return;
    }
    Set<Integer> before = missing;
    Step step;
    try {
      step = session.handle(sender.partyId(), envelope.toByteArray());
    } catch (MpcException e) {
      broken(e);
      return;
    }
    if (step.hasDropped()) {
      sessions.telemetry().dropped(label(step.getDropped().getReason()));
      return;
    }
    if (before.contains(sender.partyId())) {
      sessions.health().answered(sender.partyId(), receivedNanos - startedNanos);
    }
    if (unseen) {
      taken.add(new Contribution(sender.partyId(), envelope));
    }
    int left = round;
    take(step);
    if (step.hasDone() || (step.hasWaiting() && step.getRound() > left)) {
      sessions
          .metrics()
          .roundLeft(
              protocol.label(), left, Duration.ofNanos(sessions.timer().nanos() - startedNanos));
      sessions
          .metrics()
          .waited(
              protocol.label(),
              left,
              sender.name(),
              Duration.ofNanos(Math.max(0, receivedNanos - startedNanos)));
    }
  }

  private void take(Step step) {
    switch (step.getProgressCase()) {
      case WAITING -> {
        round = Math.max(1, step.getRound());
        missing = Set.copyOf(step.getWaiting().getMissingList());
      }
      case DROPPED -> {}
      case DONE -> {
        Done done = step.getDone();
        Signature signature =
            new Signature(
                done.getSignature(),
                done.hasRecoveryId() ? OptionalInt.of(done.getRecoveryId()) : OptionalInt.empty());
        Set<Integer> culprits = new HashSet<>();
        done.getCulpritsList().stream().map(Culprit::getParty).forEach(culprits::add);
        combined = true;
        missing = Set.of();
        sessions.check(
            plan.scheme(), work.what(), signature, valid -> checked(signature, culprits, valid));
      }
      case ABORT ->
          end(
              new SessionOutcome.Aborted(
                  step.getAbort().getRound(),
                  known(step.getAbort().getCause()),
                  Set.copyOf(step.getAbort().getCulpritsList()),
                  Set.of(),
                  step.getAbort().getAdvice() == Advice.ADVICE_EXCLUDE_PARTY
                      || step.getAbort().getAdvice() == Advice.ADVICE_FREEZE_KEY,
                  false));
      case PROGRESS_NOT_SET -> {
        log.error("the core answered session {} without a step", id);
        end(internal());
      }
    }
  }

  private void checked(Signature signature, Set<Integer> culprits, boolean valid) {
    if (valid) {
      end(new SessionOutcome.Signed(signature, culprits));
    } else {
      lane.last(this::judge);
    }
  }

  /** The core combined no signature: it finds out why, or has an error. Runs in the lane. */
  private void judge() {
    MpcSession before = core;
    if (hasEnded() || before == null) {
      return;
    }
    if (!unseen) {
      log.error(
          "the core combined a signature that the verifier refuses: session {}, key {}",
          id,
          plan.key());
      end(internal());
      return;
    }
    before.close();
    core = null;
    unseen = false;
    combined = false;
    try {
      MpcSession looking = observer();
      Step step = looking.firstStep();
      for (Contribution each : taken) {
        if (step.hasWaiting() || step.hasDropped()) {
          step = looking.handle(each.sender, each.envelope.toByteArray());
        }
      }
      take(step);
    } catch (MpcException e) {
      broken(e);
    }
  }

  private void broken(MpcException e) {
    log.error("the core refused session {}: {}", id, e.getMessage());
    end(internal());
  }

  private SessionOutcome internal() {
    return new SessionOutcome.Aborted(
        round, AbortCause.ABORT_CAUSE_INTERNAL, Set.of(), Set.of(), false, false);
  }

  /** In the lane, after the envelopes that the sender sent before it. */
  @Override
  void onReport(Member sender, SessionReport report) {
    if (!lane.offer(() -> hear(sender, report))) {
      sessions.telemetry().dropped("lane_full");
    }
  }

  private void hear(Member sender, SessionReport report) {
    if (combined) {
      return; // nothing that a party says now changes what is checked
    }
    switch (report.getOutcomeCase()) {
      case REFUSED -> hear(sender, report.getRefused());
      // Envelopes of a signing carry no signature that would convince others. This observer
      // convicts by those it got itself, and a party's report is its word.
      case ABORTED -> {
        if (missing.contains(sender.partyId())) {
          end(
              new SessionOutcome.Aborted(
                  report.getAborted().getRound(),
                  known(report.getAborted().getCause()),
                  Set.of(),
                  suspects(sender, report.getAborted()),
                  false,
                  false));
        }
      }
      case COMPLETED -> hear(sender, report.getCompleted());
      // The parties' own view of the end: this observer has its own.
      case TIMED_OUT, DECLINED, OUTCOME_NOT_SET -> {}
    }
  }

  /** Where nothing is observed, the first valid signature ends the session. */
  private void hear(Member sender, Completed completed) {
    if (!protocol.isOfPairs()) {
      return;
    }
    Signature told = new Signature(completed.getSignature(), OptionalInt.empty());
    if (sessions.isValid(plan.scheme(), work.what(), told)) {
      end(new SessionOutcome.Signed(told, Set.of()));
    } else {
      sessions.telemetry().dropped("signature");
    }
  }

  private void hear(Member sender, Refused refused) {
    if (!refused.getSignature().isEmpty()) {
      Signature seen =
          new Signature(
              refused.getSignature(),
              refused.hasRecoveryId()
                  ? OptionalInt.of(refused.getRecoveryId())
                  : OptionalInt.empty());
      if (sessions.isValid(plan.scheme(), work.what(), seen)) {
        end(new SessionOutcome.Signed(seen, Set.of()));
        return;
      }
      sessions.telemetry().dropped("signature");
    }
    if (again && !missing.contains(sender.partyId())) {
      return; // it has said before what there is to say
    }
    // As many parties were asked as are needed, so one that would not start ends the session.
    boolean bound =
        refused.getReason() == RefusalReason.REFUSAL_REASON_REQUEST_BOUND
            && !refused.getBoundOrder().isEmpty();
    end(
        bound
            ? new SessionOutcome.Bound(sender.partyId(), refused.getBoundOrder())
            : SessionOutcome.Refused.of(sender.partyId(), refused));
  }

  @Override
  SessionOutcome timedOut() {
    return new SessionOutcome.TimedOut(round, missing);
  }

  @Override
  void release() {
    lane.last(
        () -> {
          MpcSession session = core;
          core = null;
          if (session != null) {
            session.close();
          }
        });
  }
}
