package io.coterie.coordinator.telemetry;

import io.coterie.proto.custody.v1.Scheme;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Locale;

/** What this service measures about its requests. Protocol rounds: {@code ProtocolMetrics}. */
public final class CoordinatorMetrics {
  /** Counter and timer {scheme, outcome}: from the first request to the end of the signing. */
  public static final String SIGNINGS = "coterie.signings";

  public static final String SIGNING = "coterie.signing";

  /** Counter {scheme, outcome}. */
  public static final String KEY_CREATIONS = "coterie.key.creations";

  /** Counter {cause}: messages of parties that were ignored. */
  public static final String DROPPED = "coterie.coordinator.dropped";

  /**
   * Timer {method, status, reason}: client calls as the client sees them, an expired one included.
   */
  public static final String REQUESTS = "coterie.coordinator.requests";

  /** Gauge: signings and key creations that are running. */
  public static final String RUNS = "coterie.coordinator.runs";

  /** Party label of this service in the metrics of protocol rounds. */
  public static final String PARTY = "coordinator";

  /** Outcome of a signing or key creation that ended well. */
  public static final String OK = "ok";

  private final MeterRegistry registry;

  public CoordinatorMetrics(MeterRegistry registry) {
    this.registry = registry;
  }

  /** A signing ended with {@link #OK} or the name of an error reason. */
  public void signingEnded(Scheme scheme, String outcome, Duration took) {
    String label = scheme(scheme);
    String result = outcome.toLowerCase(Locale.ROOT);
    registry.counter(SIGNINGS, "scheme", label, "outcome", result).increment();
    registry.timer(SIGNING, "scheme", label, "outcome", result).record(took);
  }

  /** A key creation ended with {@link #OK} or the name of an error reason. */
  public void keyCreationEnded(Scheme scheme, String outcome) {
    registry
        .counter(
            KEY_CREATIONS, "scheme", scheme(scheme), "outcome", outcome.toLowerCase(Locale.ROOT))
        .increment();
  }

  /** A message was ignored. */
  public void dropped(String cause) {
    registry.counter(DROPPED, "cause", cause).increment();
  }

  /** A client call ended. */
  public void requested(String method, String status, String reason, Duration took) {
    registry.timer(REQUESTS, "method", method, "status", status, "reason", reason).record(took);
  }

  /** Watches the number of running requests. */
  public void watchRuns(java.util.function.Supplier<Number> runs) {
    io.micrometer.core.instrument.Gauge.builder(RUNS, runs).register(registry);
  }

  private static String scheme(Scheme scheme) {
    return scheme.name().substring("SCHEME_".length()).toLowerCase(Locale.ROOT);
  }
}
