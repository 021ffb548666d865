package io.coterie.cli.group;

import io.coterie.cli.intent.IntentFile;
import io.coterie.cli.terminal.CliException;
import io.coterie.member.MemberException;
import io.coterie.member.MemberFolder;
import io.coterie.member.Ticket;
import io.coterie.proto.custody.v1.SignedIntent;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The folder of a member, and the passphrase that opens it. */
final class MemberOptions {

  @Option(
      names = "--member",
      required = true,
      paramLabel = "FOLDER",
      description = "The member's identity and key, encrypted; one folder for each ticket.")
  @SuppressWarnings("NullAway.Init")
  Path folder;

  @Option(
      names = "--passphrase-file",
      required = true,
      paramLabel = "FILE",
      description = "The passphrase of the folder, 12 to 1024 bytes.")
  @SuppressWarnings("NullAway.Init")
  Path passphrase;

  MemberFolder open() {
    return MemberFolder.open(folder, passphrase);
  }

  /**
   * The ticket in a file. Its issuers check its signature; whose ticket it is, the member does.
   *
   * @throws CliException if it is none
   */
  static Ticket ticket(Path file) {
    SignedIntent signed = IntentFile.read(file);
    try {
      return Ticket.of(signed);
    } catch (MemberException.Unfit e) {
      throw CliException.local(file + " is no ticket");
    }
  }
}
