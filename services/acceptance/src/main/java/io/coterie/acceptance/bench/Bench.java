package io.coterie.acceptance.bench;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.Service;
import io.coterie.channel.SendMode;
import io.coterie.proto.custody.v1.ListKeysRequest;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.springframework.context.Lifecycle;

/**
 * {@code make bench}: key generation and signing through the public API of a whole installation, in
 * each sending mode, first contact and subsequent, beside their floors. Prints a table and writes
 * {@code build/bench/results.csv}. In the environment, {@code QUICK=1} does fewer runs, and {@code
 * SHAPES="2/3 3/5"} takes only these shapes and leaves the load out, {@code SHAPES=none} measures
 * only the load, and {@code SCHEMES="bls12-381"} takes only these schemes for it. {@code RUNS=2000}
 * asks for so many signatures one after another under the load.
 */
public final class Bench {
  /**
   * For each key: a signature is the shortest of what is measured, so it takes the most samples.
   */
  private static final int FIRST_SIGNATURES = 3;

  private static final Duration RESTART = Duration.ofSeconds(60);
  private static final Duration QUIET_WINDOW = Duration.ofMillis(100);
  private static final String NEIGHBOURS = "neighbours";
  private static final int PARTIES = 12;
  private final boolean quick = !environment("QUICK").isBlank();
  private final List<Shape> shapes = Shape.chosen(environment("SHAPES"));
  private final int turns = quick ? 3 : 5;
  private final int firstRuns = quick ? 2 : 4;
  private final int keygenRuns = quick ? 2 : 4;
  private final int signRuns = quick ? 40 : 100;
  private final int warmUps = quick ? 10 : 30;
  private final List<String> loaded = List.of(environment("SCHEMES").split(" "));
  private final int loadRuns =
      environment("RUNS").isBlank() ? (quick ? 500 : 1500) : Integer.parseInt(environment("RUNS"));
  private final Duration throughputTime = Duration.ofSeconds(quick ? 30 : 80);

  private final PrintStream out = System.out;
  private final long started = System.nanoTime();
  private final Rows rows = new Rows();
  private int keys;

  private Bench() {}

  private static String environment(String name) {
    return System.getenv().getOrDefault(name, "");
  }

  public static void main(String[] args) throws Exception {
    try {
      new Bench().run();
      System.exit(0);
    } catch (RuntimeException e) {
      System.err.println("the benchmark failed: " + e.getMessage());
      e.printStackTrace(System.err);
      System.exit(1);
    }
  }

  private void run() throws Exception {
    boolean all = shapes.isEmpty() || shapes.equals(Shape.ALL);
    Load load;
    if (!shapes.isEmpty()) {
      coreFloor();
    }
    progress("starting an installation of %d parties".formatted(PARTIES));
    try (Cluster cluster =
        Cluster.of(PARTIES)
            .alsoEnrol("echo-1", "echo-2")
            .folder(Path.of("build", "bench", "cluster"))
            .start()) {
      warmUp(cluster);
      echoFloor(cluster);
      load = new Load(cluster, rows, this::progress, loadRuns, throughputTime);
      if (all) {
        load.measure(loaded);
      }
      for (Shape shape : shapes) {
        measure(cluster, shape);
        rows.write();
      }
    }
    Path file = rows.write();
    if (!shapes.isEmpty()) {
      new Table(out, rows, shapes).print();
    }
    if (all) {
      load.print(out);
    }
    progress("wrote " + file);
  }

  /** The native core alone, by its own program; absent if it was not built. */
  private void coreFloor() throws IOException, InterruptedException {
    Path program = Path.of("services/mpc-core/target/release/bench-core");
    if (!Files.isExecutable(program)) {
      progress("no floor of the core alone: " + program + " was not built");
      return;
    }
    progress("the core alone");
    Process process =
        new ProcessBuilder(program.toString(), quick ? "10" : "30")
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    process.inputReader().lines().forEach(rows::read);
    if (process.waitFor() != 0) {
      throw new IllegalStateException(program + " ended with " + process.exitValue());
    }
  }

  /** A message there and back through messaging, without cryptography. */
  private void echoFloor(Cluster cluster) {
    try (EchoClient echo = EchoClient.connect(cluster, "echo-1", "echo-2")) {
      int runs = quick ? 200 : 1000;
      for (int i = 0; i < runs / 2; i++) {
        echo.roundTripMillis();
      }
      rows.add(
          "echo",
          "none",
          0,
          0,
          "none",
          Rows.SUBSEQUENT,
          "latency",
          "ms",
          Timing.samples(runs, echo::roundTripMillis));
    }
  }

  /** Lets the compiler see the code that is measured. */
  private void warmUp(Cluster cluster) {
    progress("warming up");
    List<String> names = cluster.partyNames();
    cluster.wallet().createKey("warm", 2, names);
    cluster.wallet().createKey(NEIGHBOURS, 2, names.subList(PARTIES - 2, PARTIES));
    for (int i = 0; i < warmUps * 20; i++) {
      cluster.wallet().sign("warm", "warm " + i);
    }
  }

  /** The samples of one mode. */
  private static final class Samples {
    final List<Double> contact = new ArrayList<>();
    final List<Double> keygenFirst = new ArrayList<>();
    final List<Double> signFirst = new ArrayList<>();
    final List<Double> keygen = new ArrayList<>();
    final List<Double> sign = new ArrayList<>();
    final List<Double> keygenRequests = new ArrayList<>();
    final List<Double> keygenBytes = new ArrayList<>();
    final List<Double> signRequests = new ArrayList<>();
    final List<Double> signBytes = new ArrayList<>();
  }

  /**
   * The modes take turns, and another one begins each turn, so that none of them has the warmer
   * machine.
   */
  private void measure(Cluster cluster, Shape shape) {
    List<String> parties = cluster.partyNames().subList(0, shape.parties());
    String key = newKey(cluster, shape, parties);
    Map<SendMode, Samples> all = new EnumMap<>(SendMode.class);
    List<SendMode> modes = new ArrayList<>(List.of(SendMode.values()));
    // The first turn lets the compiler see each mode with this shape and does not count.
    for (int turn = 0; turn <= turns; turn++) {
      if (turn == 1) {
        all.clear();
      }
      for (SendMode mode : modes) {
        progress("%s, turn %d of %d, %s".formatted(shape, turn, turns, Rows.label(mode)));
        Samples samples = all.computeIfAbsent(mode, _ -> new Samples());
        measure(cluster, mode, shape, parties, key, samples);
      }
      Collections.rotate(modes, 1);
    }
    all.forEach(
        (mode, samples) -> {
          rows.add("reconnect", shape, mode, Rows.FIRST, "latency", "ms", samples.contact);
          rows.add("keygen", shape, mode, Rows.FIRST, "latency", "ms", samples.keygenFirst);
          rows.add("sign", shape, mode, Rows.FIRST, "latency", "ms", samples.signFirst);
          rows.add("keygen", shape, mode, Rows.SUBSEQUENT, "latency", "ms", samples.keygen);
          rows.add(
              "keygen", shape, mode, Rows.SUBSEQUENT, "requests", "count", samples.keygenRequests);
          rows.add(
              "keygen", shape, mode, Rows.SUBSEQUENT, "bytes_sent", "bytes", samples.keygenBytes);
          rows.add("sign", shape, mode, Rows.SUBSEQUENT, "latency", "ms", samples.sign);
          rows.add("sign", shape, mode, Rows.SUBSEQUENT, "requests", "count", samples.signRequests);
          rows.add("sign", shape, mode, Rows.SUBSEQUENT, "bytes_sent", "bytes", samples.signBytes);
        });
  }

  private void measure(
      Cluster cluster,
      SendMode mode,
      Shape shape,
      List<String> parties,
      String key,
      Samples samples) {
    restart(cluster, parties, mode);
    for (int i = 0; i < firstRuns; i++) {
      for (int k = 0; k < FIRST_SIGNATURES; k++) {
        samples.contact.add(reconnect(cluster, parties));
        samples.signFirst.add(Timing.millis(() -> cluster.wallet().sign(key, "first")));
      }
      samples.contact.add(reconnect(cluster, parties));
      samples.keygenFirst.add(Timing.millis(() -> newKey(cluster, shape, parties)));
    }

    newKey(cluster, shape, parties);
    Metrics before = cluster.metrics();
    for (int i = 0; i < keygenRuns; i++) {
      samples.keygen.add(Timing.millis(() -> newKey(cluster, shape, parties)));
    }
    Metrics after = cluster.metrics().since(before);
    samples.keygenRequests.add(requests(after) / keygenRuns);
    samples.keygenBytes.add(bytes(after) / keygenRuns);

    for (int i = 0; i < warmUps; i++) {
      cluster.wallet().sign(key, "warm " + i);
    }
    before = cluster.metrics();
    for (int i = 0; i < signRuns; i++) {
      String message = "message " + i;
      samples.sign.add(Timing.millis(() -> cluster.wallet().sign(key, message)));
    }
    after = cluster.metrics().since(before);
    samples.signRequests.add(requests(after) / signRuns);
    samples.signBytes.add(bytes(after) / signRuns);
  }

  private String newKey(Cluster cluster, Shape shape, List<String> parties) {
    String key = "bench-" + ++keys;
    cluster.wallet().createKey(key, shape.threshold(), parties);
    return key;
  }

  /** Starts the coordinator and the parties anew, with another sending mode. */
  private static void restart(Cluster cluster, List<String> parties, SendMode mode) {
    List<Service> services = new ArrayList<>(List.of(cluster.coordinator()));
    parties.forEach(p -> services.add(cluster.signer(p)));
    services.forEach(Service::close);
    services.forEach(
        s ->
            s.start(
                "--coterie.%s.channel.send-mode=%s"
                    .formatted(s == cluster.coordinator() ? "coordinator" : "signer", mode)));
    services.forEach(s -> s.awaitReady(RESTART));
    // The client's own connection to the coordinator is not what is measured.
    cluster.wallet().keys().withWaitForReady().listKeys(ListKeysRequest.getDefaultInstance());
    settle();
  }

  /**
   * Stops and starts what a party does, and leaves the service around it running, so that none of
   * the parties has a session or a sender key with anybody, nor anybody with them.
   *
   * @return milliseconds from the last start until all say that they are ready again
   */
  private static double reconnect(Cluster cluster, List<String> parties) {
    List<Service> services = parties.stream().map(cluster::signer).toList();
    services.forEach(s -> ownLifecycles(s).forEach(Lifecycle::stop));
    services.forEach(s -> ownLifecycles(s).forEach(Lifecycle::start));
    double reconnected = Timing.millis(() -> services.forEach(s -> s.awaitReady(RESTART)));
    settle();
    wake(cluster);
    return reconnected;
  }

  /**
   * Signs with parties that are not measured. A machine that has rested takes twice the time for
   * its next signature, whoever makes it, which would hide what contact costs.
   */
  private static void wake(Cluster cluster) {
    for (int i = 0; i < 5; i++) {
      cluster.wallet().sign(NEIGHBOURS, "wake " + i);
    }
  }

  private static List<Lifecycle> ownLifecycles(Service service) {
    return service.context().getBeansOfType(Lifecycle.class).values().stream()
        .filter(bean -> bean.getClass().getName().startsWith("io.coterie."))
        .toList();
  }

  /**
   * Collects what was left behind and waits until the services have nothing more to do, as parties
   * that were installed before anybody needs them: else a collection, or the compiler, costs the
   * first session several times what its messages cost.
   */
  private static void settle() {
    System.gc();
    long end = System.nanoTime() + RESTART.toNanos();
    long processor = Timing.processorNanos();
    while (System.nanoTime() < end) {
      LockSupport.parkNanos(QUIET_WINDOW.toNanos());
      long now = Timing.processorNanos();
      if (now - processor < QUIET_WINDOW.toNanos() / 10) {
        return;
      }
      processor = now;
    }
    throw new IllegalStateException("the services are still busy after " + RESTART);
  }

  private static double requests(Metrics metrics) {
    return metrics.sum("coterie_channel_requests_total", s -> !s.label("mode").equals("control"));
  }

  private static double bytes(Metrics metrics) {
    return metrics.sum(
        "coterie_channel_bytes_total",
        s -> s.label("direction").equals("out") && !s.label("mode").equals("control"));
  }

  private void progress(String what) {
    out.printf(Locale.ROOT, "%7.1f s  %s%n", (System.nanoTime() - started) / 1e9, what);
  }
}
