package io.coterie.acceptance.lab;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Prometheus;
import io.coterie.acceptance.cluster.Tools;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.locks.LockSupport;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The overview dashboard's view of the calls of a measured cell: the very queries of its panels,
 * evaluated by a real Prometheus that reads the coordinator.
 */
public final class LabDashboard implements AutoCloseable {
  private static final Path OVERVIEW =
      Path.of("deploy/helm/coterie-observability/files/dashboards/overview.json");

  /** Where the p50 of a call is drawn, by the method of the call. */
  private static final Map<String, String> PANELS =
      Map.of(
          "Sign", "Time of a signing request, all rounds and storage",
          "CreateKey", "Time of a key creation, all rounds and storage");

  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final long POLL_NANOS = 100_000_000;

  /** Samples of a range whose age is its length are in it. */
  private static final double MARGIN_SECONDS = 0.01;

  private final Prometheus prometheus;
  private final Cluster cluster;
  private final Map<String, String> queries = new HashMap<>();

  private LabDashboard(Prometheus prometheus, Cluster cluster) {
    this.prometheus = prometheus;
    this.cluster = cluster;
  }

  /**
   * Starts Prometheus; empty if there is none.
   *
   * @param root of the project
   */
  static Optional<LabDashboard> start(Path root, Path folder, Cluster cluster) throws IOException {
    Optional<Path> binary = Tools.find(root, "prometheus");
    if (binary.isEmpty()) {
      return Optional.empty();
    }
    JsonNode overview = new JsonMapper().readTree(Files.readString(root.resolve(OVERVIEW)));
    LabDashboard dashboard =
        new LabDashboard(
            Prometheus.ofCoordinator(binary.get().toAbsolutePath(), folder, cluster), cluster);
    for (JsonNode panel :
        overview.findValues("panels").stream().flatMap(JsonNode::valueStream).toList()) {
      PANELS.forEach(
          (method, title) -> {
            if (title.equals(panel.get("title").asString())) {
              dashboard.queries.put(method, panel.get("targets").get(0).get("expr").asString());
            }
          });
    }
    if (dashboard.queries.size() != PANELS.size()) {
      dashboard.close();
      throw new IllegalStateException("the overview has no panels " + PANELS.values());
    }
    return Optional.of(dashboard);
  }

  /** A moment at which Prometheus knew of all calls there had been: its time of that, seconds. */
  record Moment(String method, double seconds) {}

  /** Waits until Prometheus has read of all calls so far. */
  Moment moment(String method) {
    String calls = "coterie_coordinator_requests_seconds_count{method=\"%s\",status=\"OK\"}";
    String query = calls.formatted(method);
    double wanted =
        cluster
            .coordinator()
            .metrics()
            .sum(
                "coterie_coordinator_requests_seconds_count",
                s -> method.equals(s.label("method")) && "OK".equals(s.label("status")));
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (true) {
      OptionalDouble known = prometheus.value(query, "");
      OptionalDouble time = prometheus.value("timestamp(" + query + ")", "");
      if (known.isPresent() && known.getAsDouble() >= wanted && time.isPresent()) {
        return new Moment(method, time.getAsDouble());
      }
      if (System.nanoTime() > end) {
        throw new IllegalStateException(
            "Prometheus does not learn of %.0f calls of %s: %s".formatted(wanted, method, known));
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  /**
   * The median that the panel shows of the calls between two moments.
   *
   * @return milliseconds
   */
  double median(Moment from, Moment to) {
    String range =
        String.format(
            Locale.ROOT, "%.0fms", 1000 * (to.seconds() - from.seconds() + MARGIN_SECONDS));
    String query =
        Objects.requireNonNull(queries.get(to.method())).replace("$__rate_interval", range);
    return 1000
        * prometheus
            .value(query, String.format(Locale.ROOT, "%.3f", to.seconds() + MARGIN_SECONDS / 2))
            .orElseThrow(() -> new IllegalStateException("the panel shows nothing: " + query));
  }

  @Override
  public void close() {
    prometheus.close();
  }
}
