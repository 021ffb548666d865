package io.coterie.signer.group;

import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.trust.Member;
import java.util.Collection;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Sends what the core says to the parties of an order, and tells its coordinator, the log and the
 * metrics how the order ended here. It decides nothing.
 */
final class GroupReports {
  private static final Logger log = LoggerFactory.getLogger(GroupReports.class);

  private static final String UNKNOWN = "unknown";

  private final PartyNetwork network;
  private final GroupTelemetry telemetry;

  GroupReports(PartyNetwork network, GroupTelemetry telemetry) {
    this.network = network;
    this.telemetry = telemetry;
  }

  /** A message of the core leaves. */
  void message(GroupRun run, Outgoing outgoing) {
    PartyMessage message =
        PartyMessage.newBuilder()
            .setGroupEnvelope(
                SessionEnvelope.newBuilder()
                    .setSessionId(run.plan().session().bytes())
                    .setEnvelope(outgoing.getEnvelope()))
            .build();
    Collection<Member> others =
        run.plan().doers().stream().filter(member -> !member.equals(network.self())).toList();
    boolean joins = run.hasMember();
    if (outgoing.getRecipient() == 0) {
      network.broadcast(others, message, run.traceparent);
    }
    // The member of a join is no member of the channel: the coordinator carries its envelopes.
    if (joins
        && (outgoing.getRecipient() == 0
            || outgoing.getRecipient() == run.plan().members().memberNumber())) {
      network.send(run.coordinator, message, run.traceparent);
    }
    others.stream()
        .filter(member -> member.partyId() == outgoing.getRecipient())
        .forEach(member -> network.send(member, message, run.traceparent));
  }

  /** The coordinator of an order gets a report. */
  void tell(GroupRun run, GroupReport report) {
    network.send(
        run.coordinator, PartyMessage.newBuilder().setGroupReport(report).build(), run.traceparent);
  }

  /** An order came from a party, which misbehaves: nobody is answered. */
  void orderOfParty() {
    telemetry.groupStep(UNKNOWN, "refused", "not_a_coordinator");
  }

  /** An order has ended. */
  void ended(GroupRun run, String outcome, String cause) {
    GroupPlan plan = run.plan;
    String step = plan == null ? UNKNOWN : plan.step().label();
    telemetry.groupStep(step, outcome, cause);
    // Anybody who can be a coordinator could fill the log with orders that no requester has signed.
    log.atLevel(plan == null ? Level.DEBUG : Level.INFO)
        .log(
            "{} of {} {} ({})",
            step,
            plan == null ? "no group" : plan.group() + " epoch " + plan.epoch(),
            outcome,
            cause);
  }

  /** As in metrics and the audit trail: {@code wrong_opening}. */
  static String label(AbortCause cause) {
    return cause == AbortCause.UNRECOGNIZED
        ? "unrecognized"
        : cause.name().substring("ABORT_CAUSE_".length()).toLowerCase(Locale.ROOT);
  }
}
