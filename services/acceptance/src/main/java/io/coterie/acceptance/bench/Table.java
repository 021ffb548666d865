package io.coterie.acceptance.bench;

import io.coterie.channel.SendMode;
import java.io.PrintStream;
import java.util.List;

/** The results of key generation and signing as a table, each mode beside group. */
final class Table {
  private final PrintStream out;
  private final Rows rows;
  private final List<Shape> shapes;

  Table(PrintStream out, Rows rows, List<Shape> shapes) {
    this.out = out;
    this.rows = rows;
    this.shapes = shapes;
  }

  /** Prints everything. */
  void print() {
    out.println();
    out.println("Floors");
    out.printf(
        "  %-44s %8.2f ms%n",
        "echo through messaging",
        rows.value("echo", "none", 0, 0, "none", Rows.SUBSEQUENT, "latency"));
    for (Shape shape : shapes) {
      out.printf(
          "  core alone %-6s compute of the slowest party: keygen %8.2f ms, sign %6.2f ms%n",
          shape,
          rows.value(
                  "core", Rows.BLS, shape.threshold(), shape.parties(), "core", "keygen", "compute")
              / 1000,
          rows.value(
                  "core", Rows.BLS, shape.threshold(), shape.parties(), "core", "sign", "compute")
              / 1000);
    }
    for (String scenario : List.of("keygen", "sign")) {
      for (String phase : List.of(Rows.FIRST, Rows.SUBSEQUENT)) {
        out.println();
        out.printf(
            "%s, %s: median ms (times group)%n",
            scenario.equals("keygen") ? "Key generation" : "Signing",
            phase.equals(Rows.FIRST) ? "first contact" : "subsequent");
        out.printf(
            "  %-8s %14s %24s %24s %24s%n",
            "", "group", "pairwise, in parallel", "pairwise, sequential", "named, stored, by REST");
        for (Shape shape : shapes) {
          double group = rows.value(scenario, shape, SendMode.GROUP, phase, "latency");
          double parallel =
              rows.value(scenario, shape, SendMode.PAIRWISE_PARALLEL, phase, "latency");
          double sequential =
              rows.value(scenario, shape, SendMode.PAIRWISE_SEQUENTIAL, phase, "latency");
          double stored = rows.value(scenario, shape, SendMode.NAMED_STORED, phase, "latency");
          out.printf(
              "  %-8s %14.1f %16.1f (%.2f) %17.1f (%.2f) %17.1f (%.2f)%n",
              shape,
              group,
              parallel,
              parallel / group,
              sequential,
              sequential / group,
              stored,
              stored / group);
        }
      }
      out.println();
      out.printf(
          "  %-8s requests and bytes sent of one %s%n",
          "", scenario.equals("keygen") ? "key generation" : "signature");
      for (Shape shape : shapes) {
        StringBuilder line = new StringBuilder("  %-8s".formatted(shape));
        for (SendMode mode : SendMode.values()) {
          line.append(
              "%12.1f %10.0f B"
                  .formatted(
                      rows.value(scenario, shape, mode, Rows.SUBSEQUENT, "requests"),
                      rows.value(scenario, shape, mode, Rows.SUBSEQUENT, "bytes_sent")));
        }
        out.println(line);
      }
    }
  }
}
