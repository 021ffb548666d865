package io.coterie.acceptance.lab;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.ClusterPlan;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.lab.Cell.Placement;
import io.coterie.acceptance.lab.Cell.Setting;
import io.coterie.acceptance.lab.Cell.Shape;
import io.coterie.channel.SendMode;
import io.coterie.cli.plan.Floor;
import io.coterie.cli.plan.Planner;
import io.coterie.cli.plan.Regions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleBiFunction;

/**
 * {@code make lab}: key generation and signing with real delays between the services, each a
 * process in a network namespace of its own, beside the time that the messages' way alone needs
 * ({@link Floor}). Runs inside {@code loadtest/lab/run}. Writes {@code results.csv}, {@code
 * samples.csv}, {@code rounds.csv}, {@code waterfall.csv} and {@code report.md}.
 */
public final class Lab {
  /** Those that differ least first, so that a report reads from the fastest to the slowest. */
  static final List<SendMode> MODES =
      List.of(SendMode.GROUP, SendMode.PAIRWISE_PARALLEL, SendMode.PAIRWISE_SEQUENTIAL);

  /** First contacts of a cell where not all runs are wanted: each takes up to half a minute. */
  private static final int FEW_CONTACTS = 5;

  /**
   * One way, of the short run: so long that a way too many takes more than all the computing of a
   * signature does where tests of other modules run beside it.
   */
  private static final int CHECKED_MILLIS = 150;

  /** The widest of the timers' buckets between 100 ms and 2.5 s, end to begin. */
  private static final double BUCKET_RATIO = 4 / 3.0;

  private final Cluster cluster;
  private final Results results;
  private final Measurement measurement;
  private final int runs;

  private Lab(Cluster cluster, Results results, Measurement measurement, int runs) {
    this.cluster = cluster;
    this.results = results;
    this.measurement = measurement;
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
    Results results = new Results(folder);
    try (LabNetwork network = LabNetwork.open(delayer, parties)) {
      switch (extent) {
        case "full" -> {
          // Processes of parties that take no part would still take processor time.
          measure(network, Shape.CROWD, results, 20, Lab::full);
          measure(network, parties, results, 20, Lab::large);
        }
        case "large" -> measure(network, parties, results, 20, Lab::large);
        case "paper" -> measure(network, parties, results, 20, Lab::paper);
        case "contacts" -> measure(network, parties, results, 20, Lab::contacts);
        case "quick" -> measure(network, parties, results, 5, Lab::quick);
        case "check" -> measure(network, parties, results, 15, Lab::check);
        default ->
            throw new IllegalArgumentException(
                "full, large, paper, contacts, quick or check, not " + extent);
      }
    }
  }

  private interface Extent {
    void of(Lab lab) throws IOException;
  }

  /** Measures with an installation of its own, and adds to the results. */
  private static void measure(
      LabNetwork network, int parties, Results results, int runs, Extent extent)
      throws IOException {
    network.delays((_, _) -> 0);
    try (Cluster cluster = start(network, parties, results.folder());
        Measurement measurement = new Measurement(network, cluster, results, runs)) {
      extent.of(new Lab(cluster, results, measurement, runs));
    }
  }

  /** An installation of that many parties in the network, without delays yet. */
  static Cluster start(LabNetwork network, int parties, Path folder) {
    ClusterPlan builder =
        Cluster.of(parties)
            .residents(network::site)
            .folder(folder.resolve("cluster"))
            // The modes' difference is measured, not repaired by another session.
            .setting(Settings.COORDINATOR, "--coterie.coordinator.signing.min=40s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.signing.initial=40s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.signing.max=40s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.keygen.min=55s")
            .setting(Settings.COORDINATOR, "--coterie.coordinator.keygen.initial=55s")
            .progress(line -> System.out.println("           " + line));
    return builder.start();
  }

  /** The paper's cells. */
  private static final List<Shape> ALL_SIGN =
      List.of(new Shape(3, 3), new Shape(4, 4), new Shape(5, 5));

  private static final List<Shape> THRESHOLDS = List.of(Measurement.TWO_OF_THREE, new Shape(3, 5));

  private static final List<Shape> LARGE = List.of(new Shape(7, 10), new Shape(14, 20));

  private static final List<Shape> SMALL = List.of(new Shape(3, 3), Measurement.TWO_OF_THREE);

  private static List<Shape> all(List<Shape> some, List<Shape> more) {
    List<Shape> shapes = new ArrayList<>(some);
    shapes.addAll(more);
    return shapes;
  }

  private void full() throws IOException {
    List<Shape> shapes = all(ALL_SIGN, THRESHOLDS);
    Setting far = Setting.uniform(75, Placement.THIRD_REGION);
    measurement.prepare(shapes, 5000);
    measurement.waterfall();
    // First contacts before the cells without a distance, where all is computing: the mode that is
    // measured first is no colder there than the others.
    firstContacts(MODES, far, shapes);
    for (SendMode mode : MODES) {
      measurement.restart(cluster.partyNames(), mode);
      for (int delay : new int[] {0, 1, 10}) {
        measurement.cells(mode, Setting.uniform(delay, Placement.THIRD_REGION), SMALL);
      }
      measurement.cells(mode, far, shapes);
      measurement.cells(mode, Setting.uniform(75, Placement.BESIDE_PARTY), SMALL);
      measurement.cells(
          mode,
          Setting.uniform(75, Placement.BESIDE_COORDINATOR),
          List.of(Measurement.TWO_OF_THREE));
      measurement.cells(mode, Setting.uniform(150, Placement.THIRD_REGION), ALL_SIGN);
      for (Setting setting : published()) {
        measurement.cells(mode, setting, THRESHOLDS);
      }
    }
    // In the paper's cells alone: in all of them it would take an hour longer.
    measurement.restart(cluster.partyNames(), SendMode.NAMED_STORED);
    measurement.cells(SendMode.NAMED_STORED, far, ALL_SIGN);
    measurement.signToAll(SendMode.NAMED_STORED, List.of(far), ALL_SIGN);
    for (SendMode mode : MODES) {
      measurement.signToAll(
          mode, List.of(far, Setting.uniform(150, Placement.THIRD_REGION)), ALL_SIGN);
    }
    measurement.rotation(far);
    measurement.presignable(List.of(75, 150));
    results.write(runs);
  }

  /** More parties than a machine of few processors has power for: it shows where that begins. */
  private void large() throws IOException {
    measurement.prepare(LARGE, 400);
    Setting setting = Setting.uniform(75, Placement.THIRD_REGION);
    // Nobody is as warm here as in the small cells, and the group should not be the coldest.
    List<SendMode> modes =
        List.of(SendMode.PAIRWISE_PARALLEL, SendMode.GROUP, SendMode.PAIRWISE_SEQUENTIAL);
    for (SendMode mode : modes) {
      measurement.restart(cluster.partyNames(), mode);
      measurement.cells(mode, setting, LARGE);
    }
    firstContacts(modes, setting, LARGE);
  }

  /** The paper's cells, 2-of-3, and what the other schemes take, at one distance. */
  private void paper() throws IOException {
    Setting setting = Setting.uniform(75, Placement.THIRD_REGION);
    measurement.prepare(all(ALL_SIGN, SMALL.subList(1, 2)), 4000);
    measurement.waterfall();
    for (SendMode mode : LabReport.ALL_MODES) {
      measurement.restart(cluster.partyNames(), mode);
      measurement.cells(mode, setting, all(ALL_SIGN, SMALL.subList(1, 2)));
    }
    for (SendMode mode : LabReport.ALL_MODES) {
      measurement.signToAll(mode, List.of(setting), ALL_SIGN);
    }
    measurement.rotation(setting);
    measurement.presignable(List.of(75));
    results.write(runs);
    firstContacts(LabReport.ALL_MODES, setting, ALL_SIGN);
  }

  /** First contacts alone. */
  private void contacts() throws IOException {
    List<Shape> shapes = all(ALL_SIGN, THRESHOLDS);
    measurement.prepare(shapes, 4000);
    firstContacts(MODES, Setting.uniform(75, Placement.THIRD_REGION), shapes);
  }

  /** The modes take turns, so that all are as warm. */
  private void firstContacts(List<SendMode> modes, Setting setting, List<Shape> shapes)
      throws IOException {
    for (Shape shape : shapes) {
      for (SendMode mode : modes) {
        measurement.restart(cluster.partyNames(), mode);
        measurement.firstContact(mode, setting, shape, runs);
      }
    }
  }

  private void quick() throws IOException {
    measurement.prepare(SMALL, 1000);
    measurement.waterfall();
    for (SendMode mode : LabReport.ALL_MODES) {
      measurement.restart(cluster.partyNames(), mode);
      measurement.cells(mode, Setting.uniform(75, Placement.THIRD_REGION), SMALL);
      measurement.firstContact(
          mode, Setting.uniform(75, Placement.THIRD_REGION), SMALL.getFirst(), FEW_CONTACTS);
    }
    for (SendMode mode : LabReport.ALL_MODES) {
      measurement.signToAll(
          mode, List.of(Setting.uniform(75, Placement.THIRD_REGION)), SMALL.subList(0, 1));
    }
    measurement.rotation(Setting.uniform(75, Placement.THIRD_REGION));
    measurement.presignable(List.of(75));
    results.write(runs);
  }

  /**
   * One setting, with bounds that hold on a busy machine too: the fastest of all runs shows whether
   * a message makes a way too many, and Prometheus tells of the same calls as the client. With
   * contributions to all, one after another, no run can be faster than these take.
   */
  private void check() throws IOException {
    List<Shape> shapes = List.of(Measurement.TWO_OF_THREE);
    Setting setting = Setting.uniform(CHECKED_MILLIS, Placement.THIRD_REGION);
    measurement.prepare(shapes, 100);
    measurement.cells(SendMode.GROUP, setting, shapes);
    measurement.signToAll(SendMode.PAIRWISE_SEQUENTIAL, List.of(setting), shapes);
    for (Result result : results.all()) {
      double fastest = result.quantile(0);
      boolean signing = result.cell().scenario().startsWith("sign");
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
      if (measurement.asksDashboard()
          && result.cell().mode() == SendMode.GROUP
          && (result.shown() < result.floor() / BUCKET_RATIO
              || result.shown() > result.median() * BUCKET_RATIO)) {
        throw new IllegalStateException(
            "the client's median is %.1f ms, the dashboard's %.1f: %s"
                .formatted(result.median(), result.shown(), result.csv()));
      }
    }
    Results.progress("no round trip too many; Prometheus, the dashboard and the client agree");
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
}
