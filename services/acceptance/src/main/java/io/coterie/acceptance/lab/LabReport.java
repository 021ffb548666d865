package io.coterie.acceptance.lab;

import io.coterie.acceptance.lab.Cell.Shape;
import io.coterie.channel.SendMode;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;

/** The latency lab's results as a page, beside the paper's figures and the bars that are set. */
public final class LabReport {
  /** Includes the paper's way of sending, which takes the longest and is measured for few cells. */
  static final List<SendMode> ALL_MODES =
      List.of(
          SendMode.GROUP,
          SendMode.PAIRWISE_PARALLEL,
          SendMode.PAIRWISE_SEQUENTIAL,
          SendMode.NAMED_STORED);

  /** By how much the paper's group mode was faster than its pairwise mode at 3 parties, percent. */
  private static final double PAPER_KEYGEN = 37.48;

  private static final double PAPER_SIGN = 68.83;

  private static final double SIGN_BAR = 1.15;
  private static final double KEYGEN_BAR = 1.25;

  /** Bars on times of the floor hold where the floor is most of what there is. */
  private static final List<String> BAR_DELAYS = List.of("75", "150");

  /** The modes that the paper's bars compare the group with, and their names. */
  private static final Map<SendMode, String> BASELINES =
      new EnumMap<>(
          Map.of(
              SendMode.PAIRWISE_SEQUENTIAL, "one after another",
              SendMode.NAMED_STORED, "named, stored, by REST"));

  private static final String THIRD = Cell.Placement.THIRD_REGION.label();

  private static final List<String> BAR_PLACEMENTS =
      List.of(THIRD, Cell.Placement.BESIDE_PARTY.label());

  private final List<Result> results;
  private final StringBuilder text = new StringBuilder();

  private LabReport(List<Result> results) {
    this.results = results;
  }

  /** The page, in Markdown. */
  static String of(List<Result> results, int runs) {
    LabReport report = new LabReport(results);
    report.line(
        "# Latency lab%n%n%d runs of a cell after warm-up, on %d processors. Milliseconds are medians; in brackets: times the floor, the time that the messages' way alone takes. Raw: `results.csv`, `samples.csv`, `rounds.csv`.%n",
        runs, Runtime.getRuntime().availableProcessors());
    report.bars();
    report.latencies("sign", "Signing");
    report.latencies(Cell.SIGN_TO_ALL, "Signing with contributions to all, as in the paper");
    report.latencies("keygen", "Key generation");
    report.gains();
    report.firstContact();
    report.others();
    report.prometheus();
    report.plots();
    return report.text.toString();
  }

  private void line(String format, Object... values) {
    text.append(String.format(Locale.ROOT, format, values)).append('\n');
  }

  private List<Result> where(Predicate<Cell> which) {
    return results.stream().filter(r -> which.test(r.cell())).toList();
  }

  private Optional<Result> bls(
      String scenario, Shape shape, SendMode mode, String phase, String delay, String placement) {
    return where(
            c ->
                c.scenario().equals(scenario)
                    && c.scheme().equals(Cell.BLS)
                    && c.shape().equals(shape)
                    && c.mode() == mode
                    && c.phase().equals(phase)
                    && c.setting().delay().equals(delay)
                    && c.setting().placement().equals(placement))
        .stream()
        .findFirst();
  }

  private void bars() {
    line("## Bars%n%n| bar | wanted | worst measured | held |%n|---|---|---|---|");
    for (boolean crowded : new boolean[] {false, true}) {
      atMost("sign", SIGN_BAR, crowded);
      atMost("keygen", KEYGEN_BAR, crowded);
    }
    for (int parties : new int[] {3, 4, 5}) {
      atLeast("keygen", parties, PAPER_KEYGEN);
      // As in the paper: contributions to all. The product's own figures are in the tables.
      atLeast(Cell.SIGN_TO_ALL, parties, PAPER_SIGN);
    }
    for (String scenario : List.of("keygen", "sign")) {
      List<Double> ratios = new ArrayList<>();
      for (Result group : first(scenario, SendMode.GROUP)) {
        bls(
                scenario,
                group.cell().shape(),
                SendMode.PAIRWISE_SEQUENTIAL,
                Cell.FIRST,
                group.cell().setting().delay(),
                THIRD)
            .ifPresent(pairwise -> ratios.add(group.median() / pairwise.median()));
      }
      ratios.stream()
          .max(Double::compare)
          .ifPresent(
              worst ->
                  line(
                      "| %s, first contact: group against one after another | at most 1 | %.2f | %s |",
                      scenario, worst, held(worst <= 1)));
    }
    where(c -> c.phase().equals(Cell.ROTATING))
        .forEach(
            rotating ->
                line(
                    "| a rotation of sender keys adds no round: times floor | below 1 + 2 delays | %.2f | %s |",
                    rotating.median() / rotating.floor(),
                    held(
                        rotating.quantile(0.9)
                            < rotating.floor()
                                + 2 * Double.parseDouble(rotating.cell().setting().delay()))));
    line("");
  }

  private List<Result> first(String scenario, SendMode mode) {
    return where(
        c -> c.scenario().equals(scenario) && c.phase().equals(Cell.FIRST) && c.mode() == mode);
  }

  /**
   * A row for the bar on times of the floor.
   *
   * @param crowded of the cells with more parties than {@link Shape#CROWD}, else of the others
   */
  private void atMost(String scenario, double bar, boolean crowded) {
    where(
            c ->
                c.scenario().equals(scenario)
                    && c.scheme().equals(Cell.BLS)
                    && c.mode() == SendMode.GROUP
                    && c.phase().equals(Cell.SUBSEQUENT)
                    && c.shape().crowded() == crowded
                    && BAR_PLACEMENTS.contains(c.setting().placement())
                    && BAR_DELAYS.contains(c.setting().delay()))
        .stream()
        .max((a, b) -> Double.compare(a.median() / a.floor(), b.median() / b.floor()))
        .ifPresent(
            worst ->
                line(
                    "| %s, group, 75 and 150 ms%s: times floor | at most %.2f | %.3f (%s, %s) | %s |",
                    scenario,
                    crowded ? ", more than " + Shape.CROWD + " parties" : "",
                    bar,
                    worst.median() / worst.floor(),
                    worst.cell().shape(),
                    worst.cell().setting(),
                    held(worst.median() / worst.floor() <= bar)));
  }

  private void atLeast(String scenario, int parties, double percent) {
    Shape shape = new Shape(parties, parties);
    for (String delay : BAR_DELAYS) {
      BASELINES.forEach(
          (mode, name) ->
              gain(scenario, shape, delay, mode)
                  .ifPresent(
                      gain ->
                          line(
                              "| %s, %s, %s ms: group faster than %s | %s %.2f %% | %.2f %% | %s |",
                              scenario,
                              shape,
                              delay,
                              name,
                              parties == 3 ? "at least" : "more than",
                              percent,
                              gain,
                              held(gain >= percent))));
    }
  }

  private static String held(boolean held) {
    return held ? "yes" : "**no**";
  }

  private Optional<Double> gain(String scenario, Shape shape, String delay, SendMode than) {
    return bls(scenario, shape, SendMode.GROUP, Cell.SUBSEQUENT, delay, THIRD)
        .flatMap(
            group ->
                bls(scenario, shape, than, Cell.SUBSEQUENT, delay, THIRD)
                    .map(slower -> 100 * (1 - group.median() / slower.median())));
  }

  private void latencies(String scenario, String title) {
    line(
        "## %s%n%n| one way | messaging | parties | group | pairwise, in parallel | pairwise, one after another | named, stored, by REST |%n|---|---|---|---|---|---|---|",
        title);
    where(
            c ->
                c.scenario().equals(scenario)
                    && c.scheme().equals(Cell.BLS)
                    && c.mode() == SendMode.GROUP
                    && c.phase().equals(Cell.SUBSEQUENT))
        .forEach(
            group -> {
              Cell cell = group.cell();
              StringBuilder modes = new StringBuilder();
              for (SendMode mode : ALL_MODES) {
                modes
                    .append(" | ")
                    .append(
                        bls(
                                scenario,
                                cell.shape(),
                                mode,
                                Cell.SUBSEQUENT,
                                cell.setting().delay(),
                                cell.setting().placement())
                            .map(LabReport::median)
                            .orElse("not measured"));
              }
              line(
                  "| %s | %s | %s%s |",
                  cell.setting().delay(),
                  cell.setting().placement().replace('_', ' '),
                  cell.shape(),
                  modes);
            });
    line("");
  }

  private static String median(Result result) {
    return result.floor() > 0
        ? String.format(
            Locale.ROOT, "%.0f (%.2f)", result.median(), result.median() / result.floor())
        : String.format(Locale.ROOT, "%.1f", result.median());
  }

  private void gains() {
    line(
        "## Group against pairwise, one after another%n%nThe paper, 3 parties: key generation %.2f %%, signing %.2f %% faster. Its parties send their contributions to all, as in the rows `sign_to_all`; the product's send those of BLS to the coordinator alone (ADR 0071).%n%n| | parties | 75 ms | 150 ms | named, stored, by REST, 75 ms | between the floors |%n|---|---|---|---|---|---|",
        PAPER_KEYGEN, PAPER_SIGN);
    for (String scenario : List.of("keygen", Cell.SIGN_TO_ALL, "sign")) {
      for (int parties : new int[] {3, 4, 5}) {
        Shape shape = new Shape(parties, parties);
        Optional<Double> floors =
            bls(scenario, shape, SendMode.GROUP, Cell.SUBSEQUENT, "75", THIRD)
                .flatMap(
                    group ->
                        bls(
                                scenario,
                                shape,
                                SendMode.PAIRWISE_SEQUENTIAL,
                                Cell.SUBSEQUENT,
                                "75",
                                THIRD)
                            .map(pairwise -> 100 * (1 - group.floor() / pairwise.floor())));
        floors.ifPresent(
            floor ->
                line(
                    "| %s | %d | %s | %s | %s | %.2f %% |",
                    scenario,
                    parties,
                    percent(gain(scenario, shape, "75", SendMode.PAIRWISE_SEQUENTIAL)),
                    percent(gain(scenario, shape, "150", SendMode.PAIRWISE_SEQUENTIAL)),
                    percent(gain(scenario, shape, "75", SendMode.NAMED_STORED)),
                    floor));
      }
    }
    line("");
  }

  private static String percent(Optional<Double> value) {
    return value.map(v -> String.format(Locale.ROOT, "%.2f %%", v)).orElse("not measured");
  }

  private void firstContact() {
    line(
        """
        ## First contact, 75 ms one way

        The parties left and came back until they and the coordinator said to be ready; `reconnect` is how long that took. The paper, in its own system and network, at 3, 4 and 5 parties: group 4226, 8759, 13356 ms, pairwise 2145, 7747, 15300 ms.

        | | parties | runs | group | pairwise, in parallel | pairwise, one after another | named, stored, by REST |
        |---|---|---|---|---|---|---|""");
    for (String scenario : List.of("reconnect", "sign", "keygen")) {
      for (Result group : first(scenario, SendMode.GROUP)) {
        Shape shape = group.cell().shape();
        StringBuilder modes = new StringBuilder();
        for (SendMode mode : ALL_MODES) {
          modes
              .append(" | ")
              .append(
                  bls(scenario, shape, mode, Cell.FIRST, group.cell().setting().delay(), THIRD)
                      .map(LabReport::median)
                      .orElse("not measured"));
        }
        line("| %s | %s | %d%s |", scenario, shape, group.sorted().length, modes);
      }
    }
    line("");
  }

  private void others() {
    line(
        "## ECDSA and FROST, and signing while sender keys are replaced%n%n| | one way | parties | median | p95 | floor | times floor |%n|---|---|---|---|---|---|---|");
    where(c -> !c.scheme().equals(Cell.BLS) || c.phase().equals(Cell.ROTATING))
        .forEach(
            r ->
                line(
                    "| %s, %s, %s | %s | %s | %.0f | %.0f | %.0f | %.3f |",
                    r.cell().scenario().replace('_', ' '),
                    r.cell().scheme(),
                    r.cell().phase(),
                    r.cell().setting().delay(),
                    r.cell().shape(),
                    r.median(),
                    r.quantile(0.95),
                    r.floor(),
                    r.median() / r.floor()));
    line("");
  }

  private void prometheus() {
    line(
        "## Prometheus and the client%n%nMeans of the same calls: as the client measured them, and by the coordinator's `coterie_coordinator_requests_seconds`. The client sees its own call besides.%n");
    List<Result> both = results.stream().filter(r -> r.served() > 0).toList();
    both.stream()
        .max(
            (a, b) ->
                Double.compare(Math.abs(a.mean() - a.served()), Math.abs(b.mean() - b.served())))
        .ifPresent(
            worst ->
                line(
                    "%d cells; the greatest difference is %.2f ms: %.2f and %.2f, %s %s.%n",
                    both.size(),
                    worst.mean() - worst.served(),
                    worst.mean(),
                    worst.served(),
                    worst.cell().csv(),
                    worst.cell().setting()));
    List<Result> shown = results.stream().filter(r -> r.shown() > 0).toList();
    shown.stream()
        .max(
            (a, b) ->
                Double.compare(
                    Math.abs(Math.log(a.median() / a.shown())),
                    Math.abs(Math.log(b.median() / b.shown()))))
        .ifPresent(
            worst ->
                line(
                    "The overview dashboard's p50 of the same calls, from histogram buckets, in %d cells; the furthest from the client's median is %.1f ms for %.1f, %s %s.%n",
                    shown.size(),
                    worst.shown(),
                    worst.median(),
                    worst.cell().csv(),
                    worst.cell().setting()));
  }

  private void plots() {
    line("## Plots%n");
    for (String name :
        List.of(
            "sign-subsequent-75ms",
            "keygen-subsequent-75ms",
            "sign-first_contact-75ms",
            "keygen-first_contact-75ms",
            "sign-distribution-75ms",
            "rounds-75ms",
            "waterfall")) {
      line("![%s](%s.svg)%n", name, name);
    }
  }
}
