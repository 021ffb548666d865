package io.coterie.acceptance;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Verification by an implementation that is not ours and shares no code with it: {@code
 * verifier/verify.mjs}, on node and @noble/curves.
 */
public final class OutsideVerifier implements AutoCloseable {
  private static final Pattern ANSWER =
      Pattern.compile("\\{\"valid\":(true|false),\"by\":\"([^\"]+)\"}");

  private final Process process;
  private final Writer questions;
  private final BufferedReader answers;

  /**
   * What the verifier says.
   *
   * @param by name and version of the implementation
   */
  public record Verdict(boolean valid, String by) {}

  private OutsideVerifier(Process process) {
    this.process = process;
    this.questions = process.outputWriter(StandardCharsets.US_ASCII);
    this.answers = process.inputReader(StandardCharsets.US_ASCII);
  }

  /**
   * Starts it.
   *
   * @param projectRoot where the Makefile is
   * @throws IllegalStateException if node or its packages are missing; never falls back to our own
   */
  public static OutsideVerifier start(Path projectRoot) {
    Path folder = projectRoot.resolve("services/acceptance/verifier");
    if (!Files.isDirectory(folder.resolve("node_modules"))) {
      throw new IllegalStateException(
          "the outside verifier is not installed: run `make build`, or `npm ci` in " + folder);
    }
    try {
      return new OutsideVerifier(
          new ProcessBuilder("node", folder.resolve("verify.mjs").toString())
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start());
    } catch (IOException e) {
      throw new IllegalStateException("node cannot be started: install Node.js 18 or newer", e);
    }
  }

  /** Verifies a BLS signature. */
  public Verdict verify(byte[] publicKey, byte[] message, byte[] signature) {
    return ask(publicKey, message, signature, "");
  }

  /** Verifies a BLS signature and the proof of possession of its key. */
  public Verdict verify(byte[] publicKey, byte[] message, byte[] signature, byte[] proof) {
    return ask(
        publicKey, message, signature, ",\"proof\":\"" + HexFormat.of().formatHex(proof) + "\"");
  }

  private synchronized Verdict ask(
      byte[] publicKey, byte[] message, byte[] signature, String rest) {
    HexFormat hex = HexFormat.of();
    try {
      questions.write(
          "{\"publicKey\":\"%s\",\"message\":\"%s\",\"signature\":\"%s\"%s}\n"
              .formatted(
                  hex.formatHex(publicKey),
                  hex.formatHex(message),
                  hex.formatHex(signature),
                  rest));
      questions.flush();
      String line = answers.readLine();
      Matcher answer = ANSWER.matcher(line == null ? "" : line);
      if (!answer.matches()) {
        throw new IllegalStateException("the outside verifier said: " + line);
      }
      return new Verdict(Boolean.parseBoolean(answer.group(1)), answer.group(2));
    } catch (IOException e) {
      throw new UncheckedIOException("the outside verifier has ended", e);
    }
  }

  @Override
  public void close() {
    try {
      questions.close();
      if (!process.waitFor(5, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (IOException e) {
      process.destroyForcibly();
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
