package io.coterie.mpc;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Finds the shared library: where the operator says, beside the JRE, or inside the jar. */
final class NativeLibrary {
  /** System property: absolute path of the library to use, and no other. */
  static final String PATH_PROPERTY = "coterie.mpc.library";

  static final String FILE = "libcoterie_mpc.so";

  private static final String RESOURCE =
      "native/linux-" + System.getProperty("os.arch") + "/" + FILE;

  private NativeLibrary() {}

  /**
   * Loads the library for the life of the process.
   *
   * @throws IllegalStateException saying what was tried
   */
  static SymbolLookup load() {
    String named = System.getProperty(PATH_PROPERTY);
    if (named != null) {
      if (!Path.of(named).isAbsolute()) {
        // A relative one would be whatever lies in the folder the process was started in.
        throw new IllegalStateException(PATH_PROPERTY + " is not an absolute path: " + named);
      }
      return load(Path.of(named));
    }
    for (String directory :
        System.getProperty("java.library.path", "").split(File.pathSeparator, -1)) {
      Path candidate = Path.of(directory).resolve(FILE);
      if (!directory.isEmpty() && Files.isRegularFile(candidate)) {
        verify(candidate);
        return load(candidate);
      }
    }
    return loadFromJar(RESOURCE);
  }

  /**
   * A library found by search must be the one that was built with this class: the jar has its
   * SHA-256, or the library itself.
   */
  private static void verify(Path library) {
    try (InputStream recorded = NativeLibrary.class.getResourceAsStream(RESOURCE + ".sha256");
        InputStream packaged = NativeLibrary.class.getResourceAsStream(RESOURCE);
        InputStream found = Files.newInputStream(library)) {
      String expected;
      if (recorded != null) {
        expected = new String(recorded.readAllBytes(), StandardCharsets.US_ASCII).strip();
      } else if (packaged != null) {
        expected = sha256(packaged);
      } else {
        throw new IllegalStateException(
            "the jar has no digest to compare " + library + " with: name it by -D" + PATH_PROPERTY);
      }
      if (!expected.equals(sha256(found))) {
        throw new IllegalStateException(
            library + " is not the native core of this build: its SHA-256 is not " + expected);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + library, e);
    }
  }

  private static String sha256(InputStream in) throws IOException {
    try {
      return HexFormat.of()
          .formatHex(MessageDigest.getInstance("SHA-256").digest(in.readAllBytes()));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JRE has SHA-256", e);
    }
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
