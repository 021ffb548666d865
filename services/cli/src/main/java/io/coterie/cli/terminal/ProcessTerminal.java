package io.coterie.cli.terminal;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * The terminal that the process was started from, wherever its input and its results go: a person
 * is asked there if what the question is about, which goes to standard error, is shown there.
 */
public final class ProcessTerminal implements Terminal {
  private static final Path TERMINAL = Path.of("/dev/tty");
  private static final long PATIENCE_SECONDS = 1;

  /** A line of fewer columns would have room for its mark alone. */
  private static final int MIN_COLUMNS = 8;

  @Override
  public Optional<String> ask(String question) {
    if (!isShown()) {
      return Optional.empty();
    }
    Charset charset = Charset.defaultCharset();
    // Neither makes the file where there is no terminal.
    try (OutputStream to = Files.newOutputStream(TERMINAL, StandardOpenOption.WRITE);
        BufferedReader from = Files.newBufferedReader(TERMINAL, charset)) {
      to.write(question.getBytes(charset));
      return Optional.of(Objects.requireNonNullElse(from.readLine(), ""));
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  @Override
  public int columns() {
    return isShown()
        ? said(new ProcessBuilder("stty", "size").redirectInput(TERMINAL.toFile()))
            .map(ProcessTerminal::columnsOf)
            .orElse(USUAL_COLUMNS)
        : USUAL_COLUMNS;
  }

  /** Whether standard error is a terminal; the JDK does not know. */
  private static boolean isShown() {
    return said(new ProcessBuilder("test", "-t", "2")).isPresent();
  }

  /** The output of a program of the system, which has our standard error; empty if it fails. */
  private static Optional<String> said(ProcessBuilder program) {
    try {
      Process process = program.redirectError(ProcessBuilder.Redirect.INHERIT).start();
      if (process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) && process.exitValue() == 0) {
        return Optional.of(
            new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII));
      }
      process.destroyForcibly();
    } catch (IOException e) {
      // There is no such program, or no terminal.
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
