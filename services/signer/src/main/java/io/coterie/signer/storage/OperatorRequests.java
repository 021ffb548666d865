package io.coterie.signer.storage;

import io.coterie.signer.order.Hold;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
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
 * file. The name says what is asked for and which number the request has, the content why; so a
 * full disk takes one without a reason. Requests about one thing are done in the order of their
 * numbers, each once the one before is on disk.
 */
public final class OperatorRequests {
  private static final Logger log = LoggerFactory.getLogger(OperatorRequests.class);

  /** Characters of a reason. */
  private static final int MAX_REASON = 256;

  /** Hexadecimal digits of a request's number. */
  private static final int NUMBER_DIGITS = 16;

  /** The end of the name of a file that was found to be no request. */
  private static final String REFUSED = ".refused";

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
    /** All shares of one key of a name are destroyed, so that another one may have that name. */
    FORGET_KEY("forget-key", KeyToForget::parse),
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

    /** Words of the command that are the argument: a key is named with its fingerprint. */
    public int words() {
      return this == FORGET_KEY ? 2 : 1;
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
   * @param argument of the command: a key, alone or with its fingerprint, a time, a digest or a
   *     scope
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

    /** Requests about the same thing are done one after another. */
    String subject() {
      return switch (kind) {
        case HOLD, LIFT -> "hold of " + argument;
        case UNFREEZE -> "freeze of " + argument;
        case FORGET_KEY -> "shares of " + argument;
        case FENCE, PERMIT_TRUST -> kind.command;
      };
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
    Files.move(
        part, folder.resolve(name(request, nextNumber(part))), StandardCopyOption.ATOMIC_MOVE);
  }

  /** Greater than those of all requests that wait, also when the clock was set back. */
  private long nextNumber(Path made) throws IOException {
    long number = Math.max(0, Files.getLastModifiedTime(made).toMillis());
    for (Path file : inOrder()) {
      number = Math.max(number, number(file) + 1);
    }
    return number;
  }

  private static String name(Request request, long number) {
    HexFormat hex = HexFormat.of();
    // Hexadecimal, so no argument can name a file elsewhere.
    return request.kind().command
        + "-"
        + hex.formatHex(request.argument().getBytes(StandardCharsets.UTF_8))
        + "-"
        + hex.toHexDigits(number);
  }

  /** The number in the name of a file; 0 if it has none. */
  private static long number(Path file) {
    String digits = parts(file)[2];
    return digits.matches("[0-7][0-9a-f]{" + (NUMBER_DIGITS - 1) + "}")
        ? HexFormat.fromHexDigitsToLong(digits)
        : 0;
  }

  /**
   * The command, the argument and the number in the name of a file; each empty if it is missing.
   */
  private static String[] parts(Path file) {
    String[] parts = {"", "", ""};
    String name = file.getFileName().toString();
    int number = name.lastIndexOf('-');
    int argument = name.lastIndexOf('-', number - 1);
    if (number > 0 && argument > 0) {
      parts[0] = name.substring(0, argument);
      parts[1] = name.substring(argument + 1, number);
      parts[2] = name.substring(number + 1);
    }
    return parts;
  }

  /** The files that are named as requests, by number. */
  private List<Path> inOrder() throws IOException {
    List<Path> files = new ArrayList<>();
    try (DirectoryStream<Path> all =
        Files.newDirectoryStream(folder, OperatorRequests::isRequest)) {
      all.forEach(files::add);
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    files.sort(Comparator.comparingLong(OperatorRequests::number).thenComparing(Path::toString));
    return files;
  }

  /** Whether a name begins as that of a request, and was not found to be none. */
  private static boolean isRequest(Path file) {
    String name = file.getFileName().toString();
    return !name.endsWith(REFUSED)
        && Arrays.stream(Kind.values()).anyMatch(kind -> name.startsWith(kind.command + "-"));
  }

  /**
   * Does what was asked for. A file that is no request, or cannot be read, is set aside and stops
   * no other.
   *
   * @param action says for the log what came of it; a request stays until that has succeeded, and
   *     those about the same thing wait for it
   */
  void perform(Function<Request, CompletionStage<String>> action) {
    Set<String> subjects = new HashSet<>();
    try {
      for (Path file : inOrder()) {
        Request request = read(file);
        if (request == null || !subjects.add(request.subject()) || !taken.add(file)) {
          continue;
        }
        if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
          action.apply(request).whenComplete((done, failure) -> done(file, done, failure));
        } else {
          taken.remove(file); // It was done between being read and being taken.
        }
      }
    } catch (IOException e) {
      log.warn("the requests of the operator cannot be read", e);
    }
  }

  /** The request of a file; null, and the file is set aside, if it is none that is readable. */
  private static @Nullable Request read(Path file) {
    String[] parts = parts(file);
    try {
      Kind kind =
          Kind.of(parts[0])
              .orElseThrow(() -> new IllegalArgumentException("its name is no request's"));
      if (number(file) == 0) {
        throw new IllegalArgumentException("its name has no number");
      }
      String argument = new String(HexFormat.of().parseHex(parts[1]), StandardCharsets.UTF_8);
      return new Request(kind, argument, kind.hasReason() ? reason(file) : "");
    } catch (IOException | IllegalArgumentException e) {
      if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
        return null; // it was done meanwhile
      }
      log.error("{} is no request of the operator, and is set aside: {}", file, e.toString());
      setAside(file);
      return null;
    }
  }

  private static void setAside(Path file) {
    try {
      Files.move(
          file,
          file.resolveSibling(file.getFileName() + REFUSED),
          StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      log.error("{} cannot be set aside", file, e);
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
