package io.coterie.acceptance;

import com.google.protobuf.ByteString;
import io.coterie.channel.SendMode;
import io.coterie.cli.Floor;
import io.coterie.cli.Planner;
import io.coterie.cli.Regions;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.function.ToDoubleBiFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * {@code make lab}: key generation and signing with real delays between the services, each a
 * process in a network namespace of its own, beside the time that the messages' way alone needs
 * ({@link Floor}). Runs inside {@code loadtest/lab/run}. Writes {@code results.csv}, {@code
 * samples.csv}, {@code rounds.csv}, {@code waterfall.csv} and {@code report.md}.
 */
public final class Lab {
  private static final Duration RESTART = Duration.ofSeconds(60);
  static final String BLS = "bls12-381";
  static final String ECDSA = "ecdsa-secp256k1";
  static final String ED25519 = "ed25519";
  private static final Map<String, Scheme> SCHEMES =
      Map.of(
          BLS, Scheme.SCHEME_BLS12381,
          ECDSA, Scheme.SCHEME_ECDSA_SECP256K1,
          ED25519, Scheme.SCHEME_ED25519);

  /** Kept ready where signing with presignatures is measured. */
  private static final int PRESIGNATURES = 16;

  static final String FIRST = "first_contact";
  static final String SUBSEQUENT = "subsequent";
  static final String ROTATING = "rotating";

  /** Those that differ least first, so that a report reads from the fastest to the slowest. */
  static final List<SendMode> MODES =
      List.of(SendMode.GROUP, SendMode.PAIRWISE_PARALLEL, SendMode.PAIRWISE_SEQUENTIAL);

  /** Region of the coordinator and of the client. */
  private static final String HOME = "home";

  private static final String MESSAGE = "withdrawal 4711: 1.25 ETH";

  /** Tries of a run that may turn out to be of another kind. */
  private static final int ATTEMPTS = 50;

  /** First contacts of a cell where not all runs are wanted: each takes up to half a minute. */
  private static final int FEW_CONTACTS = 5;

  /** One way, of the short run. */
  private static final int CHECKED_MILLIS = 50;

  /** Runs of a cell before those that count. */
  private static final int WARM_UPS = 3;

  /** A cell whose single run takes longer has several under way at once. */
  private static final double LONG_RUN_MILLIS = 1000;

  private static final int MOST_AT_ONCE = 8;

  /** The same with more parties, which together compute for more than a second of each run. */
  private static final int FEW_AT_ONCE = 2;

  /** Of the sessions that the compiler sees: they need not wait for each other. */
  private static final int WARM_UPS_AT_ONCE = 4;

  /** Key generations among the sessions that the compiler sees: each takes as long as some ten. */
  private static final int WARM_UPS_PER_KEY = 20;

  /** The widest of the timers' buckets between 100 ms and 2 s, end to begin. */
  private static final double BUCKET_RATIO = 4 / 3.0;

  /** Parties needed of parties that hold a share. */
  record Shape(int threshold, int parties) {
    @Override
    public String toString() {
      return threshold + "-of-" + parties;
    }
  }

  /** Where messaging is. The client is always beside the coordinator, each party by itself. */
  enum Placement {
    /** In a region where nobody else is. */
    THIRD_REGION,
    /** Beside the first party. */
    BESIDE_PARTY,
    /** Beside the coordinator. */
    BESIDE_COORDINATOR;

    String region(String place) {
      return switch (place) {
        case Cluster.CLIENT, Settings.COORDINATOR -> HOME;
        case Cluster.MESSAGING_NAME ->
            switch (this) {
              case THIRD_REGION -> "third";
              case BESIDE_PARTY -> Cluster.partyName(1);
              case BESIDE_COORDINATOR -> HOME;
            };
        default -> place;
      };
    }

    String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /**
   * Distances between all places.
   *
   * @param delay for the CSV: milliseconds one way, or {@code regions}
   */
  record Setting(String delay, String placement, ToDoubleBiFunction<String, String> oneWayMillis) {
    static Setting uniform(int millis, Placement placement) {
      return new Setting(
          Integer.toString(millis),
          placement.label(),
          (from, to) -> placement.region(from).equals(placement.region(to)) ? 0 : millis);
    }

    @Override
    public String toString() {
      return delay + " ms " + placement;
    }
  }

  /** What is measured: one line of the CSV for each of its metrics. */
  record Cell(
      String scenario, String scheme, Shape shape, SendMode mode, String phase, Setting setting) {
    String csv() {
      return "%s,%s,%d,%d,%s,%s"
          .formatted(
              scenario,
              scheme,
              shape.threshold(),
              shape.parties(),
              mode.name().toLowerCase(Locale.ROOT),
              phase);
    }
  }

  /**
   * A measured cell, milliseconds.
   *
   * @param sorted what the client saw
   * @param served mean of the coordinator's own timer over the same calls; 0 where it was not read
   * @param rounds mean of its timer of a protocol's rounds, from the order on; 0 where it takes
   *     none
   * @param shown median that the dashboard's panel shows of the same calls; 0 where it was not
   *     asked
   * @param passes the services' buckets of the rounds that ended meanwhile; none where they were
   *     not read
   */
  record Result(
      Cell cell,
      double[] sorted,
      double floor,
      double served,
      double rounds,
      double shown,
      List<Metrics.Sample> passes) {
    Result(Cell cell, double[] sorted, double floor) {
      this(cell, sorted, floor, 0, 0, 0, List.of());
    }

    Result {
      sorted = sorted.clone();
      Arrays.sort(sorted);
      passes = List.copyOf(passes);
    }

    double mean() {
      return Arrays.stream(sorted).average().orElse(0);
    }

    double median() {
      return quantile(0.5);
    }

    double quantile(double q) {
      return sorted[(int) Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
    }

    List<String> csv() {
      List<String> lines = new ArrayList<>();
      lines.add(line("latency", median(), quantile(0.95), sorted.length));
      if (floor > 0) {
        lines.add(line("floor", floor, floor, 0));
      }
      if (served > 0) {
        lines.add(line("mean", mean(), mean(), sorted.length));
        lines.add(line("prometheus_mean", served, served, sorted.length));
      }
      if (shown > 0) {
        lines.add(line("dashboard_p50", shown, shown, sorted.length));
      }
      return lines;
    }

    /**
     * How long the rounds took, by the timers of those who were in them: how many passes took at
     * most so long. Only the buckets in which there are some.
     */
    List<String> roundsCsv() {
      Map<String, Map<Double, Double>> rounds = new TreeMap<>();
      for (Metrics.Sample bucket : passes) {
        boolean coordinator = bucket.label("service").equals(Settings.COORDINATOR);
        rounds
            .computeIfAbsent(
                "%s,%s,%s"
                    .formatted(
                        bucket.label("protocol"),
                        bucket.label("round"),
                        coordinator ? "coordinator" : "parties"),
                _ -> new TreeMap<>())
            .merge(Metrics.number(bucket.label("le")), bucket.value(), Double::sum);
      }
      List<String> lines = new ArrayList<>();
      rounds.forEach(
          (round, buckets) -> {
            double below = 0;
            for (Map.Entry<Double, Double> bucket : buckets.entrySet()) {
              if (bucket.getValue() > below) {
                below = bucket.getValue();
                lines.add(
                    String.format(
                        Locale.ROOT,
                        "%s,%s,%s,%s,%.3f,%.0f",
                        cell.csv(),
                        cell.setting().delay(),
                        cell.setting().placement(),
                        round,
                        1000 * bucket.getKey(),
                        below));
              }
            }
          });
      return lines;
    }

    private String line(String metric, double median, double p95, int runs) {
      return String.format(
          Locale.ROOT,
          "%s,%s,ms,%.3f,%.3f,%d,%s,%s",
          cell.csv(),
          metric,
          median,
          p95,
          runs,
          cell.setting().delay(),
          cell.setting().placement());
    }
  }

  private static final String REQUESTS = "coterie_coordinator_requests_seconds";
  private static final String ROUND = "coterie_protocol_round_seconds";

  static final String HEADER =
      "scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs,delay_ms,placement";

  static final String ROUNDS_HEADER =
      "scenario,scheme,t,n,mode,phase,delay_ms,placement,protocol,round,by,at_most_ms,passes";

  private final PrintStream out = System.out;
  private static final long STARTED = System.nanoTime();
  private final LabNetwork network;
  private final Cluster cluster;
  private final Path folder;
  private final int runs;
  private final List<Result> results;
  private final Map<String, String> keys = new HashMap<>();
  private final AtomicInteger newKeys = new AtomicInteger();

  /** Empty where there is no Prometheus. */
  private Optional<LabDashboard> dashboard = Optional.empty();

  private Lab(LabNetwork network, Cluster cluster, Path folder, List<Result> results, int runs) {
    this.network = network;
    this.cluster = cluster;
    this.folder = folder;
    this.results = results;
    this.runs = runs;
  }

  /**
   * @param args the delayer's program, the number of parties that have a namespace, and {@code
   *     full}, {@code large}, {@code paper}, {@code contacts}, {@code quick} or {@code check}
   */
  public static void main(String[] args) {
    try {
      run(Path.of(args[0]), Integer.parseInt(args[1]), args[2]);
      System.exit(0);
    } catch (IOException | RuntimeException e) {
      System.err.println("the latency lab failed: " + e.getMessage());
      e.printStackTrace(System.err);
      System.exit(1);
    }
  }

  private static void run(Path delayer, int parties, String extent) throws IOException {
    Path folder = Files.createDirectories(Path.of("build", "lab"));
    List<Result> results = new ArrayList<>();
    try (LabNetwork network = LabNetwork.open(delayer, parties)) {
      switch (extent) {
        case "full" -> {
          // Processes of parties that take no part would still take processor time.
          measure(network, PAPER_PARTIES, folder, results, 20, Lab::full);
          measure(network, parties, folder, results, 20, Lab::large);
        }
        case "large" -> measure(network, parties, folder, results, 20, Lab::large);
        case "paper" -> measure(network, parties, folder, results, 20, Lab::paper);
        case "contacts" -> measure(network, parties, folder, results, 20, Lab::contacts);
        case "quick" -> measure(network, parties, folder, results, 5, Lab::quick);
        case "check" -> measure(network, parties, folder, results, 15, Lab::check);
        default ->
            throw new IllegalArgumentException(
                "full, large, paper, contacts, quick or check, not " + extent);
      }
    }
  }

  private interface Measurement {
    void of(Lab lab) throws IOException;
  }

  /** Measures with an installation of its own; what is measured is added to the results. */
  private static void measure(
      LabNetwork network,
      int parties,
      Path folder,
      List<Result> results,
      int runs,
      Measurement measurement)
      throws IOException {
    network.delays((_, _) -> 0);
    try (Cluster cluster = start(network, parties, folder)) {
      Lab lab = new Lab(network, cluster, folder, results, runs);
      try {
        measurement.of(lab);
      } finally {
        lab.dashboard.ifPresent(LabDashboard::close);
      }
    }
  }

  /** An installation of that many parties in the network, without delays yet. */
  static Cluster start(LabNetwork network, int parties, Path folder) {
    Cluster.Builder builder =
        Cluster.of(parties)
            .residents(network::site)
            .folder(folder.resolve("cluster"))
            // What the modes differ by is measured, not repaired by another session.
            .setting(Settings.COORDINATOR, "--coterie.coordinator.signing.min=40s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.signing.initial=40s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.signing.max=40s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.keygen.min=55s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.keygen.initial=55s")
            .progress(line -> System.out.println("           " + line));
    return builder.start();
  }

  private static final Shape TWO_OF_THREE = new Shape(2, 3);

  /** The paper's cells. */
  private static final List<Shape> ALL_SIGN =
      List.of(new Shape(3, 3), new Shape(4, 4), new Shape(5, 5));

  private static final List<Shape> THRESHOLDS = List.of(TWO_OF_THREE, new Shape(3, 5));

  private static final List<Shape> LARGE = List.of(new Shape(7, 10), new Shape(14, 20));

  /** Those of the paper's cells. */
  private static final int PAPER_PARTIES = 5;

  private static final List<Shape> SMALL = List.of(new Shape(3, 3), TWO_OF_THREE);

  private static List<Shape> all(List<Shape> some, List<Shape> more) {
    List<Shape> shapes = new ArrayList<>(some);
    shapes.addAll(more);
    return shapes;
  }

  private void full() throws IOException {
    List<Shape> shapes = all(ALL_SIGN, THRESHOLDS);
    Setting far = Setting.uniform(75, Placement.THIRD_REGION);
    prepare(shapes, 5000);
    waterfall();
    // First contacts before the cells without a distance, where all is computing: the mode that is
    // measured first is no colder there than the others.
    firstContacts(MODES, far, shapes);
    for (SendMode mode : MODES) {
      restart(cluster.partyNames(), mode);
      for (int delay : new int[] {0, 1, 10}) {
        cells(mode, Setting.uniform(delay, Placement.THIRD_REGION), SMALL);
      }
      cells(mode, far, shapes);
      cells(mode, Setting.uniform(75, Placement.BESIDE_PARTY), SMALL);
      cells(mode, Setting.uniform(75, Placement.BESIDE_COORDINATOR), List.of(TWO_OF_THREE));
      cells(mode, Setting.uniform(150, Placement.THIRD_REGION), ALL_SIGN);
      for (Setting setting : published()) {
        cells(mode, setting, THRESHOLDS);
      }
    }
    rotation(far);
    presignable(List.of(75, 150));
    write();
  }

  /** More parties than a machine of few processors has power for: it shows where that begins. */
  private void large() throws IOException {
    prepare(LARGE, 400);
    Setting setting = Setting.uniform(75, Placement.THIRD_REGION);
    // Nobody is as warm here as in the small cells, and the group should not be the coldest.
    List<SendMode> modes =
        List.of(SendMode.PAIRWISE_PARALLEL, SendMode.GROUP, SendMode.PAIRWISE_SEQUENTIAL);
    for (SendMode mode : modes) {
      restart(cluster.partyNames(), mode);
      cells(mode, setting, LARGE);
    }
    firstContacts(modes, setting, LARGE);
  }

  /** The paper's cells, 2-of-3, and what the other schemes take, at one distance. */
  private void paper() throws IOException {
    Setting setting = Setting.uniform(75, Placement.THIRD_REGION);
    prepare(all(ALL_SIGN, SMALL.subList(1, 2)), 4000);
    waterfall();
    for (SendMode mode : MODES) {
      restart(cluster.partyNames(), mode);
      cells(mode, setting, all(ALL_SIGN, SMALL.subList(1, 2)));
    }
    rotation(setting);
    presignable(List.of(75));
    write();
    firstContacts(MODES, setting, ALL_SIGN);
  }

  /** First contacts alone. */
  private void contacts() throws IOException {
    List<Shape> shapes = all(ALL_SIGN, THRESHOLDS);
    prepare(shapes, 4000);
    firstContacts(MODES, Setting.uniform(75, Placement.THIRD_REGION), shapes);
  }

  /** The modes take turns, so that all are as warm. */
  private void firstContacts(List<SendMode> modes, Setting setting, List<Shape> shapes)
      throws IOException {
    for (Shape shape : shapes) {
      for (SendMode mode : modes) {
        restart(cluster.partyNames(), mode);
        firstContact(mode, setting, shape, runs);
      }
    }
  }

  private void quick() throws IOException {
    prepare(SMALL, 1000);
    waterfall();
    for (SendMode mode : MODES) {
      restart(cluster.partyNames(), mode);
      cells(mode, Setting.uniform(75, Placement.THIRD_REGION), SMALL);
      firstContact(
          mode, Setting.uniform(75, Placement.THIRD_REGION), SMALL.getFirst(), FEW_CONTACTS);
    }
    rotation(Setting.uniform(75, Placement.THIRD_REGION));
    presignable(List.of(75));
    write();
  }

  /**
   * One setting, with bounds that hold on a busy machine too: the fastest of all runs shows whether
   * a message makes a way too many, and Prometheus tells of the same calls as the client.
   */
  private void check() throws IOException {
    prepare(List.of(TWO_OF_THREE), 100);
    cells(
        SendMode.GROUP,
        Setting.uniform(CHECKED_MILLIS, Placement.THIRD_REGION),
        List.of(TWO_OF_THREE));
    for (Result result : results) {
      double fastest = result.quantile(0);
      boolean signing = result.cell().scenario().equals("sign");
      double bound = signing ? result.floor() + 2 * CHECKED_MILLIS : 2 * result.floor();
      if (fastest < result.floor() || fastest >= bound) {
        throw new IllegalStateException(
            "%.1f ms, floor %.1f, bound %.1f: %s"
                .formatted(fastest, result.floor(), bound, result.csv()));
      }
      boolean inside =
          result.served() >= result.floor()
              && result.served() <= result.mean()
              && (!signing
                  || (result.rounds() >= result.floor() && result.rounds() <= result.served()));
      // Besides what the coordinator times, the client sees its own call, on a machine that may be
      // busy.
      if (!inside || result.mean() - result.served() > result.floor() / 2) {
        throw new IllegalStateException(
            "the client's mean is %.1f ms, the coordinator's %.1f, its rounds' %.1f: %s"
                .formatted(result.mean(), result.served(), result.rounds(), result.csv()));
      }
      // As far as the buckets tell: a median is somewhere in one of them.
      if (dashboard.isPresent()
          && (result.shown() < result.floor() / BUCKET_RATIO
              || result.shown() > result.median() * BUCKET_RATIO)) {
        throw new IllegalStateException(
            "the client's median is %.1f ms, the dashboard's %.1f: %s"
                .formatted(result.median(), result.shown(), result.csv()));
      }
    }
    progress("no round trip too many; Prometheus, the dashboard and the client agree");
  }

  /**
   * Makes the keys, and lets the compiler see the code that is measured.
   *
   * @param compiled sessions for the compiler; one in {@link #WARM_UPS_PER_KEY} makes a key
   */
  private void prepare(List<Shape> shapes, int compiled) throws IOException {
    network.delays((_, _) -> 0);
    Setting none = Setting.uniform(0, Placement.THIRD_REGION);
    for (Shape shape : shapes) {
      key(new Cell("sign", BLS, shape, SendMode.GROUP, SUBSEQUENT, none));
    }
    // By the shape with the most signers, so that each process has seen it.
    Shape widest = shapes.stream().max(Comparator.comparingInt(Shape::threshold)).orElseThrow();
    String key = key(new Cell("sign", BLS, widest, SendMode.GROUP, SUBSEQUENT, none));
    List<String> parties = cluster.partyNames().subList(0, widest.parties());
    AtomicInteger session = new AtomicInteger();
    repeat(
        WARM_UPS_AT_ONCE,
        compiled,
        () -> {
          int number = session.incrementAndGet();
          return number % WARM_UPS_PER_KEY == 0
              ? create(BLS, widest, parties)
              : cluster.wallet().sign(key, "warm " + number);
        });
    dashboard =
        LabDashboard.start(
            Path.of(System.getProperty("coterie.root", "")).toAbsolutePath(),
            folder.resolve("prometheus").toAbsolutePath(),
            cluster);
    progress(
        dashboard.isPresent()
            ? "warm"
            : "warm; there is no Prometheus (make bootstrap), so the dashboard is not asked");
  }

  /** One signing in all its parts. */
  private void waterfall() throws IOException {
    network.delays((_, _) -> 0);
    cluster.messaging().stop();
    cluster.messaging().start(LabTrace.MESSAGING_DEBUG);
    cluster.messaging().awaitReady(RESTART);
    for (String party : cluster.partyNames().subList(0, TWO_OF_THREE.parties())) {
      cluster.signer(party).stop();
      cluster.signer(party).start(LabTrace.SIGNER_DEBUG);
      cluster.signer(party).awaitReady(RESTART);
    }
    cluster.coordinator().awaitReady(RESTART);
    Setting setting = Setting.uniform(75, Placement.THIRD_REGION);
    network.delays(setting.oneWayMillis());
    Cell cell = new Cell("sign", BLS, TWO_OF_THREE, SendMode.GROUP, SUBSEQUENT, setting);
    String key = key(cell);
    for (int i = 0; i < 2 * WARM_UPS; i++) {
      cluster.wallet().sign(key, MESSAGE);
    }
    Instant begin = Instant.now();
    Signing signing = cluster.wallet().sign(key, MESSAGE);
    Instant end = Instant.now();
    List<String> lines = new ArrayList<>(List.of(LabTrace.HEADER));
    LabTrace.read(cluster, signing.getSigningSetList(), begin, end, 75)
        .forEach(span -> lines.add(span.csv()));
    double floor = floor(cell, Floor.Operation.SIGN, signing.getSigningSetList());
    lines.add(new LabTrace.Span("floor", "floor", 0, floor).csv());
    Files.write(folder.resolve("waterfall.csv"), lines);
    network.delays((_, _) -> 0);
    cluster.messaging().stop();
    cluster.messaging().start();
    cluster.messaging().awaitReady(RESTART);
    progress("wrote " + folder.resolve("waterfall.csv"));
  }

  /** Signing and key generation. */
  private void cells(SendMode mode, Setting setting, List<Shape> shapes) throws IOException {
    network.delays(setting.oneWayMillis());
    for (Shape shape : shapes) {
      sign(new Cell("sign", BLS, shape, mode, SUBSEQUENT, setting));
      keygen(new Cell("keygen", BLS, shape, mode, SUBSEQUENT, setting));
    }
    write();
  }

  /**
   * Five parties in five regions: messaging where the planner puts it, and beside the first party.
   */
  private static List<Setting> published() {
    List<String> parties = List.of("us-east", "eu-gb", "eu-de", "jp-tok", "br-sao");
    Regions regions = Regions.published();
    Planner.Plan plan = new Planner(regions).plans(parties, 3, "", parties).getFirst();
    List<Setting> settings = new ArrayList<>();
    for (boolean planned : new boolean[] {true, false}) {
      ToDoubleBiFunction<String, String> oneWay =
          (from, to) -> {
            String a = region(from, parties, plan, planned);
            String b = region(to, parties, plan, planned);
            return a.equals(b) ? 0 : regions.oneWayMillis(a, b);
          };
      settings.add(
          new Setting("regions", planned ? "planned" : Placement.THIRD_REGION.label(), oneWay));
    }
    return settings;
  }

  /** Parties beyond the fifth are where the first ones are. */
  private static String region(
      String place, List<String> parties, Planner.Plan plan, boolean planned) {
    return switch (place) {
      case Cluster.CLIENT, Settings.COORDINATOR -> plan.coordinator();
      case Cluster.MESSAGING_NAME -> planned ? plan.messaging() : "us-south";
      default ->
          parties.get(
              (Integer.parseInt(place.substring(place.indexOf('-') + 1)) - 1) % parties.size());
    };
  }

  /**
   * The first session of parties that left and came back: none of them has a session or a sender
   * key with anybody, nor anybody with them, but what they made until they said to be ready.
   */
  private void firstContact(SendMode mode, Setting setting, Shape shape, int contacts)
      throws IOException {
    network.delays(setting.oneWayMillis());
    List<String> parties = cluster.partyNames().subList(0, shape.parties());
    Cell sign = new Cell("sign", BLS, shape, mode, FIRST, setting);
    Cell keygen = new Cell("keygen", BLS, shape, mode, FIRST, setting);
    Cell reconnect = new Cell("reconnect", BLS, shape, mode, FIRST, setting);
    String key = key(sign);
    double[] signing = new double[contacts];
    double[] making = new double[contacts];
    double[] connecting = new double[contacts];
    for (int run = 0; run < contacts; run++) {
      connecting[run] = reconnect(parties);
      signing[run] = time(() -> cluster.wallet().sign(key, MESSAGE));
      reconnect(parties);
      making[run] = time(() -> create(BLS, shape, parties));
    }
    add(new Result(reconnect, connecting, 0));
    List<String> signers = parties.subList(0, shape.threshold());
    add(new Result(sign, signing, floor(sign, Floor.Operation.SIGN, signers)));
    add(new Result(keygen, making, floor(keygen, Floor.Operation.KEYGEN_BLS, parties)));
    write();
  }

  /**
   * Lets parties leave and come back.
   *
   * @return milliseconds from the last return until all, and the coordinator, say that they are
   *     ready; the coordinator never says otherwise while enough others stay
   */
  private double reconnect(List<String> parties) {
    List<Service> services = parties.stream().map(cluster::signer).toList();
    services.parallelStream().forEach(Service::leave);
    services.parallelStream().forEach(Service::join);
    return time(
        () -> {
          services.forEach(s -> s.awaitReady(RESTART));
          cluster.coordinator().awaitReady(RESTART);
        });
  }

  /** Signing while every member replaces its sender key every other second. */
  private void rotation(Setting setting) {
    network.delays(setting.oneWayMillis());
    List<String> parties = cluster.partyNames().subList(0, 3);
    restart(parties, SendMode.GROUP, "sender-key-age=2s");
    sign(new Cell("sign", BLS, new Shape(3, 3), SendMode.GROUP, ROTATING, setting));
    restart(parties, SendMode.GROUP);
  }

  /** ECDSA and FROST signatures by the protocol's rounds, and with presignatures. */
  private void presignable(List<Integer> delays) {
    network.delays((_, _) -> 0);
    restart(cluster.partyNames().subList(0, TWO_OF_THREE.parties()), SendMode.GROUP);
    for (boolean presigned : new boolean[] {false, true}) {
      Service coordinator = cluster.coordinator();
      coordinator.stop();
      coordinator.start(
          "--coterie.coordinator.presignatures.target=" + (presigned ? PRESIGNATURES : 0));
      coordinator.awaitReady(RESTART);
      for (int delay : delays) {
        Setting setting = Setting.uniform(delay, Placement.THIRD_REGION);
        network.delays(setting.oneWayMillis());
        for (String scheme : List.of(ECDSA, ED25519)) {
          String scenario = presigned ? "sign_presigned" : "sign";
          signByRounds(
              new Cell(scenario, scheme, TWO_OF_THREE, SendMode.GROUP, SUBSEQUENT, setting),
              presigned);
        }
      }
    }
  }

  private void signByRounds(Cell cell, boolean presigned) {
    boolean ecdsa = cell.scheme().equals(ECDSA);
    Floor.Operation rounds = ecdsa ? Floor.Operation.SIGN_ECDSA : Floor.Operation.SIGN_FROST;
    String key = key(cell);
    ByteString message = ByteString.copyFromUtf8(MESSAGE);
    measure(
        cell,
        presigned ? Floor.Operation.SIGN : rounds,
        cluster.partyNames().subList(0, cell.shape().threshold()),
        () -> {
          SigningIntent.Builder intent =
              ecdsa
                  ? WalletBackend.ecdsaIntent(key, 0, 7).setEthereumMessage(message)
                  : WalletBackend.signingIntent(key, message.toByteArray())
                      .setScheme(Scheme.SCHEME_ED25519);
          return cluster.wallet().sign(intent).getPresigned() == presigned;
        });
  }

  private void sign(Cell cell) {
    String key = key(cell);
    for (int i = 0; i < WARM_UPS; i++) {
      cluster.wallet().sign(key, MESSAGE);
    }
    // The coordinator prefers those that answer fastest; whoever signs counts for the floor.
    List<String> signers = cluster.wallet().sign(key, MESSAGE).getSigningSetList();
    measure(
        cell,
        Floor.Operation.SIGN,
        signers,
        () -> {
          cluster.wallet().sign(key, MESSAGE);
          return true;
        });
  }

  private void keygen(Cell cell) {
    List<String> parties = cluster.partyNames().subList(0, cell.shape().parties());
    measure(
        cell,
        Floor.Operation.KEYGEN_BLS,
        parties,
        () -> {
          create(cell.scheme(), cell.shape(), parties);
          return true;
        });
  }

  private String create(String scheme, Shape shape, List<String> parties) {
    String name = "lab-" + newKeys.incrementAndGet();
    KeyIntent intent =
        WalletBackend.keyIntent(name, shape.threshold(), parties)
            .setScheme(SCHEMES.get(scheme))
            .build();
    cluster
        .wallet()
        .keys()
        .createKey(WalletBackend.request(cluster.wallet().intents().sign(intent)));
    return name;
  }

  private String key(Cell cell) {
    return keys.computeIfAbsent(
        cell.scheme() + " " + cell.shape(),
        _ ->
            create(
                cell.scheme(),
                cell.shape(),
                cluster.partyNames().subList(0, cell.shape().parties())));
  }

  /**
   * Takes a cell's samples.
   *
   * @param once one run; false if it was none of this cell and does not count
   */
  private void measure(
      Cell cell, Floor.Operation operation, List<String> parties, BooleanSupplier once) {
    double floor = floor(cell, operation, parties);
    for (int i = 0; i < WARM_UPS; i++) {
      var unused = once.getAsBoolean();
    }
    // In one mode: what the client sees is held against the dashboard, not the modes' difference.
    Optional<LabDashboard> shown = dashboard.filter(_ -> cell.mode() == SendMode.GROUP);
    String method = operation == Floor.Operation.KEYGEN_BLS ? "CreateKey" : "Sign";
    Optional<LabDashboard.Moment> begin = shown.map(d -> d.moment(method));
    Metrics before = cluster.metrics();
    double[] samples = samples(atOnce(floor, cell.shape()), once);
    Metrics after = cluster.metrics().since(before);
    add(
        new Result(
            cell,
            samples,
            floor,
            meanMillis(after, REQUESTS),
            meanMillis(after, ROUND),
            shown.map(d -> d.median(begin.orElseThrow(), d.moment(method))).orElse(0.0),
            after.samples().stream().filter(s -> s.name().equals(ROUND + "_bucket")).toList()));
  }

  /** Of a timer of the coordinator. */
  private static double meanMillis(Metrics metrics, String timer) {
    Predicate<Metrics.Sample> own = s -> s.label("service").equals(Settings.COORDINATOR);
    double count = metrics.sum(timer + "_count", own);
    return count == 0 ? 0 : 1000 * metrics.sum(timer + "_sum", own) / count;
  }

  private void add(Result result) {
    results.add(result);
    progress(
        "%-58s %8.1f ms, floor %7.1f ms, times floor %.3f"
            .formatted(
                result.cell().csv() + " " + result.cell().setting(),
                result.median(),
                result.floor(),
                result.median() / result.floor()));
  }

  static double floor(Cell cell, Floor.Operation operation, List<String> parties) {
    return new Floor(
            cell.setting().oneWayMillis(),
            cell.mode() == SendMode.PAIRWISE_SEQUENTIAL
                ? Floor.Sending.ONE_AFTER_ANOTHER
                : Floor.Sending.AT_ONCE)
        .millis(
            operation,
            new Floor.Places(
                Cluster.CLIENT, Settings.COORDINATOR, Cluster.MESSAGING_NAME, parties));
  }

  /** Long runs are nearly all waiting: some of them at once do not disturb each other. */
  private static int atOnce(double floor, Shape shape) {
    int most = shape.parties() > PAPER_PARTIES ? FEW_AT_ONCE : MOST_AT_ONCE;
    return (int) Math.clamp(Math.ceil(floor / LONG_RUN_MILLIS), 1, most);
  }

  private double[] samples(int atOnce, BooleanSupplier once) {
    return repeat(
            atOnce,
            runs,
            () -> {
              for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
                long begin = System.nanoTime();
                if (once.getAsBoolean()) {
                  return (System.nanoTime() - begin) / 1e6;
                }
              }
              throw new IllegalStateException(
                  "not one run of " + ATTEMPTS + " was what it should be");
            })
        .stream()
        .mapToDouble(Double::doubleValue)
        .toArray();
  }

  /** Does the same so many times, some of them at once. */
  private static <T> List<T> repeat(int atOnce, int times, Callable<T> once) {
    try (ExecutorService threads = Executors.newFixedThreadPool(atOnce)) {
      List<Future<T>> all = IntStream.range(0, times).mapToObj(_ -> threads.submit(once)).toList();
      List<T> results = new ArrayList<>();
      for (Future<T> one : all) {
        results.add(one.get());
      }
      return results;
    } catch (ExecutionException e) {
      throw new CompletionException(e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }

  /**
   * Stops and starts the coordinator and parties, so that nobody has a session or a sender key with
   * anybody.
   *
   * @return milliseconds from the last start until all say that they have them again
   */
  private double restart(List<String> parties, SendMode mode, String... more) {
    List<Service> services = new ArrayList<>(List.of(cluster.coordinator()));
    parties.forEach(p -> services.add(cluster.signer(p)));
    services.parallelStream().forEach(Service::stop);
    services.parallelStream()
        .forEach(
            service ->
                service.start(
                    Stream.concat(Stream.of("send-mode=" + mode), Stream.of(more))
                        .map(setting -> channelSetting(service, setting))
                        .toArray(String[]::new)));
    double reconnected = time(() -> services.forEach(s -> s.awaitReady(RESTART)));
    // The client's own connection to the coordinator is not what is measured.
    cluster.wallet().keys().withWaitForReady().listKeys(ListKeysRequest.getDefaultInstance());
    return reconnected;
  }

  private String channelSetting(Service service, String setting) {
    return "--coterie.%s.channel.%s"
        .formatted(service == cluster.coordinator() ? "coordinator" : "signer", setting);
  }

  /** All that was measured until now: what comes later may be interrupted. */
  private void write() throws IOException {
    List<String> lines = new ArrayList<>(List.of(HEADER));
    results.forEach(result -> lines.addAll(result.csv()));
    Files.write(folder.resolve("results.csv"), lines);
    List<String> samples =
        new ArrayList<>(
            List.of("scenario,scheme,t,n,mode,phase,delay_ms,placement,floor_ms,latency_ms"));
    for (Result result : results) {
      for (double sample : result.sorted()) {
        samples.add(
            String.format(
                Locale.ROOT,
                "%s,%s,%s,%.3f,%.3f",
                result.cell().csv(),
                result.cell().setting().delay(),
                result.cell().setting().placement(),
                result.floor(),
                sample));
      }
    }
    Files.write(folder.resolve("samples.csv"), samples);
    List<String> rounds = new ArrayList<>(List.of(ROUNDS_HEADER));
    results.forEach(result -> rounds.addAll(result.roundsCsv()));
    Files.write(folder.resolve("rounds.csv"), rounds);
    Files.writeString(folder.resolve("report.md"), LabReport.of(results, runs));
    progress("wrote " + folder.resolve("report.md"));
  }

  private static double time(Runnable work) {
    long begin = System.nanoTime();
    work.run();
    return (System.nanoTime() - begin) / 1e6;
  }

  private void progress(String what) {
    out.printf(Locale.ROOT, "%7.1f s  %s%n", (System.nanoTime() - STARTED) / 1e9, what);
  }
}
