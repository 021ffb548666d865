package io.coterie.coordinator.config;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A text file that the configuration names: a public key, or a few certificates. */
final class TextFile {
  /** Longest one, in bytes. */
  private static final int MAX_TEXT = 64 * 1024;

  private TextFile() {}

  /**
   * Reads it.
   *
   * @throws IllegalArgumentException if it cannot be read or is too long
   */
  static String read(Path file) {
    try {
      if (Files.size(file) > MAX_TEXT) {
        throw new IllegalArgumentException(file + " has more than " + MAX_TEXT + " bytes");
      }
      return Files.readString(file, StandardCharsets.US_ASCII);
    } catch (IOException e) {
      throw new IllegalArgumentException("cannot read " + file, e);
    }
  }
}
