package io.coterie.cli;

import io.coterie.cli.terminal.Terminal;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Optional;
import picocli.CommandLine;

/** The answer of the command. */
public record Run(int exitCode, String out, String err) {

  /** Runs the command in this JVM. */
  public static Run of(String... args) {
    return of(question -> Optional.empty(), args);
  }

  /** Runs the command in this JVM, in front of someone. */
  static Run of(Terminal terminal, String... args) {
    CommandLine line = Coterie.commandLine(terminal);
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    line.setOut(new PrintWriter(out, true));
    line.setErr(new PrintWriter(err, true));
    int exitCode = line.execute(args);
    return new Run(exitCode, out.toString(), err.toString());
  }
}
