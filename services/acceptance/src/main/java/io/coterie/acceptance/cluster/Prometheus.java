package io.coterie.acceptance.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.OptionalDouble;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A real Prometheus that reads the services of an installation and evaluates rules over them. */
public final class Prometheus implements AutoCloseable {
  private static final JsonMapper JSON = new JsonMapper();
  private static final Duration START = Duration.ofSeconds(60);
  private static final long POLL_NANOS = 100_000_000;
  private static final String GLOBAL =
      "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n";

  private final HttpClient http = HttpClient.newHttpClient();
  private final Process process;
  private final Path log;
  private final int port;

  private Prometheus(Process process, Path log, int port) {
    this.process = process;
    this.log = log;
    this.port = port;
  }

  /** Starts, reading all services of an installation, with rules, and waits until it answers. */
  public static Prometheus start(Path binary, Path folder, Path rules, Cluster cluster)
      throws IOException {
    return start(
        binary,
        folder,
        GLOBAL
            + "rule_files: ['%s']\nscrape_configs:\n".formatted(rules)
            + job("messaging", List.of(cluster.messaging()), cluster)
            + job("coordinator", List.of(cluster.coordinator()), cluster)
            + job("signer", cluster.signers(), cluster));
  }

  /** Starts, reading the coordinator alone, and waits until it answers. */
  public static Prometheus ofCoordinator(Path binary, Path folder, Cluster cluster)
      throws IOException {
    return start(
        binary,
        folder,
        GLOBAL + "scrape_configs:\n" + job("coordinator", List.of(cluster.coordinator()), cluster));
  }

  private static Prometheus start(Path binary, Path folder, String configuration)
      throws IOException {
    Files.createDirectories(folder);
    Path config = folder.resolve("prometheus.yaml");
    Files.writeString(config, configuration);
    int port;
    try (ServerSocket socket = new ServerSocket(0)) {
      port = socket.getLocalPort();
    }
    Path log = folder.resolve("log");
    Process process =
        new ProcessBuilder(
                binary.toString(),
                "--config.file=" + config,
                "--storage.tsdb.path=" + Files.createTempDirectory(folder, "data"),
                "--web.listen-address=127.0.0.1:" + port)
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    Prometheus prometheus = new Prometheus(process, log, port);
    prometheus.awaitReady();
    return prometheus;
  }

  private static String job(String name, List<Service> services, Cluster cluster) {
    String targets =
        services.stream()
            .map(s -> "'" + s.management().getAuthority() + "'")
            .collect(Collectors.joining(", "));
    Path authority =
        name.equals("signer") ? cluster.ca().managementFile() : cluster.ca().certificateFile();
    return """
    - job_name: coterie-%s
      scheme: https
      metrics_path: /actuator/prometheus
      tls_config: {ca_file: '%s'}
      basic_auth: {username: %s, password_file: '%s'}
      static_configs: [{targets: [%s]}]
    """
        .formatted(
            name,
            authority.toAbsolutePath(),
            MetricsUser.NAME,
            cluster.metricsUser().passwordFile().toAbsolutePath(),
            targets);
  }

  private void awaitReady() throws IOException {
    long end = System.nanoTime() + START.toNanos();
    while (!ready()) {
      if (!process.isAlive() || System.nanoTime() > end) {
        close();
        throw new IllegalStateException("Prometheus does not start: " + Files.readString(log));
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  private boolean ready() {
    try {
      return http.send(
                  HttpRequest.newBuilder(uri("/-/ready")).build(),
                  HttpResponse.BodyHandlers.discarding())
              .statusCode()
          == 200;
    } catch (IOException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
  }

  private URI uri(String path) {
    return URI.create("http://127.0.0.1:" + port + path);
  }

  /** Number of series that a query gives now. */
  public int series(String query) {
    return result(query, "").size();
  }

  /**
   * The value of the one series that a query gives.
   *
   * @param time for which it is evaluated, seconds since 1970; empty: now
   * @return empty if there is not exactly one, or if it is not a number
   */
  public OptionalDouble value(String query, String time) {
    JsonNode result = result(query, time.isEmpty() ? "" : "&time=" + time);
    if (result.size() != 1) {
      return OptionalDouble.empty();
    }
    double value = Double.parseDouble(result.get(0).get("value").get(1).asString());
    return Double.isNaN(value) ? OptionalDouble.empty() : OptionalDouble.of(value);
  }

  private JsonNode result(String query, String more) {
    return get("/api/v1/query?query=" + URLEncoder.encode(query, StandardCharsets.UTF_8) + more)
        .get("data")
        .get("result");
  }

  /** Problems that Prometheus had with its rules. */
  public List<String> ruleProblems() {
    return get("/api/v1/rules")
        .get("data")
        .get("groups")
        .valueStream()
        .flatMap(group -> group.get("rules").valueStream())
        .filter(rule -> !"ok".equals(rule.get("health").asString()))
        .map(JsonNode::toString)
        .toList();
  }

  private JsonNode get(String path) {
    try {
      HttpResponse<String> answer =
          http.send(
              HttpRequest.newBuilder(uri(path)).build(), HttpResponse.BodyHandlers.ofString());
      if (answer.statusCode() != 200) {
        throw new IllegalStateException(path + ": " + answer.body());
      }
      return JSON.readTree(answer.body());
    } catch (IOException e) {
      throw new UncheckedIOException(path, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void close() {
    process.destroyForcibly().onExit().join();
  }
}
