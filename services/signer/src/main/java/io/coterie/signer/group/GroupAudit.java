package io.coterie.signer.group;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.proto.core.v1.Abort;
import io.coterie.trust.Member;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The audit events of groups: requester, group, step and outcome. */
final class GroupAudit {
  private static final String ORDER = "group.accept";
  private static final String STEP = "group.step";

  private GroupAudit() {}

  /** The order was good, and is claimed with this record. */
  static AuditEvent accepted(GroupPlan plan, Member coordinator) {
    return event(plan, coordinator, ORDER, "accepted", Map.of());
  }

  /** The step is done; written with its result. */
  static AuditEvent done(GroupPlan plan, Member coordinator) {
    return event(plan, coordinator, STEP, "done", Map.of());
  }

  /** The deadline passed before the step was done. */
  static AuditEvent timedOut(GroupPlan plan, Member coordinator, int round, List<Integer> missing) {
    return event(
        plan,
        coordinator,
        STEP,
        "timed_out",
        Map.of("round", Integer.toString(round), "missing", ids(missing)));
  }

  /** The core ended the session. */
  static AuditEvent aborted(GroupPlan plan, Member coordinator, String cause, Abort abort) {
    return event(
        plan,
        coordinator,
        STEP,
        "aborted",
        Map.of(
            "cause",
            cause,
            "round",
            Integer.toString(abort.getRound()),
            "culprits",
            ids(abort.getCulpritsList()),
            "suspects",
            ids(abort.getSuspectsList())));
  }

  private static String ids(List<Integer> parties) {
    return parties.stream().map(String::valueOf).collect(Collectors.joining(","));
  }

  private static AuditEvent event(
      GroupPlan plan, Member coordinator, String action, String outcome, Map<String, String> more) {
    Map<String, String> fields = new TreeMap<>(more);
    HexFormat hex = HexFormat.of();
    fields.put("coordinator", coordinator.name());
    fields.put("group", plan.group());
    fields.put("epoch", Integer.toString(plan.epoch()));
    fields.put("step", plan.step().label());
    fields.put("request_id", plan.intent().requestId());
    fields.put("intent_digest", hex.formatHex(plan.intent().digest().toByteArray()));
    fields.put("session_id", hex.formatHex(plan.id().bytes().toByteArray()));
    return AuditEvent.of(plan.intent().requester(), action, outcome, fields);
  }
}
