package io.coterie.coordinator.api;

import io.coterie.coordinator.telemetry.CoordinatorAudit;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.grpc.Context;
import io.grpc.ForwardingServerCall;
import io.grpc.ForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Measures every call as its client sees it, and records those that ask for something to be made or
 * that were refused.
 */
public final class CallRecorder implements ServerInterceptor {
  private static final String NONE = "none";

  private final CoordinatorMetrics metrics;
  private final CoordinatorAudit audit;

  public CallRecorder(CoordinatorMetrics metrics, CoordinatorAudit audit) {
    this.metrics = metrics;
    this.audit = audit;
  }

  @Override
  public <Q, A> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
    long started = System.nanoTime();
    Call facts = Call.KEY.get();
    String method = String.valueOf(call.getMethodDescriptor().getBareMethodName());
    AtomicBoolean recorded = new AtomicBoolean();
    ServerCall<Q, A> watched =
        new ForwardingServerCall.SimpleForwardingServerCall<>(call) {
          @Override
          public void close(Status status, Metadata trailers) {
            // An answer that comes after the client has gone is not an answer.
            if (!call.isCancelled() && recorded.compareAndSet(false, true)) {
              record(method, status, reason(status, trailers), started, facts);
            }
            super.close(status, trailers);
          }
        };
    Context context = Context.current();
    return new ForwardingServerCallListener.SimpleForwardingServerCallListener<>(
        next.startCall(watched, headers)) {
      @Override
      public void onCancel() {
        if (recorded.compareAndSet(false, true)) {
          Status status = io.grpc.Contexts.statusFromCancelled(context);
          record(method, status == null ? Status.CANCELLED : status, NONE, started, facts);
        }
        super.onCancel();
      }
    };
  }

  private static String reason(Status status, Metadata trailers) {
    return status.isOk()
        ? NONE
        : StatusErrors.reason(status.asRuntimeException(trailers))
            .map(ErrorReason::name)
            .orElse(NONE);
  }

  private void record(
      String method, Status status, String reason, long started, @Nullable Call call) {
    metrics.requested(
        method, status.getCode().name(), reason, Duration.ofNanos(System.nanoTime() - started));
    if (call == null) {
      return;
    }
    Map<String, String> facts = call.facts();
    if (!facts.isEmpty() || !status.isOk()) {
      facts.put("trace_id", call.trace().traceId());
      audit.record(
          call.client().name(),
          method,
          reason.equals(NONE) ? status.getCode().name() : reason,
          facts);
    }
  }
}
