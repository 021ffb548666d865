package io.coterie.cli.intent;

import com.google.protobuf.ByteString;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.payload.PayloadOptions;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.profile.RequesterKeyFile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.Printing;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code coterie intent} makes and reads intents without the installation. */
@Command(
    name = "intent",
    addMethodSubcommands = false,
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    description = "Make a requester's key pair, sign intents offline, show them.")
public final class IntentCommand {
  @Spec @Nullable CommandSpec spec;

  @Command(
      name = "new-requester",
      mixinStandardHelpOptions = true,
      description = "Make a key pair: FILE is the private key, FILE.pub goes to the signers.")
  int newRequester(
      @Parameters(paramLabel = "FILE") Path file,
      @Option(
              names = "--algorithm",
              defaultValue = "ed25519",
              description = "ed25519 or p256; default ${DEFAULT-VALUE}.")
          RequesterKeyFile.Algorithm algorithm) {
    RequesterKeyFile.create(algorithm, file);
    Printing.out(spec)
        .printf("private key %s%npublic key  %s%n", file, RequesterKeyFile.publicFile(file));
    return 0;
  }

  @Command(
      name = "sign",
      mixinStandardHelpOptions = true,
      description = "Sign an intent to sign; 'coterie sign --intent FILE' sends it later.")
  int sign(
      @Mixin Profile profile,
      @Mixin IntentOptions common,
      @Mixin ApproversOptions approvers,
      @Mixin Approval approval,
      @Mixin PayloadOptions payload,
      @Parameters(paramLabel = "KEY", description = "Name of the key.") String key,
      @Option(
              names = "--fingerprint",
              required = true,
              paramLabel = "HEX",
              description = "Fingerprint of the key, as 'coterie keys get' shows it.")
          String fingerprint,
      @Option(
              names = "--reshare-epoch",
              defaultValue = "0",
              description =
                  "Epoch that the last reshare of the key made, as 'coterie keys get' shows it;"
                      + " default ${DEFAULT-VALUE}: none.")
          int reshareEpoch,
      @Option(names = "--out", required = true, paramLabel = "FILE") Path out) {
    SigningIntent.Builder wish =
        common.signing(key, payload, Printing.line(spec)).toBuilder()
            .setInstallation(profile.trust().roster().installation())
            .setKeyFingerprint(Spelling.parseFingerprint(fingerprint))
            .setReshareEpoch(reshareEpoch);
    approvers.into(wish);
    SigningIntent intent = wish.build();
    if (Timestamps.toMillis(intent.getNotAfter()) <= System.currentTimeMillis()) {
      throw CliException.local(
          "--expires-in counts from the time of --request-id: this intent would be of no use since "
              + Timestamps.toString(intent.getNotAfter()));
    }
    IntentSigner signer = profile.requesterKey();
    // Offline nobody knows the public key, and the fingerprint names it.
    approval.require(spec, profile.requester(), intent, ByteString.EMPTY);
    SignedIntent signed = signer.sign(intent);
    try {
      Files.write(out, signed.toByteArray());
    } catch (IOException e) {
      throw CliException.local("cannot write " + out);
    }
    Printing.out(spec).printf("request id %s%nintent     %s%n", intent.getRequestId(), out);
    return 0;
  }

  @Command(
      name = "show",
      mixinStandardHelpOptions = true,
      description = "Show an intent to sign, decoded, once its signature is checked.")
  int show(
      @Mixin Profile profile,
      @Parameters(paramLabel = "FILE", description = "As 'coterie intent sign' writes it.")
          Path file) {
    VerifiedIntent.Signing signing =
        IntentFile.verified(profile.trust(), file, IntentFile.read(file));
    IntentPrinting.show(Printing.shownAsResult(spec), signing, ByteString.EMPTY);
    return 0;
  }
}
