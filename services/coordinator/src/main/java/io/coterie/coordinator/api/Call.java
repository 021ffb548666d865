package io.coterie.coordinator.api;

import io.coterie.coordinator.custody.request.Caller;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.TraceContext;
import io.grpc.Context;
import io.grpc.Deadline;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;

/**
 * One call of the API: who calls, what is known about it for the audit trail, how long it lasts.
 */
final class Call {
  static final Context.Key<Call> KEY = Context.key("coterie-call");

  /** Kept of a call's deadline for the way of the answer, so that the answer can say why. */
  private static final Duration MARGIN = Duration.ofMillis(100);

  private final Client client;
  private final TraceContext trace;
  private final Duration longestWait;
  private final ConcurrentSkipListMap<String, String> facts = new ConcurrentSkipListMap<>();

  Call(Client client, TraceContext trace, Duration longestWait) {
    this.client = client;
    this.trace = trace;
    this.longestWait = longestWait;
  }

  /** The call this thread serves. */
  static Call current() {
    Call call = KEY.get();
    if (call == null) {
      throw new CustodyException(ErrorReason.INTERNAL);
    }
    return call;
  }

  Client client() {
    return client;
  }

  TraceContext trace() {
    return trace;
  }

  /** Notes what the call is about. */
  void about(VerifiedIntent intent) {
    facts.put("requester", intent.requester());
    facts.put("request_id", intent.requestId());
    facts.put("key", intent.key());
    facts.put("digest", java.util.HexFormat.of().formatHex(intent.digest().toByteArray()));
  }

  /** Notes one fact: ids and digests only. */
  void about(String name, String value) {
    facts.put(name, value);
  }

  Map<String, String> facts() {
    return new TreeMap<>(facts);
  }

  /**
   * How long the answer may take: until shortly before the call's deadline, or a configured time.
   */
  Caller caller() {
    Deadline deadline = Context.current().getDeadline();
    long nanos = longestWait.toNanos();
    if (deadline != null) {
      long remaining = Math.max(0, deadline.timeRemaining(TimeUnit.NANOSECONDS));
      nanos = Math.min(nanos, remaining - Math.min(MARGIN.toNanos(), remaining / 10));
    }
    return new Caller(System.nanoTime() + nanos, trace);
  }
}
