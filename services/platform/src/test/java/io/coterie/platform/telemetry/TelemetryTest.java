package io.coterie.platform.telemetry;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.MDC;

class TelemetryTest {
  private static final String EXAMPLE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

  @Test
  void reads_writes_and_continues_a_trace() {
    TraceContext trace = TraceContext.parse(EXAMPLE).orElseThrow();
    assertThat(trace.traceparent()).isEqualTo(EXAMPLE);
    TraceContext child = TraceContext.continueOrCreate(EXAMPLE, new Random(1));
    assertThat(child.traceId()).isEqualTo(trace.traceId());
    assertThat(child.spanId()).isNotEqualTo(trace.spanId());
    TraceContext fresh = TraceContext.continueOrCreate("nonsense", new Random(1));
    assertThat(TraceContext.parse(fresh.traceparent())).contains(fresh);
  }

  @ParameterizedTest
  @NullSource
  @ValueSource(
      strings = {
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n"
      })
  void ignores_what_is_no_trace(String header) {
    assertThat(TraceContext.parse(header)).isEmpty();
  }

  @Test
  void log_scopes_nest_and_restore() {
    byte[] session = new byte[32];
    session[0] = (byte) 0xab;
    try (LogScope outer = LogScope.open().request("r1")) {
      try (LogScope inner = LogScope.open().request("r2").session(session)) {
        assertThat(MDC.get(LogScope.REQUEST_ID)).isEqualTo("r2");
        assertThat(MDC.get(LogScope.SESSION_ID)).isEqualTo("ab00000000000000");
      }
      assertThat(MDC.get(LogScope.REQUEST_ID)).isEqualTo("r1");
      assertThat(MDC.get(LogScope.SESSION_ID)).isNull();
    }
    assertThat(MDC.get(LogScope.REQUEST_ID)).isNull();
  }

  @Test
  void timers_of_this_system_have_the_buckets_and_no_others() {
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    registry.config().meterFilter(Buckets.filter());
    ProtocolMetrics metrics = new ProtocolMetrics(registry, "alpha", "eu-central-1");
    metrics.roundLeft("bls/sign/1", 1, Duration.ofMillis(4));
    metrics.waited("bls/sign/1", 1, "beta", Duration.ofMillis(4));
    metrics.sessionEnded("bls/sign/1", "completed", "none");
    registry.timer("other").record(Duration.ofMillis(4));
    String scrape = registry.scrape();
    assertThat(scrape)
        .contains(
            "coterie_protocol_round_seconds_bucket{party=\"alpha\",protocol=\"bls/sign/1\","
                + "region=\"eu-central-1\",round=\"1\",le=\"0.005\"} 1",
            "coterie_protocol_round_seconds_bucket{party=\"alpha\",protocol=\"bls/sign/1\","
                + "region=\"eu-central-1\",round=\"1\",le=\"0.003\"} 0",
            "straggler=\"beta\"",
            "coterie_sessions_total{cause=\"none\",outcome=\"completed\",protocol=\"bls/sign/1\"}")
        .doesNotContain("other_seconds_bucket");
  }
}
