package io.coterie.signer.storage;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.HexFormat;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The requests of the operator to a running signer, as files in the party's data folder: another
 * process cannot open the party's file, and anyone who may write into the folder could replace that
 * file.
 */
public final class OperatorRequests {
  private static final Logger log = LoggerFactory.getLogger(OperatorRequests.class);
  private static final String UNFREEZE = "unfreeze-";

  private final Path folder;

  /** Requests that are being done: none is taken up again before it has ended. */
  private final Set<Path> taken = ConcurrentHashMap.newKeySet();

  public OperatorRequests(Path folder) {
    this.folder = folder;
  }

  /** Asks the signer of the folder to let a key be used again; it does so within a second. */
  public void unfreeze(String key) throws IOException {
    // Its name is hexadecimal, so no key can name a file elsewhere.
    String name = UNFREEZE + HexFormat.of().formatHex(key.getBytes(StandardCharsets.UTF_8));
    Path part = Files.createTempFile(folder, "request", ".part");
    Files.move(part, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
  }

  /**
   * Does what was asked for.
   *
   * @param unfreeze takes a key's name; a request stays until that has succeeded
   */
  void toUnfreeze(Function<String, CompletionStage<Boolean>> unfreeze) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, UNFREEZE + "*")) {
      for (Path file : files) {
        String key = key(file);
        if (key == null) {
          log.warn("a request of the operator has no key in its name: {}", file.getFileName());
          delete(file);
        } else if (taken.add(file)) {
          unfreeze.apply(key).whenComplete((lifted, failure) -> done(file, key, lifted, failure));
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      log.warn("the requests of the operator cannot be read", e);
    }
  }

  /** The key that a request names; null if its name is none that {@link #unfreeze} gives. */
  private static @Nullable String key(Path file) {
    try {
      String hex = file.getFileName().toString().substring(UNFREEZE.length());
      return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    } catch (IllegalArgumentException e) {
      return null;
    }
  }

  private void done(Path file, String key, @Nullable Boolean lifted, @Nullable Throwable failure) {
    if (failure == null) {
      log.warn(
          "{} {}, as its operator asked",
          key,
          Boolean.TRUE.equals(lifted) ? "is not frozen any more" : "was not frozen");
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
