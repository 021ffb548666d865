package io.coterie.coordinator.api;

import com.google.rpc.Status;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.custody.v1.SignedIntent;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One call of the API: its caller, the facts for the audit trail, its duration. */
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

  /** A step of a call that waits, for as long as the caller may. */
  @FunctionalInterface
  interface Work<R> {
    R await(Caller caller) throws InterruptedException;
  }

  /**
   * The intent that a call submits.
   *
   * @param kind of the intents that the call is for
   * @throws CustodyException if it is none, is of another kind, or the client may not submit it
   */
  <V extends VerifiedIntent> V accept(IntentCheck intents, SignedIntent signed, Class<V> kind) {
    VerifiedIntent intent = intents.check(signed);
    if (!kind.isInstance(intent)) {
      throw new CustodyException(
          ErrorReason.INTENT_MALFORMED,
          Map.of(StatusErrors.PROBLEM, IntentProblem.PAYLOAD_TYPE_UNKNOWN.name()));
    }
    about(intent);
    client.requireMaySubmitFor(intent.requester());
    return kind.cast(intent);
  }

  /**
   * Waits for the result of a call.
   *
   * @throws CustodyException with DRAINING if this replica stops meanwhile
   */
  <R> R await(Work<R> work) {
    try {
      return work.await(caller());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new CustodyException(ErrorReason.DRAINING);
    }
  }

  /** Ends the call with the error that a request has failed with, if there is one. */
  static void requireSuccess(@Nullable Status error) {
    if (error != null) {
      throw StatusProto.toStatusRuntimeException(error);
    }
  }

  /** Notes the intent of the call. */
  private void about(VerifiedIntent intent) {
    facts.put("requester", intent.requester());
    facts.put("request_id", intent.requestId());
    facts.put("key", intent.key());
    facts.put("digest", HexFormat.of().formatHex(intent.digest().toByteArray()));
  }

  /** Notes one fact: ids and digests only. */
  void about(String name, String value) {
    facts.put(name, value);
  }

  Map<String, String> facts() {
    return new TreeMap<>(facts);
  }

  /** The caller of a call that goes on after this thread. */
  Caller caller(Context context) {
    return caller(context.getDeadline());
  }

  /** The answer may take until shortly before the call's deadline, or a configured time. */
  private Caller caller() {
    return caller(Context.current());
  }

  private Caller caller(@Nullable Deadline deadline) {
    long nanos = longestWait.toNanos();
    if (deadline != null) {
      long remaining = Math.max(0, deadline.timeRemaining(TimeUnit.NANOSECONDS));
      nanos = Math.min(nanos, remaining - Math.min(MARGIN.toNanos(), remaining / 10));
    }
    return new Caller(System.nanoTime() + nanos, trace);
  }
}
