package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.AuditLog;
import io.coterie.signer.party.EarlyEnvelopes;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.Locale;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Records how sessions ended: in the metrics, in the log and, once a requester is known to have
 * signed for one, in the audit trail.
 */
final class SessionRecords {
  /** The cause of an end that needs none. */
  static final String NO_CAUSE = "none";

  private static final Logger log = LoggerFactory.getLogger(SessionRecords.class);
  private static final String NOT_A_COORDINATOR = "not_a_coordinator";
  private static final String UNKNOWN_PROTOCOL = "unknown";

  private final AuditLog audit;
  private final SessionTelemetry telemetry;
  private final LongSupplier nanos;
  private final RefusalRate refusals;

  /** Apart from the rest: no stranger takes the room of refusals to requesters. */
  private final RefusalRate strangers;

  /**
   * @param nanos a clock that only goes forward
   */
  SessionRecords(AuditLog audit, SessionTelemetry telemetry, LongSupplier nanos) {
    this.audit = audit;
    this.telemetry = telemetry;
    this.nanos = nanos;
    this.refusals = new RefusalRate(nanos.getAsLong());
    this.strangers = new RefusalRate(nanos.getAsLong());
  }

  /** As in metrics and the audit trail: {@code key_frozen}. */
  static String label(RefusalReason reason) {
    return reason.name().substring("REFUSAL_REASON_".length()).toLowerCase(Locale.ROOT);
  }

  /** As in metrics and the audit trail: {@code bad_proof}. */
  static String label(AbortCause cause) {
    return cause == AbortCause.UNRECOGNIZED
        ? "unrecognized"
        : cause.name().substring("ABORT_CAUSE_".length()).toLowerCase(Locale.ROOT);
  }

  /** An order came from a party, which misbehaves: nobody is answered. */
  void orderOfParty(SessionId id, Member sender) {
    telemetry.ended(UNKNOWN_PROTOCOL, State.REFUSED, NOT_A_COORDINATOR);
    logged(Audit.refused(id, sender, NOT_A_COORDINATOR, ""));
  }

  /** An order was refused before this party looked at its requester; it becomes no session. */
  void refusedUnseen(Session session, RefusalReason reason, String detail) {
    telemetry.ended(UNKNOWN_PROTOCOL, State.REFUSED, label(reason));
    logged(Audit.refused(session.id, session.coordinator, label(reason), detail));
  }

  /** The event that ended a session goes to the audit trail. */
  void audited(Session session, Event event, String cause, ByteString result) {
    SessionPlan plan = session.plan;
    Abort abort = session.abort;
    AuditEvent end =
        plan == null
            ? Audit.refused(session.id, session.coordinator, cause, session.refusal)
            : session.state == State.ABORTED && abort != null
                ? Audit.aborted(plan, session.coordinator, cause, abort)
                : Audit.ended(plan, session.coordinator, session.state.label(), cause, result);
    if (session.state == State.REFUSED && plan != null) {
      end = Audit.withDetail(end, session.refusal);
    }
    if (!session.signed && !session.claiming && !session.claimed) {
      logged(end);
    } else if (session.state == State.REFUSED || !session.claimed) {
      // Its record counts for nobody on the disk, and a coordinator can have any number of them.
      if (!refusal(end) && session.claiming) {
        session.unrecordedEnd = end;
      }
    } else if (event != Event.PRESIGNED) {
      // A presignature signs nothing; the signature that uses it is on record.
      audit.record(end);
    }
  }

  /** The claim of a session that had ended meanwhile is on disk, and with it that it began. */
  void claimedAfterEnd(Session session) {
    if (session.unrecordedEnd != null) {
      audit.record(session.unrecordedEnd);
      session.unrecordedEnd = null;
    }
  }

  /** The end of a session is counted and logged. */
  void counted(Session session, Event event, String cause) {
    SessionPlan plan = session.plan;
    String protocol = plan == null ? UNKNOWN_PROTOCOL : plan.protocol().label();
    telemetry.ended(protocol, session.state, cause);
    // A refusal, and the end of a stranger's order, has a line of its own already, up to a rate.
    boolean isLogged = session.state == State.REFUSED || !session.signed;
    log.atLevel(event == Event.PRESIGNED || isLogged ? Level.DEBUG : Level.INFO)
        .log(
            "{} of {} {} ({}{}) after {} ms",
            protocol,
            plan == null ? "no key" : plan.key(),
            session.state.label(),
            cause,
            session.refusal.isEmpty() ? "" : ": " + StatusErrors.detail(session.refusal),
            Duration.ofNanos(nanos.getAsLong() - session.orderedNanos).toMillis());
  }

  /**
   * The last missing message of the session's round has come.
   *
   * @param last that message
   * @param straggler roster name of its sender; null if the roster has none
   */
  void roundLeft(
      Session session, EarlyEnvelopes.Arrived last, @Nullable String straggler, long nowNanos) {
    Protocol protocol = session.plan().protocol();
    // A session that only waits for its result lets messages lie on purpose, so its round ends when
    // the last one came.
    long left = session.state == State.COMBINING ? last.receivedNanos() : nowNanos;
    telemetry.roundLeft(protocol, session.round, Math.max(0, left - session.roundEnteredNanos));
    if (straggler != null) {
      long waited = Math.max(0, last.receivedNanos() - session.sentNanos);
      telemetry.waited(protocol, session.round, straggler, waited);
    }
  }

  /**
   * The one message of a session has left, which waits for nobody's: its round was all that this
   * party did, from the order on.
   */
  void contributed(Session session, long nowNanos) {
    telemetry.roundLeft(
        session.plan().protocol(), session.round, Math.max(0, nowNanos - session.orderedNanos));
  }

  /** The core ended the run of a session. */
  void aborted(SessionPlan plan, Abort abort) {
    log.warn(
        "{} aborted in round {}: {}, culprits {}, advice {}",
        plan.protocol().label(),
        abort.getRound(),
        abort.getCause(),
        abort.getCulpritsList(),
        abort.getAdvice());
  }

  /** A run was found broken whose session has ended. */
  void brokenAfterEnd(Session session, Abort abort) {
    SessionPlan plan = session.plan();
    log.warn(
        "evidence after the end of a session shows that its {} was broken: {}, culprits {}",
        plan.protocol().label(),
        abort.getCause(),
        abort.getCulpritsList());
    audit.record(Audit.aborted(plan, session.coordinator, label(abort.getCause()), abort));
  }

  /**
   * No requester is known to have signed for it, so nothing is written down: anybody who reaches
   * this party, or a coordinator, could have any number of them.
   */
  private void logged(AuditEvent refusal) {
    long unlogged = strangers.next(nanos.getAsLong());
    if (unlogged >= 0) {
      log.info(
          "{} {}, not on record: {}; {} more since the line before",
          refusal.action(),
          refusal.outcome(),
          refusal.fields(),
          unlogged);
    }
  }

  /** Whether it is recorded by itself, and not only counted. */
  private boolean refusal(AuditEvent refusal) {
    long unrecorded = refusals.next(nanos.getAsLong());
    if (unrecorded >= 0) {
      audit.record(Audit.after(refusal, unrecorded));
      log.info("{} {}: {}", refusal.action(), refusal.outcome(), refusal.fields());
    }
    return unrecorded >= 0;
  }
}
