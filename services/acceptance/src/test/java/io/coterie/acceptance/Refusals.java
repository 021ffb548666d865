package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.coterie.platform.error.ErrorReason;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.Objects;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Expectations about calls that fail. */
final class Refusals {
  private Refusals() {}

  /** The call must fail with exactly this reason, and the status code that goes with it. */
  static ErrorInfo refused(ErrorReason reason, ThrowingCallable call) {
    StatusRuntimeException failure = catchThrowableOfType(StatusRuntimeException.class, call);
    assertThat(failure).as("a call that should fail with %s", reason).isNotNull();
    ErrorInfo info = info(failure);
    assertThat(info.getReason()).as("%s", failure).isEqualTo(reason.name());
    assertThat(info.getDomain()).isEqualTo(ErrorReason.DOMAIN);
    assertThat(failure.getStatus().getCode()).isEqualTo(reason.code());
    return info;
  }

  static ErrorInfo info(StatusRuntimeException failure) {
    for (Any detail : Objects.requireNonNull(StatusProto.fromThrowable(failure)).getDetailsList()) {
      if (detail.is(ErrorInfo.class)) {
        try {
          return detail.unpack(ErrorInfo.class);
        } catch (InvalidProtocolBufferException e) {
          throw new AssertionError(e);
        }
      }
    }
    throw new AssertionError("no ErrorInfo in " + failure, failure);
  }
}
