package io.coterie.coordinator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.rpc.ErrorInfo;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Assertions about calls. */
final class Calls {
  /** How long something may take on a busy machine. */
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private Calls() {}

  /**
   * The call fails with that reason and its status; gives the metadata. It is made again if the
   * client's own clock ended it: on a busy machine the coordinator's answer, which it gives shortly
   * before the deadline, comes too late.
   */
  static Map<String, String> fails(ErrorReason reason, Callable<?> call) {
    return fails(List.of(reason), call);
  }

  /** The metadata of a failure that has one of the reasons, as it depends on the time. */
  static Map<String, String> fails(List<ErrorReason> reasons, Callable<?> call) {
    StatusRuntimeException thrown = failure(reasons, call);
    ErrorInfo info =
        StatusErrors.info(thrown).orElseThrow(() -> new AssertionError("no reason in " + thrown));
    assertThat(reasons).extracting(ErrorReason::name).contains(info.getReason());
    ErrorReason reason = ErrorReason.valueOf(info.getReason());
    assertThat(thrown.getStatus().getCode()).isEqualTo(reason.code());
    assertThat(String.valueOf(thrown.getStatus().getDescription()))
        .doesNotContain("Exception", "\tat ");
    return info.getMetadataMap();
  }

  private static StatusRuntimeException failure(List<ErrorReason> reasons, Callable<?> call) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    StatusRuntimeException thrown;
    do {
      thrown = catchThrowableOfType(StatusRuntimeException.class, call::call);
      assertThat(thrown).as("a failure with %s", reasons).isNotNull();
    } while (gaveUp(thrown) && System.nanoTime() < end);
    return thrown;
  }

  private static boolean gaveUp(StatusRuntimeException thrown) {
    return thrown.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED
        && StatusErrors.info(thrown).isEmpty();
  }

  /** Waits for something that must become true; on a busy machine that may take long. */
  static void eventually(BooleanSupplier condition) {
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("did not become true in time").isLessThan(deadline);
      LockSupport.parkNanos(10_000_000);
    }
  }
}
