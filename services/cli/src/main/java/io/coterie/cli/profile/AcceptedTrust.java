package io.coterie.cli.profile;

import io.coterie.cli.terminal.CliException;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.TrustFile;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The highest version of a trust file that this client has accepted, as a file of its own. */
final class AcceptedTrust {
  private AcceptedTrust() {}

  /** The one of a folder. A name from the offered file would let that choose its predecessor. */
  static Path file(Path folder) {
    return folder.resolve("trust.accepted");
  }

  /**
   * Accepts a trust file: from now on none is accepted that is older, or that other root keys have
   * signed. Of two commands at once the later one sees what the earlier one has accepted.
   *
   * @param folder where the client keeps the version that it has accepted, of one installation
   * @throws IllegalArgumentException if the file may not follow the one accepted before, or replace
   *     it; says what to do
   * @throws CliException if the version cannot be remembered
   */
  static void accept(SignedTrust offered, Path folder) {
    Path file = file(folder);
    // Most commands find the version that they have: they need no right to write.
    if (!isNews(offered, file)) {
      return;
    }
    Path lockFile = folder.resolve("trust.accepted.lock");
    try (FileChannel channel =
        FileChannel.open(lockFile, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      channel.lock();
      if (isNews(offered, file)) {
        offered.file().write(file);
      }
    } catch (OverlappingFileLockException e) {
      throw CliException.local(
          "another command is accepting a trust file in " + folder + ": try again");
    } catch (IOException e) {
      throw CliException.local(
          "cannot remember the version of the trust file in "
              + file
              + ": let trust-state name a folder that you can write into");
    }
  }

  private static boolean isNews(SignedTrust offered, Path file) {
    return !Files.exists(file) || offered.requireNotBefore(held(file));
  }

  private static SignedTrust held(Path file) {
    try {
      return TrustFile.read(file).verified();
    } catch (IOException | IllegalArgumentException e) {
      throw CliException.local(
          file
              + ", the trust file that was accepted last, cannot be used: "
              + CliException.firstLine(e.getMessage())
              + ". Remove it if you are sure that the trust file is the newest.");
    }
  }
}
