package io.coterie.platform.error;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Any;
import com.google.rpc.RetryInfo;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class StatusErrorsTest {

  @ParameterizedTest
  @EnumSource(ErrorReason.class)
  void every_reason_survives_the_wire(ErrorReason reason) {
    StatusRuntimeException thrown =
        StatusErrors.of(new CustodyException(reason, Map.of(StatusErrors.PARTY, "beta")));
    assertThat(thrown.getStatus().getCode()).isEqualTo(reason.code()).isNotEqualTo(Status.Code.OK);
    assertThat(StatusErrors.reason(thrown)).contains(reason);
    assertThat(StatusErrors.info(thrown).orElseThrow().getMetadataMap())
        .containsExactlyEntriesOf(Map.of("party", "beta"));
    assertThat(StatusErrors.reason(StatusErrors.status(reason, Map.of()))).contains(reason);
  }

  @Test
  void whoever_asks_too_much_is_told_when_to_ask_again() throws Exception {
    for (ErrorReason reason : ErrorReason.values()) {
      List<Duration> pauses = new ArrayList<>();
      for (Any detail : StatusErrors.status(reason, Map.of()).getDetailsList()) {
        if (detail.is(RetryInfo.class)) {
          pauses.add(
              Duration.ofSeconds(detail.unpack(RetryInfo.class).getRetryDelay().getSeconds()));
        }
      }
      assertThat(pauses)
          .as(reason.name())
          .isEqualTo(
              reason.code() == Status.Code.RESOURCE_EXHAUSTED
                  ? List.of(Duration.ofSeconds(1))
                  : List.of());
    }
  }

  @Test
  void statuses_of_others_have_no_reason() {
    assertThat(StatusErrors.reason(Status.UNAVAILABLE.asRuntimeException())).isEmpty();
    assertThat(StatusErrors.reason(new IllegalStateException("x"))).isEmpty();
  }

  @Test
  void a_connection_that_closed_under_a_call_was_unavailable() {
    Status closed = Status.UNKNOWN.withDescription("channel closed");
    assertThat(
            StatusErrors.code(closed.withCause(new ClosedChannelException()).asRuntimeException()))
        .isEqualTo(Status.Code.UNAVAILABLE);
    assertThat(StatusErrors.code(closed.asRuntimeException())).isEqualTo(Status.Code.UNKNOWN);
    assertThat(
            StatusErrors.code(
                Status.UNKNOWN.withCause(new IllegalStateException()).asRuntimeException()))
        .isEqualTo(Status.Code.UNKNOWN);
    assertThat(StatusErrors.code(StatusErrors.of(ErrorReason.KEY_EXISTS)))
        .isEqualTo(ErrorReason.KEY_EXISTS.code());
  }
}
