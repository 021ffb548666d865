package io.coterie.cli.profile;

import io.coterie.cli.terminal.CliException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Set;

/** A file with a private key. */
final class PrivateFile {
  private static final Set<PosixFilePermission> OF_OTHERS =
      EnumSet.of(
          PosixFilePermission.GROUP_READ,
          PosixFilePermission.GROUP_WRITE,
          PosixFilePermission.OTHERS_READ,
          PosixFilePermission.OTHERS_WRITE);

  private PrivateFile() {}

  /**
   * Refuses a key that others could copy or replace. A file system without permissions has none to
   * look at.
   *
   * @throws CliException saying how to mend it
   */
  static Path require(Path file) {
    try {
      if (!Collections.disjoint(Files.getPosixFilePermissions(file), OF_OTHERS)) {
        throw CliException.local(
            file + " can be read or changed by others: chmod 600 " + file.toAbsolutePath());
      }
    } catch (UnsupportedOperationException e) {
      return file;
    } catch (IOException e) {
      throw CliException.local(file + " cannot be read");
    }
    return file;
  }
}
