package io.coterie.signer.storage;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipInputStream;
import java.util.zip.ZipOutputStream;

/**
 * A party's backup: a zip of its file, as it is after some commit, and of its wrapped data key.
 * Together with the passphrase it is the party's share of every key; without it, it opens nothing.
 */
public final class Backup {
  /** Name of the wrapped data key in the data folder, unless the configuration says otherwise. */
  public static final String DATA_KEY = "data.key";

  private static final Set<String> CONTENT = Set.of(PartyFile.NAME, DATA_KEY);

  /** The reason of the hold of everything that a restored party begins with. */
  private static final String HOLDS_UNKNOWN =
      "restored from a backup: holds that were set or lifted since are unknown";

  private static final String LOCK = "backup.lock";
  private static final String PART = "backup.part";

  private Backup() {}

  /**
   * Writes the backup of a party. The party may be running meanwhile, in another process: it waits
   * for nothing.
   *
   * @param folder the party's data folder; a copy of its file lies there for the time
   * @param out gets the zip; is not closed
   * @throws StoreException if there is no party in the folder, its file is damaged, or another
   *     backup is being made
   * @throws IOException if {@code out} does not take it
   */
  public static void write(Path folder, OutputStream out) throws IOException {
    for (String name : CONTENT) {
      if (!Files.isRegularFile(folder.resolve(name))) {
        throw new StoreException(folder.resolve(name) + " is missing: no party's data folder");
      }
    }
    Path copy = part(folder, PartyFile.NAME);
    try (FileChannel lock = PartyFile.lock(folder.resolve(LOCK))) {
      // One that a killed backup has left.
      Files.deleteIfExists(copy);
      try {
        createPrivate(copy);
        try (Database party = Database.reader(folder.resolve(PartyFile.NAME))) {
          party.copyTo(copy);
        }
        check(copy);
        ZipOutputStream zip = new ZipOutputStream(out);
        put(zip, PartyFile.NAME, copy);
        put(zip, DATA_KEY, folder.resolve(DATA_KEY));
        zip.finish();
      } finally {
        Files.deleteIfExists(copy);
      }
    } catch (SQLException e) {
      throw new StoreException("cannot copy " + folder.resolve(PartyFile.NAME), e);
    }
  }

  private static void put(ZipOutputStream zip, String name, Path file) throws IOException {
    zip.putNextEntry(new ZipEntry(name));
    Files.copy(file, zip);
    zip.closeEntry();
  }

  /**
   * Puts a backup into an empty data folder. A backup that is not whole is refused and leaves
   * nothing behind.
   *
   * @param in the zip, to its end; is not closed
   * @param folder made if it does not exist; readable by its owner alone
   * @throws StoreException if the folder has a party already, or the zip is no whole backup
   */
  public static void restore(InputStream in, Path folder) throws IOException {
    PartyFile.createFolder(folder);
    // Nobody else opens the party's file while it holds this.
    try (FileChannel lock = PartyFile.lock(PartyFile.lockFile(folder))) {
      for (String name : CONTENT) {
        if (Files.exists(folder.resolve(name))) {
          throw new StoreException(
              folder.resolve(name) + " exists: a backup goes into an empty folder only");
        }
      }
      try {
        unpack(in, folder);
        check(part(folder, PartyFile.NAME));
        markRestored(part(folder, PartyFile.NAME));
        for (String journal : List.of("-wal", "-shm")) {
          Files.deleteIfExists(folder.resolve(PartyFile.NAME + journal));
        }
        // The key last: a party that finds one expects its file.
        for (String name : List.of(PartyFile.NAME, DATA_KEY)) {
          Files.move(part(folder, name), folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        }
        try (FileChannel names = FileChannel.open(folder, StandardOpenOption.READ)) {
          names.force(true);
        }
      } finally {
        for (String name : CONTENT) {
          Files.deleteIfExists(part(folder, name));
        }
      }
    }
  }

  /**
   * The party has forgotten everything after the backup: whom it excludes, how often it died. So it
   * multiplies with no share of the backup, and holds everything until its operator has looked at
   * the holds; see {@code docs/runbooks/back-up-and-restore.md}.
   */
  private static void markRestored(Path file) {
    try (Database copy = Database.writer(file)) {
      copy.update("UPDATE ledger SET restored = 1");
      // A permission of the operator may have been used since the backup.
      copy.update("DELETE FROM permitted_trust");
      // A hold may have been set since: the operator says that none was, by lifting this one.
      copy.update(
          "INSERT INTO hold (scope, cause, reason, since_ms) VALUES ('installation', 'OPERATOR', ?,"
              + " (SELECT coalesce(max(time_ms), 0) FROM audit_record)) ON CONFLICT (scope, cause)"
              + " DO UPDATE SET"
              + " reason = substr(excluded.reason || '; held before: ' || reason, 1, 256)",
          HOLDS_UNKNOWN);
      copy.commit();
      if (!copy.checkpoint()) {
        throw new StoreException(file + " is in use");
      }
    } catch (SQLException e) {
      throw new StoreException(file + " cannot be marked as restored", e);
    }
    for (String journal : List.of("-wal", "-shm")) {
      file.resolveSibling(file.getFileName() + journal).toFile().delete();
    }
  }

  private static void unpack(InputStream in, Path folder) throws IOException {
    Set<String> missing = new TreeSet<>(CONTENT);
    ZipInputStream zip = new ZipInputStream(in);
    try {
      for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
        if (!missing.remove(entry.getName())) {
          throw new StoreException("not a party's backup: it has " + entry.getName());
        }
        Path part = part(folder, entry.getName());
        Files.deleteIfExists(part);
        createPrivate(part);
        try (FileChannel channel = FileChannel.open(part, StandardOpenOption.WRITE);
            OutputStream file = Channels.newOutputStream(channel)) {
          zip.transferTo(file);
          channel.force(true);
        }
      }
    } catch (ZipException | EOFException e) {
      throw new StoreException("the backup is damaged or not whole", e);
    }
    if (!missing.isEmpty()) {
      throw new StoreException(
          "not a whole party's backup: it lacks " + String.join(", ", missing));
    }
  }

  private static void check(Path file) {
    try (Database copy = Database.reader(file)) {
      copy.check();
    } catch (SQLException e) {
      throw new StoreException(file + " is damaged", e);
    }
  }

  private static Path part(Path folder, String name) {
    return folder.resolve(name + "." + PART);
  }

  private static void createPrivate(Path file) throws IOException {
    Files.createFile(
        file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
  }
}
