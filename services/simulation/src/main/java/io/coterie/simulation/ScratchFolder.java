package io.coterie.simulation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** A folder for the stores of one schedule, which is gone with it. */
record ScratchFolder(Path path) implements AutoCloseable {
  /** In memory where there is such a folder: its fsync costs nothing. */
  private static final Path MEMORY = Path.of("/dev/shm");

  static ScratchFolder make() {
    try {
      return new ScratchFolder(
          Files.isDirectory(MEMORY)
              ? Files.createTempDirectory(MEMORY, "coterie-simulation")
              : Files.createTempDirectory("coterie-simulation"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    try (Stream<Path> files = Files.walk(path)) {
      List<Path> all = files.sorted(Comparator.reverseOrder()).toList();
      for (Path file : all) {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
