package io.coterie.cli.intent;

import com.google.protobuf.ByteString;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.PrintWriter;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** Shows what is about to be signed, and asks whether it is meant. */
public final class Approval {
  /** Characters of a message that are shown. */
  private static final int MAX_TEXT = 1000;

  private static final Set<String> YES = Set.of("y", "yes");

  @Option(
      names = {"-y", "--yes"},
      description = "Do not ask whether to sign what is shown; for scripts.")
  boolean yes;

  /**
   * Shows an intent on standard error, decoded, with what its signature will cover.
   *
   * @throws CliException if the answer is no, or the payload is not what it claims to be
   * @throws ParameterException if nobody can be asked
   */
  public void require(@Nullable CommandSpec spec, SigningIntent intent) {
    show(Printing.err(spec), "to be signed", intent);
    if (yes) {
      return;
    }
    CommandLine line = Printing.line(spec);
    String answer =
        Printing.terminal(spec)
            .ask("Sign this? [y/N] ")
            .orElseThrow(
                () ->
                    new ParameterException(
                        line, "Nobody can be asked here: --yes signs without a question"));
    if (!YES.contains(answer.strip().toLowerCase(Locale.ROOT))) {
      throw new CliException(ExitCode.NO, "nothing was signed");
    }
  }

  /**
   * Shows an intent under a heading, decoded, with what its signature covers.
   *
   * @throws CliException if the payload is not what it claims to be; then nothing is shown
   */
  static void show(PrintWriter out, String heading, SigningIntent intent) {
    DecodedPayload decoded;
    try {
      decoded = Payloads.preview(intent);
    } catch (IntentException e) {
      throw SignedPayload.refused(e);
    }
    out.println(heading);
    Output.row(out, "key", intent.getKey());
    if (!intent.getKeyFingerprint().isEmpty()) {
      Output.row(out, "fingerprint", KeyFingerprint.text(intent.getKeyFingerprint()));
      Output.row(out, "in", oneLine(intent.getInstallation()));
    }
    if (intent.getDerivationPathCount() > 0) {
      Output.row(
          out,
          "path",
          intent.getDerivationPathList().stream()
              .map(String::valueOf)
              .collect(Collectors.joining("/", "m/", "")));
    }
    Output.row(out, "scheme", Spelling.scheme(intent.getScheme()));
    Output.row(out, "purpose", oneLine(intent.getPurpose()));
    Output.row(
        out, "good until", Instant.ofEpochSecond(intent.getNotAfter().getSeconds()).toString());
    Output.row(out, "payload", decoded.kind().label());
    for (DecodedPayload.Field field : decoded.fields()) {
      Output.row(out, "", field.name() + ": " + field.value());
    }
    switch (decoded.kind()) {
      // These are signed as they are.
      case MESSAGE, SOLANA_TRANSACTION ->
          Output.row(out, "sha-256", hex(IntentVerifier.digest(decoded.toSign())));
      case DIGEST, ETHEREUM_TRANSACTION, ETHEREUM_MESSAGE, ETHEREUM_TYPED_DATA, BITCOIN_INPUT ->
          Output.row(out, "digest", hex(decoded.toSign()));
    }
    out.flush();
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  /** Text that nobody can take for a line of this command. */
  private static String oneLine(String text) {
    String line = text.replace("\\", "\\\\").replace("\n", "\\n");
    return line.length() <= MAX_TEXT ? line : line.substring(0, MAX_TEXT) + "…";
  }
}
