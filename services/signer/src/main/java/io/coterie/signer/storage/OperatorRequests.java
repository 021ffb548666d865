package io.coterie.signer.storage;

import io.coterie.signer.order.Hold;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The requests of the operator to a running signer, as files in the party's data folder: another
 * process cannot open the party's file, and anyone who may write into the folder could replace that
 * file. The name says what is asked for, the content why; so a full disk takes one without a
 * reason.
 */
public final class OperatorRequests {
  private static final Logger log = LoggerFactory.getLogger(OperatorRequests.class);

  /** Characters of a reason. */
  private static final int MAX_REASON = 256;

  /** Hexadecimal digits of the SHA-256 of a version of the trust file. */
  private static final int DIGEST_DIGITS = 64;

  /** The things that an operator can ask for, each with its command's name. */
  public enum Kind {
    /** A frozen key is used again. */
    UNFREEZE("unfreeze", _ -> {}),
    /** Requests drawn before a time are refused, and later ones are not, because of a fence. */
    FENCE("fence", OperatorRequests::time),
    /** A version of the trust file is accepted that does not follow the present one. */
    PERMIT_TRUST("permit-trust", Kind::requireDigest),
    /** Orders are refused. */
    HOLD("hold", Hold.Scope::new),
    /** A hold ends. */
    LIFT("lift", Hold.Scope::new);

    private final String command;
    private final Consumer<String> check;

    Kind(String command, Consumer<String> check) {
      this.command = command;
      this.check = check;
    }

    /** The kind that a command asks for. */
    public static Optional<Kind> of(String command) {
      return Arrays.stream(values()).filter(kind -> kind.command.equals(command)).findFirst();
    }

    /** Whether the operator says why. */
    public boolean hasReason() {
      return this != UNFREEZE;
    }

    private static void requireDigest(String argument) {
      if (!argument.matches("[0-9a-f]{" + DIGEST_DIGITS + "}")) {
        throw new IllegalArgumentException(
            "'" + argument + "' is no digest as 'coterie trust show' prints it");
      }
    }
  }

  /**
   * A request.
   *
   * @param argument of the command: a key, a time, a digest or a scope
   * @param reason one line; empty for a kind that has none
   */
  public record Request(Kind kind, String argument, String reason) {
    public Request {
      kind.check.accept(argument);
      if (kind.hasReason()
          && (reason.isBlank()
              || reason.length() > MAX_REASON
              || reason.chars().anyMatch(Character::isISOControl))) {
        throw new IllegalArgumentException(
            "the reason is not one line of 1 to " + MAX_REASON + " characters");
      }
    }
  }

  private final Path folder;

  /** Requests that are being done: none is taken up again before it has ended. */
  private final Set<Path> taken = ConcurrentHashMap.newKeySet();

  public OperatorRequests(Path folder) {
    this.folder = folder;
  }

  /** The time that a request names, as RFC 3339 writes it. */
  static Instant time(String argument) {
    try {
      return Instant.parse(argument);
    } catch (DateTimeParseException e) {
      throw new IllegalArgumentException(
          "'" + argument + "' is no time such as 2026-11-26T08:00:00Z", e);
    }
  }

  /** Asks the signer of the folder; it does so within a second. */
  public void ask(Request request) throws IOException {
    Path part = Files.createTempFile(folder, "request", ".part");
    if (request.kind().hasReason()) {
      Files.writeString(part, request.reason());
    }
    Files.move(part, folder.resolve(name(request)), StandardCopyOption.ATOMIC_MOVE);
  }

  private static String name(Request request) {
    // Hexadecimal, so no argument can name a file elsewhere.
    return request.kind().command
        + "-"
        + HexFormat.of().formatHex(request.argument().getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Does what was asked for.
   *
   * @param action says for the log what came of it; a request stays until that has succeeded
   */
  void perform(Function<Request, CompletionStage<String>> action) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, f -> kind(f).isPresent())) {
      for (Path file : files) {
        Request request = read(file);
        if (request == null) {
          delete(file);
        } else if (taken.add(file)) {
          action.apply(request).whenComplete((done, failure) -> done(file, done, failure));
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      log.warn("the requests of the operator cannot be read", e);
    }
  }

  private static Optional<Kind> kind(Path file) {
    String name = file.getFileName().toString();
    int dash = name.lastIndexOf('-');
    return dash < 0 ? Optional.empty() : Kind.of(name.substring(0, dash));
  }

  /** The request of a file; null if it is none that {@link #ask} makes. */
  private static @Nullable Request read(Path file) throws IOException {
    String name = file.getFileName().toString();
    try {
      byte[] argument = HexFormat.of().parseHex(name.substring(name.lastIndexOf('-') + 1));
      Kind kind = kind(file).orElseThrow();
      return new Request(
          kind, new String(argument, StandardCharsets.UTF_8), kind.hasReason() ? reason(file) : "");
    } catch (IllegalArgumentException e) {
      log.warn("{} is no request of the operator: {}", name, e.getMessage());
      return null;
    }
  }

  private static String reason(Path file) throws IOException {
    if (Files.size(file) > Character.BYTES * 2L * MAX_REASON) {
      throw new IllegalArgumentException("its reason is too long");
    }
    // Bytes that are no UTF-8 are shown as such.
    return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
  }

  private void done(Path file, @Nullable String done, @Nullable Throwable failure) {
    if (failure == null) {
      log.warn("{}, as its operator asked", done);
      delete(file);
    }
    taken.remove(file);
  }

  private static void delete(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      log.warn("a request of the operator cannot be removed", e);
    }
  }
}
