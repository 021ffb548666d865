package io.coterie.signer.storage;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.SQLException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * The party's open SQLite file: its lock, its only writer, and the connections that read. The
 * ledgers of this package share it. Thread-safe.
 */
final class PartyFile implements AutoCloseable {
  /** Name of the file in the data folder. */
  static final String NAME = "party.db";

  /** With a longer journal, as during a backup, nothing is forgotten: it would grow by that. */
  private static final long LONG_JOURNAL_BYTES = 16 << 20;

  private static final int READERS = 2;

  /** How often a read that waits for a connection looks whether there will be one. */
  private static final long CLOSED_CHECK_MS = 100;

  private final Path path;
  private final FileChannel lock;
  private final GroupCommit writer;
  private final BlockingQueue<Database> readers = new ArrayBlockingQueue<>(READERS);
  private volatile boolean closed;

  private PartyFile(Path path, FileChannel lock, GroupCommit writer) {
    this.path = path;
    this.lock = lock;
    this.writer = writer;
  }

  /**
   * Opens the party's file, made and migrated if need be.
   *
   * @param folder made if it does not exist; readable by its owner alone
   * @param runner makes what runs the writes, once the file can be had
   * @throws StoreException if the file cannot be had, or another process has it
   */
  static PartyFile open(Path folder, Supplier<CommitRunner> runner, GroupCommit.Listener listener) {
    try {
      createFolder(folder);
      FileChannel lock = lock(lockFile(folder));
      try {
        Path path = folder.resolve(NAME);
        if (!Files.exists(path)) {
          Files.createFile(
              path,
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        }
        PartyFile file =
            new PartyFile(
                path, lock, new GroupCommit(runner.get(), Database.writer(path), listener));
        try {
          for (int i = 0; i < READERS; i++) {
            file.readers.add(Database.reader(path));
          }
        } catch (SQLException | RuntimeException e) {
          file.close();
          throw e;
        }
        return file;
      } catch (SQLException | RuntimeException e) {
        lock.close();
        throw e;
      }
    } catch (SQLException | IOException e) {
      throw new StoreException("cannot open " + folder.resolve(NAME), e);
    }
  }

  /** Makes the data folder, readable by its owner alone; leaves an existing one as it is. */
  static void createFolder(Path folder) {
    try {
      Files.createDirectories(
          folder,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (IOException e) {
      throw new StoreException("cannot make " + folder, e);
    }
  }

  /** The process that has the party's file locks this one. */
  static Path lockFile(Path folder) {
    return folder.resolve(NAME + ".lock");
  }

  /**
   * Takes a lock file, made if need be, until the channel is closed or the process ends.
   *
   * @throws StoreException if somebody has it
   */
  static FileChannel lock(Path path) throws IOException {
    FileChannel channel =
        FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try {
      if (channel.tryLock() == null) {
        throw new StoreException("another process has " + path);
      }
      return channel;
    } catch (OverlappingFileLockException e) {
      channel.close();
      throw new StoreException("this process has " + path + " open already", e);
    } catch (RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  /** Bytes on the disk that this process can still take. */
  long free() {
    return path.toFile().getUsableSpace();
  }

  /** Whether the journal is short enough for rows to be deleted. */
  boolean mayForget() {
    return path.resolveSibling(NAME + "-wal").toFile().length() <= LONG_JOURNAL_BYTES;
  }

  /** Takes every write of the file. */
  GroupCommit writer() {
    return writer;
  }

  /**
   * Reads what is committed.
   *
   * @throws StoreException if the file cannot be read
   */
  <T> T read(GroupCommit.Write<T> query) {
    try {
      Database database = null;
      while (database == null) {
        if (closed) {
          throw new StoreException("the party's file is closed");
        }
        database = readers.poll(CLOSED_CHECK_MS, TimeUnit.MILLISECONDS);
      }
      try {
        return query.run(database);
      } catch (SQLException e) {
        database.forgetStatements();
        throw e;
      } finally {
        readers.add(database);
      }
    } catch (SQLException e) {
      throw new StoreException("the party's file could not be read", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted", e);
    }
  }

  /** Writes what waits, then closes the file. */
  @Override
  public void close() {
    writer.close();
    closed = true;
    try {
      for (Database reader = readers.poll(); reader != null; reader = readers.poll()) {
        reader.close();
      }
      lock.close();
    } catch (SQLException | IOException e) {
      throw new StoreException("the party's file could not be closed", e);
    }
  }
}
