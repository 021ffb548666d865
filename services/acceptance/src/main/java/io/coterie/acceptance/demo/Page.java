package io.coterie.acceptance.demo;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.proto.custody.v1.Signing;
import java.io.PrintStream;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** The demo's output: titles, rows, and tables of the services' metrics. */
final class Page {
  private final PrintStream out = System.out;
  private final long started = System.nanoTime();
  private final boolean color = System.console() != null && System.console().isTerminal();

  void title(String text) {
    out.println();
    out.println(color ? "\u001b[1m" + text + "\u001b[0m" : text);
  }

  void step(String text) {
    out.printf(Locale.ROOT, "  %5.1f s  %s%n", millisSince(started) / 1000, text);
  }

  void row(String label, String value) {
    out.printf("  %-16s %s%n", label, value);
  }

  /** The signers of a signature, and the fields that each of them decoded before it agreed. */
  void fields(Signing signing) {
    row(
        "signed by",
        String.join(", ", signing.getSigningSetList())
            + (signing.getPresigned() ? ", with a presignature" : ""));
    row(
        "who understood",
        signing.getDecoded().getFieldsList().stream()
            .map(field -> field.getName() + " " + field.getValue())
            .collect(Collectors.joining(", ")));
  }

  /** Mean time of each round at each party, from the signers' Prometheus endpoints. */
  void rounds(Cluster cluster, Metrics metrics, String protocol) {
    String timer = "coterie_protocol_round_seconds";
    Predicate<Metrics.Sample> ofProtocol = s -> s.label("protocol").equals(protocol);
    List<String> rounds =
        metrics.samples().stream()
            .filter(s -> s.name().equals(timer + "_count") && ofProtocol.test(s) && s.value() > 0)
            .map(s -> s.label("round"))
            .distinct()
            .sorted()
            .toList();
    StringBuilder header = new StringBuilder("  %-14s".formatted("round"));
    cluster.partyNames().forEach(p -> header.append("%14s".formatted(p)));
    out.println();
    out.println(header.append("   slowest peer"));
    for (String round : rounds) {
      StringBuilder line = new StringBuilder("  %-14s".formatted(round));
      for (String party : cluster.partyNames()) {
        Predicate<Metrics.Sample> series =
            s ->
                ofProtocol.test(s)
                    && s.label("round").equals(round)
                    && s.label("party").equals(party);
        double count = metrics.sum(timer + "_count", series);
        line.append(
            count == 0
                ? "%14s".formatted("-")
                : "%11.1f ms".formatted(1000 * metrics.sum(timer + "_sum", series) / count));
      }
      out.println(line.append("   ").append(straggler(metrics, protocol, round)));
    }
  }

  private static String straggler(Metrics metrics, String protocol, String round) {
    String timer = "coterie_protocol_wait_seconds_sum";
    return metrics.samples().stream()
        .filter(
            s ->
                s.name().equals(timer)
                    && s.label("protocol").equals(protocol)
                    && s.label("round").equals(round)
                    && s.value() > 0)
        .max((a, b) -> Double.compare(a.value(), b.value()))
        .map(s -> s.label("straggler"))
        .orElse("-");
  }

  /** Requests and bytes on the way to messaging, for one of so many runs. */
  void traffic(String what, Metrics metrics, int runs) {
    out.printf(
        Locale.ROOT,
        "  %-22s %12.1f %14.0f%n",
        what,
        metrics.sum("coterie_channel_requests_total") / runs,
        metrics.sum("coterie_channel_bytes_total", s -> s.label("direction").equals("out")) / runs);
  }

  /** An empty line. */
  void gap() {
    out.println();
  }

  /** A line as it is. */
  void line(String text) {
    out.println(text);
  }

  /** Seconds since the start. */
  double seconds() {
    return millisSince(started) / 1000;
  }

  static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  static double millisSince(long nanos) {
    return (System.nanoTime() - nanos) / 1e6;
  }
}
