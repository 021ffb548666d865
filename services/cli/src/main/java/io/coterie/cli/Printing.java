package io.coterie.cli;

import java.io.PrintWriter;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/** The running command and its writers, which tests replace. */
final class Printing {
  private Printing() {}

  static PrintWriter out(@Nullable CommandSpec spec) {
    return Terminal.printable(line(spec).getOut());
  }

  static PrintWriter err(@Nullable CommandSpec spec) {
    return Terminal.printable(line(spec).getErr());
  }

  static CommandLine line(@Nullable CommandSpec spec) {
    return Objects.requireNonNull(spec).commandLine();
  }
}
