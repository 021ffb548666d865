package io.coterie.simulation;

import io.coterie.signer.storage.PartyStore;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/** Reads and changes the files of stores without the knowledge of their processes. */
final class StoreFiles {
  private StoreFiles() {}

  /** All files of a folder, by name. */
  static Map<String, byte[]> read(Path folder) {
    Map<String, byte[]> read = new TreeMap<>();
    try {
      for (Path file : files(folder)) {
        read.put(file.getFileName().toString(), Files.readAllBytes(file));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return read;
  }

  /** Makes a folder with such files. */
  static void write(Map<String, byte[]> files, Path folder) {
    PartyStore.createFolder(folder);
    try {
      for (Map.Entry<String, byte[]> file : files.entrySet()) {
        Files.write(folder.resolve(file.getKey()), file.getValue());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Copies a store without the files of its process: the lock, and the index of the journal. */
  static void copy(Path from, Path to) {
    try {
      Files.createDirectories(to);
      clear(to);
      for (Path file : files(from)) {
        String name = file.getFileName().toString();
        if (!name.endsWith(".lock") && !name.endsWith("-shm")) {
          Files.copy(file, to.resolve(name));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Puts files in the place of all that are in a folder. */
  static void move(Path from, Path to) {
    try {
      clear(to);
      for (Path file : files(from)) {
        Files.move(file, to.resolve(file.getFileName()));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void clear(Path folder) throws IOException {
    for (Path file : files(folder)) {
      Files.delete(file);
    }
  }

  static List<Path> files(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.sorted().toList();
    }
  }
}
