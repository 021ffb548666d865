package io.coterie.platform.audit;

import io.coterie.platform.payload.DecodedPayload;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * An event: its actor, its action and its outcome. It has ids, digests and the fields of a decoded
 * payload, never the payload itself.
 *
 * @param actor its cause: a requester, a member of the roster, or this service
 * @param action verb in lower case with dots, for example {@code signing.claim}
 * @param outcome for example {@code signed}, or the name of an error reason
 * @param fields further facts in the order of their names: {@code key}, {@code digest}, {@code
 *     session_id}, {@code request_id}, {@code party}, ...
 */
public record AuditEvent(
    String actor, String action, String outcome, SortedMap<String, String> fields) {
  /** Fields of an event: every line of a decoded payload, and what else its record says. */
  public static final int MAX_FIELDS = DecodedPayload.MAX_FIELDS + 16;

  /** Characters of any text in an event. */
  public static final int MAX_TEXT = 512;

  public AuditEvent {
    fields = java.util.Collections.unmodifiableSortedMap(new TreeMap<>(fields));
    if (fields.size() > MAX_FIELDS) {
      throw new IllegalArgumentException("an audit event has at most " + MAX_FIELDS + " fields");
    }
    requireText(actor);
    requireText(action);
    requireText(outcome);
    fields.forEach(
        (name, value) -> {
          requireText(name);
          requireText(value);
        });
  }

  /** An event from unordered fields. */
  public static AuditEvent of(
      String actor, String action, String outcome, Map<String, String> fields) {
    return new AuditEvent(actor, action, outcome, new TreeMap<>(fields));
  }

  private static void requireText(String text) {
    if (text.length() > MAX_TEXT) {
      throw new IllegalArgumentException("a text of an audit event is longer than " + MAX_TEXT);
    }
  }
}
