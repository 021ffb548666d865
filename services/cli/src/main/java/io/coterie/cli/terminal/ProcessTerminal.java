package io.coterie.cli.terminal;

import java.io.Console;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** The terminal that the process was started from. */
public final class ProcessTerminal implements Terminal {
  private static final long PATIENCE_SECONDS = 1;

  /** A line of fewer columns would have room for its mark alone. */
  private static final int MIN_COLUMNS = 8;

  @Override
  public Optional<String> ask(String question) {
    return console().map(console -> answer(console, question));
  }

  private static String answer(Console console, String question) {
    String line = console.readLine("%s", question);
    return line == null ? "" : line;
  }

  private static Optional<Console> console() {
    return Optional.ofNullable(System.console()).filter(Console::isTerminal);
  }

  @Override
  public int columns() {
    return console().flatMap(_ -> size()).map(ProcessTerminal::columnsOf).orElse(USUAL_COLUMNS);
  }

  /** Rows and columns, as stty prints them; the JDK does not know. */
  private static Optional<String> size() {
    try {
      Process stty =
          new ProcessBuilder("stty", "size")
              .redirectInput(ProcessBuilder.Redirect.INHERIT)
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (stty.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) && stty.exitValue() == 0) {
        return Optional.of(
            new String(stty.getInputStream().readAllBytes(), StandardCharsets.US_ASCII));
      }
      stty.destroyForcibly();
    } catch (IOException e) {
      // There is no stty.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return Optional.empty();
  }

  /** The columns of rows and columns; a terminal that says nothing useful has the usual ones. */
  static int columnsOf(String size) {
    String[] parts = size.strip().split(" ", -1);
    try {
      int columns = parts.length == 2 ? Integer.parseInt(parts[1]) : 0;
      return columns > 0 ? Math.max(columns, MIN_COLUMNS) : USUAL_COLUMNS;
    } catch (NumberFormatException e) {
      return USUAL_COLUMNS;
    }
  }
}
