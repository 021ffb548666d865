package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.AuditLog;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.trust.Member;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The audit events of sessions: requester, key, digest, session, outcome, and a payload's decoded
 * summary; never the payload itself. Those of keys are in {@code share}.
 */
final class Audit {
  private static final String ORDER = "order.accept";
  private static final String SESSION = "session.end";

  private Audit() {}

  /**
   * The order of a requester was good, and is claimed with this record.
   *
   * @param payload as this party decoded it; null if it makes or replaces shares
   * @param approvals as this party counted them, which name nobody; null if it needs none
   */
  static AuditEvent accepted(
      SessionPlan plan,
      Member coordinator,
      @Nullable DecodedPayload payload,
      ApprovalGate.@Nullable Counted approvals) {
    Map<String, String> fields = fields(plan, coordinator);
    if (approvals != null) {
      fields.put("approvers", approvals.group());
      fields.put("approvers_epoch", Integer.toString(approvals.epoch()));
      fields.put("approvals", Integer.toString(approvals.tags().size()));
      fields.put(
          "approval_tags",
          approvals.tags().stream().map(Audit::hex).collect(Collectors.joining(",")));
    }
    if (payload != null) {
      fields.put("payload", payload.kind().label());
      int number = 0;
      for (DecodedPayload.Field field : payload.fields()) {
        number++;
        fields.put("payload.%03d.%s".formatted(number, field.name()), field.value());
      }
    }
    return AuditEvent.of(actor(plan, coordinator), ORDER, "accepted", fields);
  }

  /** This party says that it never signs for a request; written with that word. */
  static AuditEvent never(VerifiedIntent.Cancellation cancellation, Member coordinator) {
    return receipt(cancellation, coordinator, "never", new TreeMap<>());
  }

  /** This party says that a request of that intent was signed. */
  static AuditEvent signedReceipt(
      VerifiedIntent.Cancellation cancellation, Member coordinator, ByteString intentDigest) {
    return receipt(
        cancellation,
        coordinator,
        "signed",
        new TreeMap<>(Map.of("intent_digest", hex(intentDigest))));
  }

  private static AuditEvent receipt(
      VerifiedIntent.Cancellation cancellation,
      Member coordinator,
      String kind,
      Map<String, String> fields) {
    fields.put("coordinator", coordinator.name());
    fields.put("key", cancellation.key());
    fields.put("reshare_epoch", Integer.toString(cancellation.reshareEpoch()));
    fields.put("request_id", cancellation.requestId());
    fields.put("cancel_digest", hex(cancellation.digest()));
    return AuditEvent.of(cancellation.requester(), AuditLog.RECEIPT, kind, fields);
  }

  /**
   * The same event, with the number of refusals that were not recorded since the last one that was.
   */
  static AuditEvent after(AuditEvent event, long unrecorded) {
    return unrecorded == 0 ? event : with(event, "unrecorded_refusals", Long.toString(unrecorded));
  }

  /**
   * How a session with a plan ended.
   *
   * @param result the signature or the public key; empty if there is none
   */
  static AuditEvent ended(
      SessionPlan plan, Member coordinator, String outcome, String cause, ByteString result) {
    Map<String, String> fields = fields(plan, coordinator);
    fields.put("cause", cause);
    if (!result.isEmpty()) {
      fields.put("result_digest", hex(IntentVerifier.digest(result)));
    }
    return AuditEvent.of(actor(plan, coordinator), SESSION, outcome, fields);
  }

  /** The core's end of a session, with the ids of those that it names. */
  static AuditEvent aborted(SessionPlan plan, Member coordinator, String cause, Abort abort) {
    AuditEvent event = ended(plan, coordinator, State.ABORTED.label(), cause, ByteString.EMPTY);
    Map<String, String> fields = new TreeMap<>(event.fields());
    fields.put("round", Integer.toString(abort.getRound()));
    name(fields, "culprits", abort.getCulpritsList());
    name(fields, "suspects", abort.getSuspectsList());
    return AuditEvent.of(event.actor(), event.action(), event.outcome(), fields);
  }

  private static void name(Map<String, String> fields, String as, List<Integer> parties) {
    if (!parties.isEmpty()) {
      fields.put(as, parties.stream().map(String::valueOf).collect(Collectors.joining(",")));
    }
  }

  /**
   * An order that was refused before it was known whose it is.
   *
   * @param detail which rule it broke, for people
   */
  static AuditEvent refused(SessionId session, Member sender, String cause, String detail) {
    AuditEvent event =
        AuditEvent.of(
            sender.name(),
            ORDER,
            "refused",
            Map.of("session_id", hex(session.bytes()), "cause", cause));
    return withDetail(event, detail);
  }

  /** The same event with the rule by which this party refused, in one line; empty adds nothing. */
  static AuditEvent withDetail(AuditEvent event, String detail) {
    return detail.isEmpty() ? event : with(event, "detail", StatusErrors.detail(detail));
  }

  private static AuditEvent with(AuditEvent event, String name, String value) {
    Map<String, String> fields = new TreeMap<>(event.fields());
    fields.put(name, value);
    return AuditEvent.of(event.actor(), event.action(), event.outcome(), fields);
  }

  private static Map<String, String> fields(SessionPlan plan, Member coordinator) {
    Map<String, String> fields = new TreeMap<>();
    fields.put("coordinator", coordinator.name());
    fields.put("protocol", plan.protocol().label());
    fields.put("key", plan.key());
    fields.put("epoch", Integer.toString(plan.epoch()));
    SessionPlan.Request request = plan.request();
    if (request != null) {
      fields.put("request_id", request.requestId());
      fields.put("intent_digest", hex(request.intentDigest()));
    }
    KeyTarget target = plan.target();
    if (!target.path().isEmpty()) {
      fields.put("derivation_path", target.pathText());
    }
    target.taproot().ifPresent(root -> fields.put("taproot_merkle_root", hex(root)));
    if (plan.work() instanceof SessionPlan.Work.SignPresigned(ByteString presignatureId)) {
      fields.put("presignature_id", hex(presignatureId));
    }
    fields.put("session_id", hex(plan.id().bytes()));
    return fields;
  }

  /** The actor that caused a session: its requester, or the coordinator if it serves no request. */
  private static String actor(SessionPlan plan, Member coordinator) {
    SessionPlan.Request request = plan.request();
    return request == null ? coordinator.name() : request.requester();
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }
}
