package io.coterie.cli.group;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.cli.terminal.CliException;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;
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
    return MemberFolder.open(folder, passphrase, NativeMpcCore.load());
  }

  /**
   * The content of a ticket. Its issuers check its signature; whose ticket it is, the member does.
   *
   * @throws CliException if it is none
   */
  static TicketIntent ticket(Path file, SignedIntent signed) {
    try {
      TicketIntent intent = TicketIntent.parseFrom(signed.getPayload());
      if (signed.getPayloadType().contains("ticket-intent")
          && IntentVerifier.isGroupName(intent.getGroup())
          && intent.getEpoch() > 0) {
        return intent;
      }
    } catch (InvalidProtocolBufferException e) {
      // Said below.
    }
    throw CliException.local(file + " is no ticket");
  }
}
