package io.coterie.cli;

import io.coterie.cli.terminal.Terminal;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine;

/** The answer of the command. */
public record Run(int exitCode, String out, String err) {

  /** Runs the command in this JVM. */
  public static Run of(String... args) {
    return of(question -> Optional.empty(), args);
  }

  /**
   * Runs the command in this JVM as the wallet that {@link TestFiles} made, in front of someone.
   *
   * @param trust the wallet's trust file; its other files lie beside it
   * @param port of the coordinator
   */
  static Run ofWallet(Terminal terminal, Path trust, int port, List<String> args) {
    List<String> all = new ArrayList<>(args);
    all.addAll(List.of("--endpoint", "localhost:" + port));
    all.addAll(List.of("--ca", "" + trust.resolveSibling("wallet.pem")));
    all.addAll(List.of("--cert", "" + trust.resolveSibling("wallet.pem")));
    all.addAll(List.of("--key", "" + trust.resolveSibling("wallet-key.pem")));
    all.addAll(List.of("--trust", "" + trust));
    all.addAll(List.of("--requester", "wallet"));
    all.addAll(List.of("--requester-key", "" + trust.resolveSibling("wallet-intents.pem")));
    return of(terminal, all.toArray(String[]::new));
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
