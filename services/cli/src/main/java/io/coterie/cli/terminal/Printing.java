package io.coterie.cli.terminal;

import java.io.PrintWriter;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/** The running command and its writers, which tests replace. */
public final class Printing {
  private Printing() {}

  /** Where results go. */
  public static PrintWriter out(@Nullable CommandSpec spec) {
    return Terminal.printable(line(spec).getOut());
  }

  /** Where everything else goes. */
  public static PrintWriter err(@Nullable CommandSpec spec) {
    return Terminal.printable(line(spec).getErr());
  }

  /** Where a person reads what is to be signed, in lines that the terminal does not wrap. */
  public static PrintWriter shown(@Nullable CommandSpec spec) {
    return Terminal.printable(line(spec).getErr(), terminal(spec).columns());
  }

  /** Where a person reads what was signed, if that is the result. */
  public static PrintWriter shownAsResult(@Nullable CommandSpec spec) {
    return Terminal.printable(line(spec).getOut(), terminal(spec).resultColumns());
  }

  /** The running command. */
  public static CommandLine line(@Nullable CommandSpec spec) {
    return Objects.requireNonNull(spec).commandLine();
  }

  /** The person who can be asked while the command runs. */
  public static Terminal terminal(@Nullable CommandSpec spec) {
    return ((Terminal.Holder) line(spec).getCommandSpec().root().userObject()).terminal();
  }
}
