package io.coterie.signer.config;

import io.coterie.signer.claim.ClaimLedger.Room;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.storage.StoreException;
import java.io.File;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The room on the party's disk, as its operator and the metrics see it. */
final class DiskRoom {
  private static final Logger log = LoggerFactory.getLogger(DiskRoom.class);

  private static final long MEBIBYTE = 1 << 20;

  private final File folder;
  private final long minFree;
  private final Supplier<@Nullable PartyStore> store;

  /**
   * @param minFree bytes without which the party is not ready
   * @param store null until it is open
   */
  DiskRoom(Path folder, long minFree, Supplier<@Nullable PartyStore> store) {
    this.folder = folder.toFile();
    this.minFree = minFree;
    this.store = store;
  }

  private Room room() {
    PartyStore open = store.get();
    if (open != null) {
      try {
        return open.claims().room();
      } catch (StoreException e) {
        log.debug("the party's file is being closed", e);
      }
    }
    return new Room(Map.of(), folder.getUsableSpace(), 0, minFree);
  }

  /** Bytes that this party can still write, in its file too; 0 if there is no folder yet. */
  long free() {
    Room room = room();
    return room.diskBytes() + room.fileBytes();
  }

  /** Bytes of the file system; 0 if there is no folder yet. */
  long total() {
    return folder.getTotalSpace();
  }

  /** One line that says what is missing; empty if nothing is. */
  Optional<String> problem() {
    Room room = room();
    return room.freeBytes() >= 0 || !folder.exists()
        ? Optional.empty()
        : Optional.of(
            "%s has %d MiB left, and %d in its file, and %d are needed: enlarge the volume"
                .formatted(
                    folder,
                    room.diskBytes() / MEBIBYTE,
                    room.fileBytes() / MEBIBYTE,
                    minFree / MEBIBYTE));
  }
}
