package io.coterie.signer.session;

import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.Order;
import io.coterie.signer.operation.Operation;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.EarlyEnvelopes;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One session at this party. Everything that changes is touched by its lane alone. */
final class Session {
  private static final Logger log = LoggerFactory.getLogger(Session.class);

  final SessionId id;
  final Member coordinator;
  final @Nullable String traceparent;
  final WorkPool.Lane lane;

  private final SessionLifecycle.Observer observer;
  private final Consumer<Session> onFailure;

  /** When the order came. */
  final long orderedNanos;

  SessionLifecycle.State state = SessionLifecycle.State.RECEIVED;
  @Nullable SessionPlan plan;

  /** Whether a requester is known to have signed its intent, whatever that says. */
  boolean signed;

  /** Whether its intent is one that a requester has signed, or it serves no requester. */
  boolean verified;

  /** The request to sign, once its requester's signature is known to be good. */
  Receipts.@Nullable Refusable asked;

  /**
   * Whether its protocol is one of pairs; set once, with its plan. Read by the channel's threads.
   */
  volatile boolean ofPairs;

  /** Its work; there once the order was checked. */
  @Nullable Operation operation;

  ProtocolCore.@Nullable Run run;
  private @Nullable Future<?> deadline;
  private int deadlines;

  /** Its places among the sessions that still have something to send. */
  final HeldPlaces untilLastSent = new HeldPlaces();

  /** The room on the disk that is set aside for its claim. */
  final HeldPlaces untilClaimed = new HeldPlaces();

  /** All other places that it has. */
  final HeldPlaces untilEnd = new HeldPlaces();

  /** The round this party is in; 0 before the first. */
  int round;

  long roundEnteredNanos;

  /** When this party sent its message of {@link #round}. */
  long sentNanos;

  List<Integer> missing = List.of();

  /** The session that made the share which this one uses; this one itself if it uses none. */
  SessionId share;

  /** Whether it multiplies and nobody remembers that yet. */
  boolean unwitnessed;

  /** Messages that came meanwhile. */
  final List<EarlyEnvelopes.Arrived> unheard = new ArrayList<>();

  /** Whether its claim is on the way to the disk. */
  boolean claiming;

  /** How it ended while its claim was on the way, if that is not on record. */
  @Nullable AuditEvent unrecordedEnd;

  /** Whether its claim is on disk. */
  boolean claimed;

  /** Whether its claim says that it multiplies, until it has ended. */
  boolean multiplying;

  /** Whether the core was given a message of a peer. */
  boolean heard;

  /** Whether it was ended by an error of this party or of its core. */
  boolean failed;

  /** Whether somebody is to be excluded because of it, and that is not on disk. */
  boolean unexcluded;

  /** The order without its intent, of a session whose signature would differ if made again. */
  @Nullable Order order;

  /** The core's first step, until it is applied. */
  @Nullable Step firstStep;

  /** Why this party refused it, in one line; empty if it did not. */
  String refusal = "";

  /** How the core ended it, if it did. */
  @Nullable Abort abort;

  /**
   * @param orderedNanos when the order came
   * @param onFailure told, in the lane, that a task has failed
   */
  Session(
      SessionId id,
      Member coordinator,
      @Nullable String traceparent,
      WorkPool.Lane lane,
      long orderedNanos,
      SessionLifecycle.Observer observer,
      Consumer<Session> onFailure) {
    this.id = id;
    this.share = id;
    this.coordinator = coordinator;
    this.traceparent = traceparent;
    this.lane = lane;
    this.orderedNanos = orderedNanos;
    this.observer = observer;
    this.onFailure = onFailure;
  }

  /** The work of a session whose order was checked. */
  Operation operation() {
    Operation known = operation;
    if (known == null) {
      throw new IllegalStateException("session " + id + " has no operation while " + state);
    }
    return known;
  }

  /** The plan of a session whose order was checked. */
  SessionPlan plan() {
    SessionPlan known = plan;
    if (known == null) {
      throw new IllegalStateException("session " + id + " has no plan while " + state);
    }
    return known;
  }

  /** The only place where the state changes. */
  void move(SessionLifecycle.Event event) {
    SessionLifecycle.State before = state;
    state = SessionLifecycle.next(before, event);
    log.debug("session {}: {} -> {} -> {}", id, before, event, state);
    observer.moved(before, event, state);
  }

  /** Work on circuits leaves the threads of all other sessions, and comes back after it. */
  void rank() {
    if (!ofPairs || run == null || state.isFinal()) {
      return;
    }
    boolean background = operation().background();
    if (run.computesLong()) {
      lane.priority(background ? WorkPool.Priority.LONG_BACKGROUND : WorkPool.Priority.LONG);
    } else {
      lane.priority(background ? WorkPool.Priority.BACKGROUND : WorkPool.Priority.URGENT);
    }
  }

  /**
   * Does something in the lane after a time, in place of what was to be done before: that counts no
   * more, also if it is due already and waits in the lane.
   */
  void after(WorkPool pool, Duration time, Runnable end) {
    stopClock();
    int number = deadlines;
    deadline =
        pool.after(
            time,
            () ->
                run(
                    () -> {
                      if (number == deadlines) {
                        end.run();
                      }
                    }));
  }

  /** Nothing is done for its time any more. */
  void stopClock() {
    if (deadline != null) {
      deadline.cancel(false);
    }
    deadlines++;
  }

  /** Closes the run, if it has one, and stops its clock. */
  void closeRun() {
    stopClock();
    if (run != null) {
      run.close();
      run = null;
    }
  }

  /** Runs a task in this session's lane, with its ids in every log line. */
  void run(Runnable task) {
    lane.execute(
        () -> {
          try (LogScope scope = LogScope.open().session(id.bytes().toByteArray())) {
            TraceContext.parse(traceparent).ifPresent(scope::trace);
            if (plan != null && plan.request() != null) {
              scope.request(plan.request().requestId());
            }
            task.run();
          } catch (RuntimeException e) {
            log.error("session {} failed while {}", id, state, e);
            onFailure.accept(this);
          }
        });
  }
}
