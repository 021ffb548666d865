package io.coterie.acceptance.lab;

import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.Settings;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * A measured cell, milliseconds.
 *
 * @param sorted times that the client saw
 * @param served mean of the coordinator's own timer over the same calls; 0 where it was not read
 * @param rounds mean of its timer of a protocol's rounds, from the order on; 0 where it takes none
 * @param shown median that the dashboard's panel shows of the same calls; 0 where it was not asked
 * @param passes the services' buckets of the rounds that ended meanwhile; none where they were not
 *     read
 */
record Result(
    Cell cell,
    double[] sorted,
    double floor,
    double served,
    double rounds,
    double shown,
    List<Metrics.Sample> passes) {
  static final String HEADER =
      "scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs,delay_ms,placement";

  static final String SAMPLES_HEADER =
      "scenario,scheme,t,n,mode,phase,delay_ms,placement,floor_ms,latency_ms";

  static final String ROUNDS_HEADER =
      "scenario,scheme,t,n,mode,phase,delay_ms,placement,protocol,round,by,at_most_ms,passes";

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
   * How long the rounds took, by the timers of those who were in them: how many passes took at most
   * so long. Only the buckets in which there are some.
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

  /** Every sample by itself. */
  List<String> samplesCsv() {
    return Arrays.stream(sorted)
        .mapToObj(
            sample ->
                String.format(
                    Locale.ROOT,
                    "%s,%s,%s,%.3f,%.3f",
                    cell.csv(),
                    cell.setting().delay(),
                    cell.setting().placement(),
                    floor,
                    sample))
        .toList();
  }
}
