package io.coterie.acceptance;

import com.google.common.base.Splitter;
import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.ByteString;
import io.coterie.channel.SendMode;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import org.springframework.context.Lifecycle;

/**
 * {@code make bench}: key generation and signing through the public API of a whole installation, in
 * each sending mode, first contact and subsequent, beside their floors. Prints a table and writes
 * {@code build/bench/results.csv}. In the environment, {@code QUICK=1} does fewer runs, and {@code
 * SHAPES="2/3 3/5"} takes only these shapes and leaves the load out.
 */
public final class Bench {
  /** A key's shape: parties needed of parties that hold a share. */
  private record Shape(int threshold, int parties) {
    static List<Shape> chosen() {
      List<String> wanted = Splitter.on(' ').omitEmptyStrings().splitToList(environment("SHAPES"));
      return SHAPES.stream()
          .filter(s -> wanted.isEmpty() || wanted.contains(s.threshold + "/" + s.parties))
          .toList();
    }

    @Override
    public String toString() {
      return threshold + "-of-" + parties;
    }
  }

  /** One line of the CSV. */
  private record Row(
      String scenario,
      String scheme,
      int threshold,
      int parties,
      String mode,
      String phase,
      String metric,
      String unit,
      double median,
      double p95,
      int runs) {
    static final String HEADER = "scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs";

    String csv() {
      return String.format(
          Locale.ROOT,
          "%s,%s,%d,%d,%s,%s,%s,%s,%.3f,%.3f,%d",
          scenario,
          scheme,
          threshold,
          parties,
          mode,
          phase,
          metric,
          unit,
          median,
          p95,
          runs);
    }
  }

  private static final List<Shape> SHAPES =
      List.of(
          new Shape(3, 3),
          new Shape(4, 4),
          new Shape(5, 5),
          new Shape(2, 3),
          new Shape(3, 5),
          new Shape(7, 10));

  private static final String FIRST = "first_contact";

  /**
   * For each key: a signature is the shortest of what is measured, so it takes the most samples.
   */
  private static final int FIRST_SIGNATURES = 3;

  private static final String SUBSEQUENT = "subsequent";
  private static final Duration RESTART = Duration.ofSeconds(60);
  private static final Duration QUIET_WINDOW = Duration.ofMillis(100);
  private static final Duration REFILL = Duration.ofSeconds(1);
  private static final int IN_FLIGHT = 32;
  private static final String BLS = "bls12-381";
  private static final String ECDSA = "ecdsa-secp256k1";
  private static final String ED25519 = "ed25519";
  private static final String BIP340 = "bip340-secp256k1";
  private static final ByteString MESSAGE = ByteString.copyFromUtf8("withdrawal 4711: 1.25 ETH");
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(32));
  private static final String ONE = "one_at_a_time";
  private static final String MANY = "in_flight_" + IN_FLIGHT;
  private static final String NEIGHBOURS = "neighbours";
  private static final int PARTIES = 12;
  private static final Shape LOADED = new Shape(2, 3);

  /** All services run in this process; only PostgreSQL does not. */
  private static final com.sun.management.OperatingSystemMXBean JVM =
      (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private final boolean quick = !environment("QUICK").isBlank();
  private final List<Shape> shapes = Shape.chosen();
  private final int turns = quick ? 3 : 5;
  private final int firstRuns = quick ? 2 : 4;
  private final int keygenRuns = quick ? 2 : 4;
  private final int signRuns = quick ? 40 : 100;
  private final int warmUps = quick ? 10 : 30;
  private final Duration throughputTime = Duration.ofSeconds(quick ? 30 : 80);

  private final PrintStream out = System.out;
  private final long started = System.nanoTime();
  private final List<Row> rows = new ArrayList<>();
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
    coreFloor();
    progress("starting an installation of %d parties".formatted(PARTIES));
    try (Cluster cluster =
        Cluster.of(PARTIES)
            .alsoEnrol("echo-1", "echo-2")
            .folder(Path.of("build", "bench", "cluster"))
            .start()) {
      warmUp(cluster);
      echoFloor(cluster);
      List<String> loaded = cluster.partyNames().subList(0, LOADED.parties());
      if (shapes.equals(SHAPES)) {
        for (Load load : List.of(bls(loaded), ecdsa(loaded), ed25519(loaded), bip340(loaded))) {
          load(cluster, load);
          writeCsv(); // What is measured is not lost if the rest is interrupted.
        }
      }
      for (Shape shape : shapes) {
        measure(cluster, shape);
        writeCsv();
      }
    }
    Path file = writeCsv();
    table();
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
    for (String line : process.inputReader().lines().toList()) {
      String[] f = line.split(",", -1);
      if (f.length == 11 && !line.equals(Row.HEADER)) {
        rows.add(
            new Row(
                f[0],
                f[1],
                Integer.parseInt(f[2]),
                Integer.parseInt(f[3]),
                f[4],
                f[5],
                f[6],
                f[7],
                Double.parseDouble(f[8]),
                Double.parseDouble(f[9]),
                Integer.parseInt(f[10])));
      }
    }
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
      add(
          "echo",
          "none",
          0,
          0,
          "none",
          SUBSEQUENT,
          "latency",
          "ms",
          samples(runs, echo::roundTripMillis));
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
        progress("%s, turn %d of %d, %s".formatted(shape, turn, turns, label(mode)));
        Samples samples = all.computeIfAbsent(mode, _ -> new Samples());
        measure(cluster, mode, shape, parties, key, samples);
      }
      Collections.rotate(modes, 1);
    }
    all.forEach(
        (mode, samples) -> {
          add("reconnect", shape, mode, FIRST, "latency", "ms", samples.contact);
          add("keygen", shape, mode, FIRST, "latency", "ms", samples.keygenFirst);
          add("sign", shape, mode, FIRST, "latency", "ms", samples.signFirst);
          add("keygen", shape, mode, SUBSEQUENT, "latency", "ms", samples.keygen);
          add("keygen", shape, mode, SUBSEQUENT, "requests", "count", samples.keygenRequests);
          add("keygen", shape, mode, SUBSEQUENT, "bytes_sent", "bytes", samples.keygenBytes);
          add("sign", shape, mode, SUBSEQUENT, "latency", "ms", samples.sign);
          add("sign", shape, mode, SUBSEQUENT, "requests", "count", samples.signRequests);
          add("sign", shape, mode, SUBSEQUENT, "bytes_sent", "bytes", samples.signBytes);
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
        samples.signFirst.add(time(() -> cluster.wallet().sign(key, "first")));
      }
      samples.contact.add(reconnect(cluster, parties));
      samples.keygenFirst.add(time(() -> newKey(cluster, shape, parties)));
    }

    newKey(cluster, shape, parties);
    Metrics before = cluster.metrics();
    for (int i = 0; i < keygenRuns; i++) {
      samples.keygen.add(time(() -> newKey(cluster, shape, parties)));
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
      samples.sign.add(time(() -> cluster.wallet().sign(key, message)));
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
    double reconnected = time(() -> services.forEach(s -> s.awaitReady(RESTART)));
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
    long processor = JVM.getProcessCpuTime();
    while (System.nanoTime() < end) {
      LockSupport.parkNanos(QUIET_WINDOW.toNanos());
      long now = JVM.getProcessCpuTime();
      if (now - processor < QUIET_WINDOW.toNanos() / 10) {
        return;
      }
      processor = now;
    }
    throw new IllegalStateException("the services are still busy after " + RESTART);
  }

  /** One signature scheme under load: how to make a key, and what to ask for. */
  private record Load(
      String scheme, Function<WalletBackend, String> newKey, Function<String, SigningIntent> next) {
    SignRequest request(WalletBackend wallet, String key) {
      return WalletBackend.signRequest(wallet.intents().sign(next.apply(key)));
    }
  }

  private Load bls(List<String> parties) {
    return new Load(
        BLS,
        wallet -> wallet.createKey("load-bls", LOADED.threshold(), parties).getName(),
        key -> WalletBackend.signingIntent(shortName(key), MESSAGE.toByteArray()).build());
  }

  private Load ecdsa(List<String> parties) {
    return new Load(
        ECDSA,
        wallet -> wallet.createEcdsaKey("load-ecdsa", LOADED.threshold(), parties).getName(),
        key -> WalletBackend.ecdsaIntent(shortName(key), 0, 7).setEthereumMessage(MESSAGE).build());
  }

  private Load ed25519(List<String> parties) {
    return new Load(
        ED25519,
        newKey(Scheme.SCHEME_ED25519, parties),
        key ->
            WalletBackend.signingIntent(shortName(key), Scheme.SCHEME_ED25519)
                .setMessage(MESSAGE)
                .build());
  }

  private Load bip340(List<String> parties) {
    return new Load(
        BIP340,
        newKey(Scheme.SCHEME_BIP340_SECP256K1, parties),
        key ->
            WalletBackend.signingIntent(shortName(key), Scheme.SCHEME_BIP340_SECP256K1)
                .setTaproot(TaprootOutput.getDefaultInstance())
                .setDigest(DIGEST)
                .build());
  }

  private static Function<WalletBackend, String> newKey(Scheme scheme, List<String> parties) {
    return wallet ->
        wallet
            .createKey("load-" + scheme.getNumber(), scheme, LOADED.threshold(), parties)
            .getName();
  }

  private static String shortName(String key) {
    return key.substring(key.indexOf('/') + 1);
  }

  /**
   * Many requests at once for a while, then one after another, once everything is warm. Each begins
   * with a filled pool of presignatures.
   */
  private void load(Cluster cluster, Load load) throws InterruptedException {
    String key = load.newKey().apply(cluster.wallet());
    progress("%s, %d in flight".formatted(load.scheme(), IN_FLIGHT));
    // Compiling the services' code takes that long on two cores.
    flood(cluster, load, key, throughputTime.dividedBy(2));
    awaitPresignatures(cluster);
    Flood flood = flood(cluster, load, key, throughputTime.dividedBy(2));
    int count = flood.latencies().size();
    addLoad(load, MANY, "rate", "signatures/s", count / flood.seconds());
    addLoad(load, MANY, "processor_time", "ms", flood.processorMillis() / count);
    addLoad(load, MANY, "presigned", "percent", 100.0 * flood.presigned() / count);
    addLoad(load, MANY, "latency", "ms", array(flood.latencies()));
    awaitPresignatures(cluster);
    progress("%s, one at a time, warm".formatted(load.scheme()));
    int runs = quick ? 500 : 1500;
    int[] presigned = {0};
    long before = JVM.getProcessCpuTime();
    double[] latencies =
        samples(
            runs,
            () -> {
              SignRequest request = load.request(cluster.wallet(), key);
              return time(
                  () -> {
                    if (cluster.wallet().signings().sign(request).getPresigned()) {
                      presigned[0]++;
                    }
                  });
            });
    double processorMillis = (JVM.getProcessCpuTime() - before) / 1e6;
    addLoad(load, ONE, "latency", "ms", latencies);
    addLoad(load, ONE, "processor_time", "ms", processorMillis / runs);
    addLoad(load, ONE, "presigned", "percent", 100.0 * presigned[0] / runs);
  }

  /**
   * Waits until the coordinator has as many presignatures as it wants, or, at its limit, no more
   * come.
   */
  private static void awaitPresignatures(Cluster cluster) {
    long end = System.nanoTime() + RESTART.toNanos();
    double ready = 0;
    for (double before = -1; ready > before && System.nanoTime() < end; ) {
      before = ready;
      LockSupport.parkNanos(REFILL.toNanos());
      Metrics metrics = cluster.coordinator().metrics();
      ready = metrics.sum("coterie_coordinator_presignatures_ready");
      if (ready >= metrics.sum("coterie_coordinator_presignatures_wanted")) {
        return;
      }
    }
  }

  /** What came of many requests at once. */
  private record Flood(
      List<Double> latencies, int presigned, double seconds, double processorMillis) {}

  /** Keeps {@link #IN_FLIGHT} requests in flight, all of which have to succeed. */
  private static Flood flood(Cluster cluster, Load load, String key, Duration time)
      throws InterruptedException {
    Semaphore free = new Semaphore(IN_FLIGHT);
    List<Double> latencies = Collections.synchronizedList(new ArrayList<>());
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    AtomicInteger presigned = new AtomicInteger();
    long begin = System.nanoTime();
    long processorBefore = JVM.getProcessCpuTime();
    while (System.nanoTime() - begin < time.toNanos()) {
      free.acquire();
      long start = System.nanoTime();
      ListenableFuture<Signing> future =
          cluster.wallet().signingsAsync().sign(load.request(cluster.wallet(), key));
      future.addListener(
          () -> {
            try {
              Signing signing = future.get();
              latencies.add((System.nanoTime() - start) / 1e6);
              if (signing.getPresigned()) {
                presigned.incrementAndGet();
              }
            } catch (ExecutionException e) {
              failures.add(e.getCause());
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            } finally {
              free.release();
            }
          },
          Runnable::run);
    }
    free.acquire(IN_FLIGHT);
    double seconds = (System.nanoTime() - begin) / 1e9;
    double processorMillis = (JVM.getProcessCpuTime() - processorBefore) / 1e6;
    if (!failures.isEmpty()) {
      throw new IllegalStateException(
          failures.size() + " requests failed under load", failures.getFirst());
    }
    return new Flood(List.copyOf(latencies), presigned.get(), seconds, processorMillis);
  }

  private void addLoad(Load load, String phase, String metric, String unit, double... samples) {
    add(
        "load",
        load.scheme(),
        LOADED.threshold(),
        LOADED.parties(),
        label(SendMode.GROUP),
        phase,
        metric,
        unit,
        samples);
  }

  private static double requests(Metrics metrics) {
    return metrics.sum("coterie_channel_requests_total", s -> !s.label("mode").equals("control"));
  }

  private static double bytes(Metrics metrics) {
    return metrics.sum(
        "coterie_channel_bytes_total",
        s -> s.label("direction").equals("out") && !s.label("mode").equals("control"));
  }

  private void add(
      String scenario,
      Shape shape,
      SendMode mode,
      String phase,
      String metric,
      String unit,
      List<Double> samples) {
    add(
        scenario,
        BLS,
        shape.threshold(),
        shape.parties(),
        label(mode),
        phase,
        metric,
        unit,
        array(samples));
  }

  private void add(
      String scenario,
      String scheme,
      int t,
      int n,
      String mode,
      String phase,
      String metric,
      String unit,
      double[] samples) {
    double[] sorted = samples.clone();
    Arrays.sort(sorted);
    rows.add(
        new Row(
            scenario,
            scheme,
            t,
            n,
            mode,
            phase,
            metric,
            unit,
            quantile(sorted, 0.5),
            quantile(sorted, 0.95),
            sorted.length));
  }

  private static double[] array(List<Double> samples) {
    return samples.stream().mapToDouble(Double::doubleValue).toArray();
  }

  private static double quantile(double[] sorted, double q) {
    return sorted[(int) Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  }

  private static double[] samples(int count, DoubleSupplier one) {
    double[] samples = new double[count];
    for (int i = 0; i < count; i++) {
      samples[i] = one.getAsDouble();
    }
    return samples;
  }

  private static double time(Runnable work) {
    long begin = System.nanoTime();
    work.run();
    return (System.nanoTime() - begin) / 1e6;
  }

  private Path writeCsv() {
    Path file = Path.of("build", "bench", "results.csv");
    try {
      Files.createDirectories(file.getParent());
      List<String> lines = new ArrayList<>(List.of(Row.HEADER));
      rows.forEach(row -> lines.add(row.csv()));
      Files.write(file, lines);
      return file;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void table() {
    out.println();
    out.println("Floors");
    out.printf(
        "  %-44s %8.2f ms%n",
        "echo through messaging", value("echo", "none", 0, 0, "none", SUBSEQUENT, "latency"));
    for (Shape shape : shapes) {
      out.printf(
          "  core alone %-6s compute of the slowest party: keygen %8.2f ms, sign %6.2f ms%n",
          shape,
          value("core", BLS, shape.threshold(), shape.parties(), "core", "keygen", "compute")
              / 1000,
          value("core", BLS, shape.threshold(), shape.parties(), "core", "sign", "compute") / 1000);
    }
    for (String scenario : List.of("keygen", "sign")) {
      for (String phase : List.of(FIRST, SUBSEQUENT)) {
        out.println();
        out.printf(
            "%s, %s: median ms (times group)%n",
            scenario.equals("keygen") ? "Key generation" : "Signing",
            phase.equals(FIRST) ? "first contact" : "subsequent");
        out.printf(
            "  %-8s %14s %24s %24s%n",
            "", "group", "pairwise, in parallel", "pairwise, sequential");
        for (Shape shape : shapes) {
          double group = value(scenario, shape, SendMode.GROUP, phase, "latency");
          double parallel = value(scenario, shape, SendMode.PAIRWISE_PARALLEL, phase, "latency");
          double sequential =
              value(scenario, shape, SendMode.PAIRWISE_SEQUENTIAL, phase, "latency");
          out.printf(
              "  %-8s %14.1f %16.1f (%.2f) %17.1f (%.2f)%n",
              shape, group, parallel, parallel / group, sequential, sequential / group);
        }
      }
      out.println();
      out.printf(
          "  %-8s requests and bytes sent of one %s%n",
          "", scenario.equals("keygen") ? "key generation" : "signature");
      for (Shape shape : shapes) {
        StringBuilder line = new StringBuilder("  %-8s".formatted(shape));
        for (SendMode mode :
            List.of(SendMode.GROUP, SendMode.PAIRWISE_PARALLEL, SendMode.PAIRWISE_SEQUENTIAL)) {
          line.append(
              "%12.1f %10.0f B"
                  .formatted(
                      value(scenario, shape, mode, SUBSEQUENT, "requests"),
                      value(scenario, shape, mode, SUBSEQUENT, "bytes_sent")));
        }
        out.println(line);
      }
    }
    if (shapes.equals(SHAPES)) {
      loadTable();
    }
  }

  private void loadTable() {
    out.println();
    out.printf("Sign, %s, warm%n", LOADED);
    for (String scheme : List.of(BLS, ECDSA, ED25519, BIP340)) {
      out.printf(
          "  %-16s one at a time: median %.1f ms, processor time %.1f ms, %.0f %% presigned%n",
          scheme,
          load(scheme, ONE, "latency"),
          load(scheme, ONE, "processor_time"),
          load(scheme, ONE, "presigned"));
      out.printf(
          "  %-16s %d in flight: %.0f a second, median %.0f ms, processor time %.1f ms, %.0f %%"
              + " presigned, no errors%n",
          "",
          IN_FLIGHT,
          load(scheme, MANY, "rate"),
          load(scheme, MANY, "latency"),
          load(scheme, MANY, "processor_time"),
          load(scheme, MANY, "presigned"));
    }
    out.println("Processor time is that of all services and the client, without PostgreSQL.");
  }

  private double load(String scheme, String phase, String metric) {
    return value(
        "load", scheme, LOADED.threshold(), LOADED.parties(), label(SendMode.GROUP), phase, metric);
  }

  private double value(String scenario, Shape shape, SendMode mode, String phase, String metric) {
    return value(scenario, BLS, shape.threshold(), shape.parties(), label(mode), phase, metric);
  }

  private double value(
      String scenario, String scheme, int t, int n, String mode, String phase, String metric) {
    return rows.stream()
        .filter(
            r ->
                r.scenario().equals(scenario)
                    && r.scheme().equals(scheme)
                    && r.threshold() == t
                    && r.parties() == n
                    && r.mode().equals(mode)
                    && r.phase().equals(phase)
                    && r.metric().equals(metric))
        .mapToDouble(Row::median)
        .findFirst()
        .orElse(Double.NaN);
  }

  private static String label(SendMode mode) {
    return mode.name().toLowerCase(Locale.ROOT);
  }

  private void progress(String what) {
    out.printf(Locale.ROOT, "%7.1f s  %s%n", (System.nanoTime() - started) / 1e9, what);
  }
}
