package io.coterie.acceptance;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The disk of a stopped signer: its database, of one file or several. */
final class PartyFiles {
  private static final String PREFIX = "party.db";

  private PartyFiles() {}

  /** Puts the database of one folder in the place of that of another. */
  static void copy(Path from, Path to) throws IOException {
    for (Path file : in(to)) {
      Files.delete(file);
    }
    for (Path file : in(from)) {
      Files.copy(file, to.resolve(file.getFileName()));
    }
  }

  private static List<Path> in(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> file.getFileName().toString().startsWith(PREFIX)).toList();
    }
  }
}
