package io.coterie.signer.storage;

import io.coterie.signer.claim.OutsideCounter;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/**
 * A counter in a file. It keeps the contract of {@link OutsideCounter} as far as the file lies
 * where nobody puts it back together with the party's store: on another volume, in no backup.
 */
public final class FileCounter implements OutsideCounter {
  /** Digits of the largest number. */
  private static final int MAX_BYTES = 20;

  /** More claims than any party makes: a ledger that began above it could not go on counting. */
  private static final long MAX = 1L << 53;

  private final Path file;

  /**
   * @param file in a folder that exists; made with the first {@link #raise}
   */
  public FileCounter(Path file) {
    this.file = file.toAbsolutePath();
  }

  @Override
  public long read() throws IOException {
    if (!Files.isDirectory(folder())) {
      // A volume that is not mounted is no counter at 0.
      throw new IOException(folder() + " is no folder");
    }
    try {
      if (Files.size(file) > MAX_BYTES) {
        throw new IOException(file + " is no counter");
      }
      String text = Files.readString(file, StandardCharsets.US_ASCII).strip();
      long number = Long.parseLong(text);
      if (number < 0 || number > MAX) {
        throw new IOException(file + " has a number that is no count of claims");
      }
      return number;
    } catch (NoSuchFileException e) {
      return 0;
    } catch (NumberFormatException e) {
      throw new IOException(file + " has no number", e);
    }
  }

  @Override
  public void raise(long least) throws IOException {
    if (least <= read()) {
      return;
    }
    Path next = file.resolveSibling(file.getFileName() + ".part");
    try (FileChannel out =
        FileChannel.open(
            next,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      ByteBuffer text = StandardCharsets.US_ASCII.encode(Long.toString(least) + "\n");
      while (text.hasRemaining()) {
        out.write(text);
      }
      out.force(true);
    }
    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    try (FileChannel names = FileChannel.open(folder(), StandardOpenOption.READ)) {
      names.force(true);
    }
  }

  private Path folder() {
    Path folder = file.getParent();
    if (folder == null) {
      throw new IllegalArgumentException(file + " is no file");
    }
    return folder;
  }
}
