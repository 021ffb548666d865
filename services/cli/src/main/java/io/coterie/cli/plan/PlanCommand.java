package io.coterie.cli.plan;

import io.coterie.cli.plan.Planner.Plan;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code coterie plan}. */
@Command(
    name = "plan",
    mixinStandardHelpOptions = true,
    description = {
      "Where to put messaging and coordinator for parties in given regions, and what latency to expect.",
      "From round-trip times between regions, published ones of one cloud by default; nothing is measured."
    })
public final class PlanCommand implements Callable<Integer> {
  @Spec @Nullable CommandSpec spec;

  @Option(
      names = "--regions",
      required = true,
      split = ",",
      paramLabel = "REGION",
      description = "Region of each party, separated by commas; one may stand there several times.")
  List<String> regions = List.of();

  @Option(
      names = "--threshold",
      paramLabel = "T",
      description = "Parties that sign; default: a majority.")
  int threshold;

  @Option(
      names = "--client",
      paramLabel = "REGION",
      defaultValue = "",
      description = "Where the wallet backend is; default: beside the coordinator.")
  String client = "";

  @Option(
      names = "--candidates",
      split = ",",
      paramLabel = "REGION",
      description = "Where messaging and coordinator may be; default: the parties' regions.")
  List<String> candidates = List.of();

  @Option(
      names = "--alternatives",
      paramLabel = "N",
      defaultValue = "3",
      description = "How many of the next best to show; default ${DEFAULT-VALUE}.")
  int alternatives;

  @Option(
      names = "--round-trips",
      paramLabel = "FILE",
      description =
          "Round-trip times between your own regions: a line region,NAME,NAME... and for each a line"
              + " NAME,MILLISECONDS,MILLISECONDS...; default: the published ones.")
  @Nullable Path roundTrips;

  @Override
  public Integer call() {
    int wanted = threshold == 0 ? regions.size() / 2 + 1 : threshold;
    List<String> places = candidates.isEmpty() ? regions.stream().distinct().toList() : candidates;
    List<Plan> plans;
    try {
      Regions known = roundTrips == null ? Regions.published() : read(roundTrips);
      plans = new Planner(known).plans(regions, wanted, client, places);
    } catch (IllegalArgumentException e) {
      throw new ParameterException(Printing.line(spec), e.getMessage());
    }
    PrintWriter out = Printing.out(spec);
    Plan best = plans.getFirst();
    Output.row(out, "messaging", best.messaging());
    Output.row(out, "coordinator", best.coordinator());
    Output.row(out, "client", best.client());
    Output.row(
        out,
        "signers",
        "%s (%d of %d)".formatted(String.join(", ", best.signers()), wanted, regions.size()));
    Output.row(out, "signing", millis(best.sign()) + " (BLS, or with a presignature)");
    Output.row(out, "", millis(best.signEcdsa()) + " (ECDSA without a presignature)");
    Output.row(out, "new key", millis(best.keygen()) + " (BLS)");
    out.println("These are floors: only the messages' way. Measured latencies: docs/latency.md.");
    for (Plan plan : plans.stream().skip(1).limit(alternatives).toList()) {
      out.printf(
          "%-11s messaging %s, coordinator %s: signing %s, new key %s%n",
          "or", plan.messaging(), plan.coordinator(), millis(plan.sign()), millis(plan.keygen()));
    }
    return 0;
  }

  private static Regions read(Path file) {
    try {
      return Regions.read(file);
    } catch (IOException | UncheckedIOException e) {
      throw CliException.local("file " + file + " cannot be read as text");
    } catch (IllegalArgumentException e) {
      throw CliException.local(file + ": " + e.getMessage());
    }
  }

  private static String millis(double value) {
    return String.format(Locale.ROOT, "%.1f ms", value);
  }
}
