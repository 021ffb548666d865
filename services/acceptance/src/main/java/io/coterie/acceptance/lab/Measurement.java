package io.coterie.acceptance.lab;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.Service;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.acceptance.lab.Cell.Placement;
import io.coterie.acceptance.lab.Cell.Setting;
import io.coterie.acceptance.lab.Cell.Shape;
import io.coterie.channel.SendMode;
import io.coterie.cli.plan.Floor;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Takes the samples of cells at one installation. */
final class Measurement implements AutoCloseable {
  private static final Duration RESTART = Duration.ofSeconds(60);

  private static final Map<String, Scheme> SCHEMES =
      Map.of(
          Cell.BLS, Scheme.SCHEME_BLS12381,
          Cell.ECDSA, Scheme.SCHEME_ECDSA_SECP256K1,
          Cell.ED25519, Scheme.SCHEME_ED25519);

  static final Shape TWO_OF_THREE = new Shape(2, 3);

  /** Kept ready where signing with presignatures is measured. */
  private static final int PRESIGNATURES = 16;

  private static final String MESSAGE = "withdrawal 4711: 1.25 ETH";

  /** Tries of a run that may turn out to be of another kind. */
  private static final int ATTEMPTS = 50;

  /** Runs of a cell before those that count. */
  private static final int WARM_UPS = 3;

  /** A cell whose single run takes longer has several under way at once. */
  private static final double LONG_RUN_MILLIS = 1000;

  private static final int MOST_AT_ONCE = 8;

  /** The same with more parties, which together compute for more than a second of each run. */
  private static final int FEW_AT_ONCE = 2;

  /** How many sessions run at once to warm the compiler up; they need not wait for each other. */
  private static final int WARM_UPS_AT_ONCE = 4;

  /** Key generations among the sessions that the compiler sees: each takes as long as some ten. */
  private static final int WARM_UPS_PER_KEY = 20;

  /**
   * Of parties, which then send a BLS contribution to the coordinator and to each other, as those
   * of the paper do; the product sends it to the coordinator alone.
   */
  private static final String TO_ALL = "contributions-to-all=true";

  private static final String REQUESTS = "coterie_coordinator_requests_seconds";
  private static final String ROUND = "coterie_protocol_round_seconds";

  private final LabNetwork network;
  private final Cluster cluster;
  private final Results results;
  private final int runs;
  private final Map<String, String> keys = new HashMap<>();
  private final AtomicInteger newKeys = new AtomicInteger();

  /** Empty where there is no Prometheus. */
  private Optional<LabDashboard> dashboard = Optional.empty();

  /**
   * @param runs samples of a cell
   */
  Measurement(LabNetwork network, Cluster cluster, Results results, int runs) {
    this.network = network;
    this.cluster = cluster;
    this.results = results;
    this.runs = runs;
  }

  /** Whether the dashboard is asked too. */
  boolean asksDashboard() {
    return dashboard.isPresent();
  }

  /**
   * Makes the keys, and lets the compiler see the code that is measured.
   *
   * @param compiled sessions for the compiler; one in {@link #WARM_UPS_PER_KEY} makes a key
   */
  void prepare(List<Shape> shapes, int compiled) throws IOException {
    network.delays((_, _) -> 0);
    Setting none = Setting.uniform(0, Placement.THIRD_REGION);
    for (Shape shape : shapes) {
      key(new Cell("sign", Cell.BLS, shape, SendMode.GROUP, Cell.SUBSEQUENT, none));
    }
    // The shape with the most signers signs, so that each process has seen it.
    Shape widest = shapes.stream().max(Comparator.comparingInt(Shape::threshold)).orElseThrow();
    String key = key(new Cell("sign", Cell.BLS, widest, SendMode.GROUP, Cell.SUBSEQUENT, none));
    List<String> parties = cluster.partyNames().subList(0, widest.parties());
    AtomicInteger session = new AtomicInteger();
    repeat(
        WARM_UPS_AT_ONCE,
        compiled,
        () -> {
          int number = session.incrementAndGet();
          return number % WARM_UPS_PER_KEY == 0
              ? create(Cell.BLS, widest, parties)
              : cluster.wallet().sign(key, "warm " + number);
        });
    dashboard =
        LabDashboard.start(
            Path.of(System.getProperty("coterie.root", "")).toAbsolutePath(),
            results.folder().resolve("prometheus").toAbsolutePath(),
            cluster);
    Results.progress(
        dashboard.isPresent()
            ? "warm"
            : "warm; there is no Prometheus (make bootstrap), so the dashboard is not asked");
  }

  /** One signing in all its parts. */
  void waterfall() throws IOException {
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
    Cell cell = new Cell("sign", Cell.BLS, TWO_OF_THREE, SendMode.GROUP, Cell.SUBSEQUENT, setting);
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
    Files.write(results.folder().resolve("waterfall.csv"), lines);
    network.delays((_, _) -> 0);
    cluster.messaging().stop();
    cluster.messaging().start();
    cluster.messaging().awaitReady(RESTART);
    Results.progress("wrote " + results.folder().resolve("waterfall.csv"));
  }

  /** Signing and key generation. */
  void cells(SendMode mode, Setting setting, List<Shape> shapes) throws IOException {
    network.delays(setting.oneWayMillis());
    for (Shape shape : shapes) {
      sign(new Cell("sign", Cell.BLS, shape, mode, Cell.SUBSEQUENT, setting));
      keygen(new Cell("keygen", Cell.BLS, shape, mode, Cell.SUBSEQUENT, setting));
    }
    write();
  }

  /** Signing alone, by parties that send their contributions to all, as the paper's do. */
  void signToAll(SendMode mode, List<Setting> settings, List<Shape> shapes) throws IOException {
    restart(cluster.partyNames(), mode, TO_ALL);
    for (Setting setting : settings) {
      network.delays(setting.oneWayMillis());
      for (Shape shape : shapes) {
        sign(new Cell(Cell.SIGN_TO_ALL, Cell.BLS, shape, mode, Cell.SUBSEQUENT, setting));
      }
    }
    write();
  }

  /**
   * The first session of parties that left and came back: none of them has a session or a sender
   * key with anybody, nor anybody with them, but what they made until they said to be ready.
   */
  void firstContact(SendMode mode, Setting setting, Shape shape, int contacts) throws IOException {
    network.delays(setting.oneWayMillis());
    List<String> parties = cluster.partyNames().subList(0, shape.parties());
    Cell sign = new Cell("sign", Cell.BLS, shape, mode, Cell.FIRST, setting);
    Cell keygen = new Cell("keygen", Cell.BLS, shape, mode, Cell.FIRST, setting);
    Cell reconnect = new Cell("reconnect", Cell.BLS, shape, mode, Cell.FIRST, setting);
    String key = key(sign);
    double[] signing = new double[contacts];
    double[] making = new double[contacts];
    double[] connecting = new double[contacts];
    for (int run = 0; run < contacts; run++) {
      connecting[run] = reconnect(parties);
      signing[run] = time(() -> cluster.wallet().sign(key, MESSAGE));
      reconnect(parties);
      making[run] = time(() -> create(Cell.BLS, shape, parties));
    }
    results.add(new Result(reconnect, connecting, 0));
    List<String> signers = parties.subList(0, shape.threshold());
    results.add(new Result(sign, signing, floor(sign, Floor.Operation.SIGN, signers)));
    results.add(new Result(keygen, making, floor(keygen, Floor.Operation.KEYGEN_BLS, parties)));
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
  void rotation(Setting setting) {
    network.delays(setting.oneWayMillis());
    List<String> parties = cluster.partyNames().subList(0, 3);
    restart(parties, SendMode.GROUP, "sender-key-age=2s");
    sign(new Cell("sign", Cell.BLS, new Shape(3, 3), SendMode.GROUP, Cell.ROTATING, setting));
    restart(parties, SendMode.GROUP);
  }

  /** Cell.ECDSA and FROST signatures by the protocol's rounds, and with presignatures. */
  void presignable(List<Integer> delays) {
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
        for (String scheme : List.of(Cell.ECDSA, Cell.ED25519)) {
          String scenario = presigned ? "sign_presigned" : "sign";
          signByRounds(
              new Cell(scenario, scheme, TWO_OF_THREE, SendMode.GROUP, Cell.SUBSEQUENT, setting),
              presigned);
        }
      }
    }
  }

  private void signByRounds(Cell cell, boolean presigned) {
    boolean ecdsa = cell.scheme().equals(Cell.ECDSA);
    Floor.Operation rounds = ecdsa ? Floor.Operation.SIGN_ECDSA : Floor.Operation.SIGN_FROST;
    String key = key(cell);
    ByteString message = ByteString.copyFromUtf8(MESSAGE);
    measure(
        cell,
        presigned ? Floor.Operation.SIGN_PRESIGNED : rounds,
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
    // The coordinator prefers the fastest parties; those that sign count for the floor.
    List<String> signers = cluster.wallet().sign(key, MESSAGE).getSigningSetList();
    measure(
        cell,
        // To all means in one round that all hear, which is how the other schemes end.
        cell.scenario().equals(Cell.SIGN_TO_ALL)
            ? Floor.Operation.SIGN_PRESIGNED
            : Floor.Operation.SIGN,
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
    // In one mode: the client's view is held against the dashboard, not the modes' difference.
    Optional<LabDashboard> shown = dashboard.filter(_ -> cell.mode() == SendMode.GROUP);
    String method = operation == Floor.Operation.KEYGEN_BLS ? "CreateKey" : "Sign";
    Optional<LabDashboard.Moment> begin = shown.map(d -> d.moment(method));
    Metrics before = cluster.metrics();
    double[] samples = samples(atOnce(floor, cell.shape()), once);
    Metrics after = cluster.metrics().since(before);
    results.add(
        new Result(
            cell,
            samples,
            floor,
            meanMillis(after, REQUESTS),
            meanMillis(after, ROUND),
            shown.map(d -> d.median(begin.orElseThrow(), d.moment(method))).orElse(0.0),
            after.samples().stream().filter(s -> s.name().equals(ROUND + "_bucket")).toList()));
  }

  /** Mean of a timer of the coordinator. */
  private static double meanMillis(Metrics metrics, String timer) {
    Predicate<Metrics.Sample> own = s -> s.label("service").equals(Settings.COORDINATOR);
    double count = metrics.sum(timer + "_count", own);
    return count == 0 ? 0 : 1000 * metrics.sum(timer + "_sum", own) / count;
  }

  static double floor(Cell cell, Floor.Operation operation, List<String> parties) {
    return new Floor(
            cell.setting().oneWayMillis(),
            switch (cell.mode()) {
              case PAIRWISE_SEQUENTIAL, NAMED_STORED -> Floor.Sending.ONE_AFTER_ANOTHER;
              case GROUP, PAIRWISE_PARALLEL -> Floor.Sending.AT_ONCE;
            })
        .millis(
            operation,
            new Floor.Places(
                Cluster.CLIENT, Settings.COORDINATOR, Cluster.MESSAGING_NAME, parties));
  }

  /** Long runs are nearly all waiting: some of them at once do not disturb each other. */
  private static int atOnce(double floor, Shape shape) {
    int most = shape.crowded() ? FEW_AT_ONCE : MOST_AT_ONCE;
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
  double restart(List<String> parties, SendMode mode, String... more) {
    List<Service> services = new ArrayList<>(List.of(cluster.coordinator()));
    parties.forEach(p -> services.add(cluster.signer(p)));
    services.parallelStream().forEach(Service::stop);
    services.parallelStream()
        .forEach(
            service ->
                service.start(
                    Stream.concat(Stream.of("send-mode=" + mode), Stream.of(more))
                        .filter(s -> service != cluster.coordinator() || !s.equals(TO_ALL))
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

  private void write() throws IOException {
    results.write(runs);
  }

  private static double time(Runnable work) {
    long begin = System.nanoTime();
    work.run();
    return (System.nanoTime() - begin) / 1e6;
  }

  @Override
  public void close() {
    dashboard.ifPresent(LabDashboard::close);
  }
}
