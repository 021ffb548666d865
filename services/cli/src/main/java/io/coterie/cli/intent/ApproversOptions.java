package io.coterie.cli.intent;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.SigningIntent;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The group whose members approve a request. */
public final class ApproversOptions {
  @Option(
      names = "--approvers",
      paramLabel = "GROUP",
      description =
          "Group whose members approve the request with 'coterie group approve', for signers that"
              + " ask for it. Default: none.")
  @Nullable String group;

  @Option(
      names = "--approvers-epoch",
      paramLabel = "EPOCH",
      description = "The latest epoch of that group, as 'coterie group show' shows it.")
  @Nullable Integer epoch;

  @Option(
      names = "--approvers-digest",
      paramLabel = "HEX",
      description = "The digest of that group, as 'coterie group show' shows it.")
  @Nullable String digest;

  /**
   * Names the approvers, if there are to be some.
   *
   * @throws CliException if the options do not name one group
   */
  void into(SigningIntent.Builder intent) {
    if (group == null && epoch == null && digest == null) {
      return;
    }
    if (group == null || epoch == null || digest == null) {
      throw CliException.local(
          "--approvers, --approvers-epoch and --approvers-digest go together: 'coterie group show'"
              + " shows epoch and digest");
    }
    byte[] bytes = Spelling.parseHex("--approvers-digest", digest);
    if (bytes.length != IntentVerifier.DIGEST_BYTES) {
      throw CliException.local("--approvers-digest does not have 32 bytes");
    }
    if (epoch < 1) {
      throw CliException.local("--approvers-epoch is not a positive number");
    }
    intent.setApprovers(
        Approvers.newBuilder()
            .setGroup(Spelling.groupName(group))
            .setEpoch(epoch)
            .setDigest(ByteString.copyFrom(bytes)));
  }
}
