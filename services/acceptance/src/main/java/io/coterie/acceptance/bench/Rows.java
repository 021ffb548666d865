package io.coterie.acceptance.bench;

import io.coterie.channel.SendMode;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The results of a run, and the file that they are written to. */
final class Rows {
  static final String FIRST = "first_contact";
  static final String SUBSEQUENT = "subsequent";
  static final String BLS = "bls12-381";

  private final List<Row> rows = new ArrayList<>();

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

  void add(
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

  void add(
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

  /** Takes a line of the CSV as another program prints it. Any other line is ignored. */
  void read(String line) {
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

  static double[] array(List<Double> samples) {
    return samples.stream().mapToDouble(Double::doubleValue).toArray();
  }

  private static double quantile(double[] sorted, double q) {
    return sorted[(int) Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  }

  /** Prints what was measured as lines of the CSV, for a program that puts them into the file. */
  void print(PrintStream out) {
    rows.forEach(row -> out.println(row.csv()));
  }

  /** Writes everything measured until now. */
  Path write() {
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

  double value(String scenario, Shape shape, SendMode mode, String phase, String metric) {
    return value(scenario, BLS, shape.threshold(), shape.parties(), label(mode), phase, metric);
  }

  double value(
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

  static String label(SendMode mode) {
    return mode.name().toLowerCase(Locale.ROOT);
  }
}
