package io.coterie.coordinator.config;

import com.google.protobuf.util.JsonFormat;
import io.coterie.coordinator.custody.key.KeyRestoration;
import io.coterie.coordinator.custody.key.RestoredKey;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.trust.TrustFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * The file in the data folder by which an operator brings keys back after the database was lost. It
 * holds the output of {@code coterie keys list -o json} from before the loss. It is read at a
 * start, and renamed unless a key in it is not believed: the next start looks at all of them again.
 * The coordinator starts whatever is in it.
 */
final class KeptKeys {
  static final String FILE = "restore-keys.json";

  /** The end of its name when the keys are written. */
  static final String DONE = ".done";

  private static final Logger log = LoggerFactory.getLogger(KeptKeys.class);

  private final KeyRestoration restoration;
  private final Path file;
  private final Path trustFile;

  KeptKeys(KeyRestoration restoration, Path folder, Path trustFile) {
    this.restoration = restoration;
    this.file = folder.resolve(FILE);
    this.trustFile = trustFile;
  }

  /** Writes the keys of the file, if there is one. */
  void restore() {
    if (!Files.exists(file)) {
      return;
    }
    try {
      ListKeysResponse.Builder kept = ListKeysResponse.newBuilder();
      JsonFormat.parser().merge(Files.readString(file), kept);
      KeyRestoration.Outcome outcome =
          restoration.restore(kept.getKeysList(), TrustFile.read(trustFile).verified().trust());
      List<RestoredKey> keys = outcome.proven();
      for (RestoredKey key : keys) {
        log.atLevel(key.fate().isConflict() ? Level.ERROR : Level.INFO)
            .log("{}: {}", FILE, key.text());
      }
      log.info(
          "{}: {} keys, of which {} are ACTIVE, {} are not believed, and {} have to be looked at",
          FILE,
          kept.getKeysCount(),
          keys.size() + outcome.refused().size(),
          outcome.refused().size(),
          keys.stream().filter(key -> key.fate().isConflict()).count());
      finish(outcome.refused());
    } catch (IllegalArgumentException | IOException e) {
      log.error("no key of {} was written: {}", file, e.getMessage());
    }
  }

  private void finish(List<String> refused) {
    if (!refused.isEmpty()) {
      refused.forEach(line -> log.error("{}: {}", FILE, line));
      log.error("{} stays, with keys that are not believed, until the next start", file);
      return;
    }
    try {
      Files.move(file, file.resolveSibling(FILE + DONE), StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      log.error("the keys of {} were looked at, but it cannot be renamed", file, e);
    }
  }
}
