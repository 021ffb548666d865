package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.SessionPlan.Work;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A session that makes presignatures. The coordinator sees nothing of them but their ids, which
 * every party reports once it keeps its shares.
 */
public final class PresignSession extends ObservedSession {
  /** Bytes of a presignature's id. */
  private static final int ID_BYTES = 32;

  private final Work.Presign work;

  /** The ids that each party reported. Guarded by this. */
  private final Map<Integer, List<ByteString>> completed = new HashMap<>();

  PresignSession(
      ByteString order,
      SessionPlan plan,
      Work.Presign work,
      Protocol protocol,
      Sessions sessions,
      SecureChannel channel) {
    super(order, plan, protocol, sessions, channel);
    this.work = work;
  }

  @Override
  void onEnvelope(Member sender, SessionEnvelope envelope, long receivedNanos) {
    // The parties send their envelopes to each other alone.
  }

  @Override
  synchronized void onReport(Member sender, SessionReport report) {
    if (hasEnded()) {
      return;
    }
    switch (report.getOutcomeCase()) {
      case COMPLETED -> {
        List<ByteString> made = report.getCompleted().getPresignatureIdsList();
        if (made.size() != work.count()
            || new HashSet<>(made).size() != made.size()
            || made.stream().anyMatch(id -> id.size() != ID_BYTES)) {
          sessions.telemetry().dropped("presignature_id");
          return;
        }
        completed.putIfAbsent(sender.partyId(), made);
        judge();
      }
      // All parties of the set are needed, so the first one that drops out ends it.
      case REFUSED -> end(SessionOutcome.Refused.of(sender.partyId(), report.getRefused()));
      case ABORTED ->
          end(
              new SessionOutcome.Aborted(
                  report.getAborted().getRound(),
                  known(report.getAborted().getCause()),
                  Set.of(),
                  suspects(sender, report.getAborted()),
                  false,
                  false));
      case TIMED_OUT ->
          end(
              new SessionOutcome.TimedOut(
                  report.getTimedOut().getRound(), partiesWithout(completed.keySet())));
      case OUTCOME_NOT_SET -> {}
    }
  }

  private void judge() {
    if (completed.size() < plan.parties().size()) {
      return;
    }
    // Each party gives them in the same order, and each of them is the same at all parties.
    Set<List<ByteString>> distinct = new HashSet<>(completed.values());
    end(
        distinct.size() == 1
            ? new SessionOutcome.Presigned(distinct.iterator().next())
            : new SessionOutcome.Aborted(
                0, AbortCause.ABORT_CAUSE_BROADCAST_MISMATCH, Set.of(), Set.of(), false, false));
  }

  @Override
  boolean latenessCounts() {
    return false;
  }

  @Override
  synchronized SessionOutcome timedOut() {
    return new SessionOutcome.TimedOut(0, partiesWithout(completed.keySet()));
  }

  @Override
  void release() {}
}
