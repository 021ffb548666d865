package io.coterie.acceptance.bench;

import io.coterie.acceptance.cluster.Cluster;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * {@code make starts OF=cli}: how long commands of {@code bin/coterie} take from exec to their end,
 * one of them with a call to an installation of this JVM, beside the bar.
 */
public final class CommandStarts {
  private static final double BAR_SECONDS = 0.7;

  /** Runs that bring the files of the command into memory. */
  private static final int WARM_UPS = 3;

  /** Calls that warm the coordinator up: its own cold code is no cost of a start. */
  private static final int WARM_UPS_OF_CALLS = 20;

  private CommandStarts() {}

  /**
   * @param args how often each command is run
   */
  public static void main(String[] args) {
    boolean met = false;
    try {
      met = run(Integer.parseInt(args[0]));
    } catch (RuntimeException | IOException | InterruptedException e) {
      e.printStackTrace();
    }
    // Threads that gRPC and the database leave running must not keep the caller waiting.
    System.exit(met ? 0 : 1);
  }

  private static boolean run(int runs) throws IOException, InterruptedException {
    boolean met = true;
    try (Cluster cluster = Cluster.of(2).folder(Path.of("build", "starts")).start()) {
      cluster.createKey("start");
      String profile = cluster.writeProfile(Cluster.WALLET).toString();
      System.out.printf("  bin/coterie from exec to its end, median of %d:%n", runs);
      for (List<String> command :
          List.of(
              List.of("--version"),
              List.of("--help"),
              List.of("keys", "list", "--profile", profile))) {
        int warmUps = command.contains(profile) ? WARM_UPS_OF_CALLS : WARM_UPS;
        for (int i = 0; i < warmUps; i++) {
          seconds(command);
        }
        double[] seconds = new double[runs];
        for (int i = 0; i < runs; i++) {
          seconds[i] = seconds(command);
        }
        Arrays.sort(seconds);
        double median = seconds[runs / 2];
        met &= median < BAR_SECONDS;
        System.out.printf(
            Locale.ROOT,
            "    %-12s %.2f s (%.2f to %.2f s), below %.1f s is wanted: %s%n",
            String.join(" ", command.subList(0, Math.min(2, command.size()))),
            median,
            seconds[0],
            seconds[runs - 1],
            BAR_SECONDS,
            median < BAR_SECONDS ? "met" : "MISSED");
      }
    }
    return met;
  }

  private static double seconds(List<String> arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(Path.of("bin", "coterie").toString()));
    command.addAll(arguments);
    long begin = System.nanoTime();
    Process process =
        new ProcessBuilder(command)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    int exit = process.waitFor();
    long end = System.nanoTime();
    if (exit != 0) {
      throw new IllegalStateException(arguments + " ended with " + exit);
    }
    return (end - begin) / 1e9;
  }
}
