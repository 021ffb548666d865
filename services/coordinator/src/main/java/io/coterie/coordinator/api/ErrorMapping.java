package io.coterie.coordinator.api;

import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.grpc.ForwardingServerCall;
import io.grpc.ForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Nothing but documented failures leaves: an exception of a handler becomes a status with its
 * reason, and a status without one becomes INTERNAL. Texts of exceptions stay here.
 */
public final class ErrorMapping implements ServerInterceptor {
  private static final Logger log = LoggerFactory.getLogger(ErrorMapping.class);

  @Override
  public <Q, A> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
    if (Call.KEY.get() == null) {
      // Health and reflection have statuses of their own.
      return next.startCall(call, headers);
    }
    AtomicBoolean closed = new AtomicBoolean();
    ServerCall<Q, A> checked =
        new ForwardingServerCall.SimpleForwardingServerCall<>(call) {
          @Override
          public void close(Status status, Metadata trailers) {
            if (!closed.compareAndSet(false, true)) {
              return;
            }
            if (status.isOk()
                || StatusErrors.reason(status.asRuntimeException(trailers)).isPresent()) {
              super.close(status, trailers);
            } else {
              StatusRuntimeException mapped = map(status.asRuntimeException(trailers));
              super.close(mapped.getStatus(), trailers(mapped));
            }
          }
        };
    return new ForwardingServerCallListener.SimpleForwardingServerCallListener<>(
        next.startCall(checked, headers)) {
      @Override
      public void onMessage(Q message) {
        guard(() -> super.onMessage(message));
      }

      @Override
      public void onHalfClose() {
        guard(super::onHalfClose);
      }

      private void guard(Runnable handler) {
        if (closed.get()) {
          return;
        }
        try {
          handler.run();
        } catch (RuntimeException e) {
          StatusRuntimeException mapped = map(e);
          checked.close(mapped.getStatus(), trailers(mapped));
        }
      }
    };
  }

  private static Metadata trailers(StatusRuntimeException e) {
    Metadata trailers = e.getTrailers();
    return trailers == null ? new Metadata() : trailers;
  }

  private static StatusRuntimeException map(RuntimeException e) {
    return switch (e) {
      case CustodyException known -> StatusErrors.of(known);
      case StatusRuntimeException s when StatusErrors.reason(s).isPresent() -> s;
      case StoreUnavailableException s -> {
        log.error("a call failed: {}", s.getMessage(), s);
        yield StatusErrors.of(ErrorReason.STORE_UNAVAILABLE);
      }
      // How protobuf's marshaller reports bytes that are not the message.
      case StatusRuntimeException s
          when s.getStatus().getCause()
              instanceof com.google.protobuf.InvalidProtocolBufferException ->
          StatusErrors.of(
              ErrorReason.INTENT_MALFORMED,
              java.util.Map.of(StatusErrors.PROBLEM, "REQUEST_UNDECODABLE"));
      default -> {
        log.error("a call failed", e);
        yield StatusErrors.of(ErrorReason.INTERNAL);
      }
    };
  }
}
