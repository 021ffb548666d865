package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.trust.Member;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;

/** The audit events of keys: which share this party uses, has abandoned, or has left to others. */
final class KeyAudit {
  private static final String ACTION = "key.activate";

  private KeyAudit() {}

  /** A share became the active one, or this party has none any more. */
  static AuditEvent activated(KeyShare share) {
    return AuditEvent.of(
        share.origin().requester(), ACTION, share.left() ? "left" : "active", fields(share));
  }

  /** A refresh is not waited for any more: a party says that it has no share of it. */
  static AuditEvent abandoned(KeyShare share, Member decliner) {
    Map<String, String> fields = fields(share);
    fields.put("said_by", decliner.name());
    return AuditEvent.of(share.origin().requester(), ACTION, "abandoned", fields);
  }

  private static Map<String, String> fields(KeyShare share) {
    return new TreeMap<>(
        Map.of(
            "key", share.key(),
            "epoch", Integer.toString(share.epoch()),
            "request_id", share.origin().requestId(),
            "intent_digest", hex(share.origin().intentDigest()),
            "session_id", hex(share.session().bytes()),
            "result_digest", hex(IntentVerifier.digest(share.keyPublic().getPublicKey()))));
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }
}
