package io.coterie.signer.storage;

import io.coterie.platform.intent.IntentVerifier;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Exclusions that the party's file did not take, as empty files in the data folder: a full disk
 * often still takes a name. So the operator sees a frozen key before it is in the party's file, and
 * a kill does not forget it. Best effort: a folder that takes nothing leaves the memory alone.
 */
final class UnwrittenExclusions {
  private static final Logger log = LoggerFactory.getLogger(UnwrittenExclusions.class);
  private static final String PREFIX = "unwritten-";
  private static final String PARTY_SEPARATOR = "_";

  private final Path folder;

  UnwrittenExclusions(Path folder) {
    this.folder = folder;
  }

  /**
   * Makes these the only ones of a key.
   *
   * @param parties ids; none if everything is in the party's file
   */
  void set(String key, Set<Integer> parties) {
    // Its name is hexadecimal, so no key can name a file elsewhere.
    String start = PREFIX + HexFormat.of().formatHex(key.getBytes(StandardCharsets.UTF_8)) + "-";
    String name =
        start
            + parties.stream()
                .sorted()
                .map(String::valueOf)
                .collect(Collectors.joining(PARTY_SEPARATOR));
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, start + "*")) {
      if (!parties.isEmpty()) {
        create(folder.resolve(name));
      }
      for (Path file : files) {
        if (parties.isEmpty() || !file.getFileName().toString().equals(name)) {
          Files.deleteIfExists(file);
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      log.warn("the unwritten exclusions of {} cannot be noted in the data folder", key, e);
    }
  }

  private static void create(Path file) throws IOException {
    try {
      Files.createFile(file);
    } catch (FileAlreadyExistsException e) {
      log.debug("{} is there already", file);
    }
  }

  /** All of them, by key; a name that {@link #set} does not give is left out. */
  Map<String, Set<Integer>> read() {
    Map<String, Set<Integer>> found = new HashMap<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, PREFIX + "*")) {
      for (Path file : files) {
        String name = file.getFileName().toString().substring(PREFIX.length());
        int dash = name.indexOf('-');
        try {
          String key =
              new String(
                  HexFormat.of().parseHex(name.substring(0, Math.max(0, dash))),
                  StandardCharsets.UTF_8);
          if (!IntentVerifier.isKeyName(key)) {
            throw new IllegalArgumentException("no key");
          }
          Set<Integer> parties =
              Arrays.stream(name.substring(dash + 1).split(PARTY_SEPARATOR, -1))
                  .map(Integer::valueOf)
                  .collect(Collectors.toUnmodifiableSet());
          found.merge(key, parties, PartyIds::union);
        } catch (IllegalArgumentException e) {
          log.warn("{} names no exclusion", file.getFileName());
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      throw new StoreException("cannot read " + folder, e);
    }
    return found;
  }
}
