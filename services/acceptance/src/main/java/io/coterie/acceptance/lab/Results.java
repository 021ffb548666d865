package io.coterie.acceptance.lab;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;

/** The results of a run of the lab, and the files that they are written to. */
final class Results {
  private static final long STARTED = System.nanoTime();

  private final Path folder;
  private final List<Result> results = new ArrayList<>();

  /**
   * @param folder for the files
   */
  Results(Path folder) {
    this.folder = folder;
  }

  /** The folder of the files. */
  Path folder() {
    return folder;
  }

  /** All results until now. */
  List<Result> all() {
    return List.copyOf(results);
  }

  void add(Result result) {
    results.add(result);
    progress(
        "%-58s %8.1f ms, floor %7.1f ms, times floor %.3f"
            .formatted(
                result.cell().csv() + " " + result.cell().setting(),
                result.median(),
                result.floor(),
                result.median() / result.floor()));
  }

  /** Writes everything measured until now: the rest may be interrupted. */
  void write(int runs) throws IOException {
    write("results.csv", Result.HEADER, Result::csv);
    write("samples.csv", Result.SAMPLES_HEADER, Result::samplesCsv);
    write("rounds.csv", Result.ROUNDS_HEADER, Result::roundsCsv);
    Files.writeString(folder.resolve("report.md"), LabReport.of(results, runs));
    progress("wrote " + folder.resolve("report.md"));
  }

  private void write(String file, String header, Function<Result, List<String>> lines)
      throws IOException {
    List<String> all = new ArrayList<>(List.of(header));
    results.forEach(result -> all.addAll(lines.apply(result)));
    Files.write(folder.resolve(file), all);
  }

  /** Prints a line with the time since the start. */
  static void progress(String what) {
    System.out.printf(Locale.ROOT, "%7.1f s  %s%n", (System.nanoTime() - STARTED) / 1e9, what);
  }
}
