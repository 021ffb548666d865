package io.coterie.cli.signing;

import com.google.protobuf.ByteString;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.PayloadOptions;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Printing;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code coterie verify}. */
@Command(
    name = "verify",
    mixinStandardHelpOptions = true,
    description =
        "Verify a signature on this machine; with --public-key no installation is needed.")
public final class VerifyCommand implements Callable<Integer> {
  @Spec @Nullable CommandSpec spec;
  @Mixin Profile profile = new Profile();

  @ArgGroup(multiplicity = "1")
  Who who = new Who();

  static final class Who {
    @Parameters(paramLabel = "KEY", arity = "0..1", description = "Name of the key to ask for.")
    @Nullable String key;

    @Option(
        names = "--public-key",
        paramLabel = "BYTES",
        description =
            "The public key, as hex or base64: 48 bytes (BLS), 33 (ECDSA, the child's own) or 32"
                + " (Ed25519; BIP-340, the child's own or its Taproot output key).")
    @Nullable String publicKey;
  }

  @Mixin PayloadOptions payload = new PayloadOptions();

  @Option(
      names = "--signature",
      required = true,
      paramLabel = "BYTES",
      description = "As hex or base64: 96 bytes (BLS), or 64 (the others; ECDSA: r and s).")
  String signature = "";

  @Override
  public Integer call() {
    SigningIntent intent = payload.into(SigningIntent.newBuilder(), Printing.line(spec)).build();
    SignedPayload.check(intent);
    ByteString publicKey;
    if (who.publicKey != null) {
      publicKey = ByteString.copyFrom(Spelling.parseBytes("--public-key", who.publicKey));
    } else {
      try (Profile.Connection connection = profile.connect()) {
        AttestedKey key = new AttestedKeys(profile, connection).get(who.key == null ? "" : who.key);
        AttestedKeys.requireScheme(key, intent.getScheme());
        publicKey = AttestedKeys.verifyingKey(key, KeyTarget.of(intent));
      }
    }
    boolean valid =
        SignedPayload.verify(
            intent, publicKey, ByteString.copyFrom(Spelling.parseBytes("--signature", signature)));
    Printing.out(spec).println(valid ? "valid" : "NOT VALID");
    return valid ? 0 : ExitCode.NO;
  }
}
