package io.coterie.mpc;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** Finds the shared library: where the operator says, beside the JRE, or inside the jar. */
final class NativeLibrary {
  /** System property: absolute path of the library to use, and no other. */
  static final String PATH_PROPERTY = "coterie.mpc.library";

  static final String FILE = "libcoterie_mpc.so";

  private NativeLibrary() {}

  /**
   * Loads the library for the life of the process.
   *
   * @throws IllegalStateException saying what was tried
   */
  static SymbolLookup load() {
    String named = System.getProperty(PATH_PROPERTY);
    if (named != null) {
      return load(Path.of(named));
    }
    for (String directory :
        System.getProperty("java.library.path", "").split(File.pathSeparator, -1)) {
      Path candidate = Path.of(directory).resolve(FILE);
      if (!directory.isEmpty() && Files.isRegularFile(candidate)) {
        return load(candidate);
      }
    }
    return loadFromJar("native/linux-" + System.getProperty("os.arch") + "/" + FILE);
  }

  private static SymbolLookup load(Path library) {
    try {
      return SymbolLookup.libraryLookup(library.toAbsolutePath(), Arena.global());
    } catch (IllegalArgumentException e) {
      throw new IllegalStateException("cannot load the native core from " + library, e);
    }
  }

  /**
   * Through a private folder that is gone again before this returns: a mapped file needs no name.
   */
  private static SymbolLookup loadFromJar(String resource) {
    try (InputStream in = NativeLibrary.class.getResourceAsStream(resource)) {
      if (in == null) {
        throw new IllegalStateException(
            "no native core for this platform ("
                + resource
                + "): install "
                + FILE
                + " in java.library.path or name it by -D"
                + PATH_PROPERTY);
      }
      Path folder =
          Files.createTempDirectory(
              "coterie-mpc",
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      Path file = folder.resolve(FILE);
      try {
        Files.copy(in, file);
        return load(file);
      } finally {
        Files.deleteIfExists(file);
        Files.delete(folder);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(
          "cannot extract the native core; on a read-only file system install "
              + FILE
              + " in java.library.path",
          e);
    }
  }
}
