package io.coterie.cli.intent;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/**
 * Shows what is about to be signed on standard error, decoded, with what its signature will cover,
 * and asks whether it is meant. A command signs an intent of any kind after this alone. No text of
 * an intent begins a line of a terminal whose width is known, or that has 80 columns.
 *
 * <p>Each {@code require} names the requester in whose name it is signed, and throws a {@link
 * CliException} if the answer is no, and a {@link ParameterException} if nobody can be asked.
 */
public final class Approval {
  private static final String HEADING = "to be signed by ";
  private static final Set<String> YES = Set.of("y", "yes");

  @Option(
      names = {"-y", "--yes"},
      description = "Do not ask whether to sign what is shown; for scripts.")
  boolean yes;

  /**
   * Shows an intent to sign and asks for consent.
   *
   * @param publicKey that the signature will verify under; empty if it is not known here
   * @throws CliException also if the payload is not what it claims to be
   */
  public void require(
      @Nullable CommandSpec spec, String requester, SigningIntent intent, ByteString publicKey) {
    require(spec, out -> show(out, heading(requester), intent, publicKey));
  }

  /** All of it, with the digest of the very bytes that are signed afterwards. */
  private static void show(
      PrintWriter out, String heading, SigningIntent intent, ByteString publicKey) {
    ByteString digest = IntentVerifier.digest(intent.toByteString());
    IntentPrinting.show(out, heading, intent, publicKey, digest);
  }

  /**
   * Shows an intent that its requester has signed already, and asks for consent to send it.
   *
   * @param publicKey that the signature will verify under
   * @throws CliException also if the payload is not what it claims to be
   */
  public void require(
      @Nullable CommandSpec spec, VerifiedIntent.Signing signed, ByteString publicKey) {
    require(spec, out -> IntentPrinting.show(out, signed, publicKey));
  }

  /**
   * Shows the first of several intents to sign, which differ in their payloads and request ids
   * alone, and asks for consent to all of them.
   *
   * @param first of them
   * @param publicKey that the signatures will verify under
   * @throws CliException also if the payload is not what it claims to be
   */
  public void require(
      @Nullable CommandSpec spec,
      String requester,
      int count,
      SigningIntent first,
      ByteString publicKey) {
    String heading =
        heading(requester) + ", " + count + " times with a payload of its own each; the first";
    require(spec, out -> show(out, heading, first, publicKey));
  }

  /** Shows an intent to create a key and asks for consent. */
  public void require(@Nullable CommandSpec spec, String requester, KeyIntent intent) {
    require(spec, out -> IntentPrinting.show(out, heading(requester), intent));
  }

  /** Shows an intent to import a key and asks for consent. */
  public void require(@Nullable CommandSpec spec, String requester, ImportIntent intent) {
    require(spec, out -> IntentPrinting.show(out, heading(requester), intent));
  }

  /** Shows an intent to refresh a key and asks for consent. */
  public void require(@Nullable CommandSpec spec, String requester, RefreshIntent intent) {
    require(spec, out -> IntentPrinting.show(out, heading(requester), intent));
  }

  /** Shows an intent to reshare a key and asks for consent. */
  public void require(@Nullable CommandSpec spec, String requester, ReshareIntent intent) {
    require(spec, out -> IntentPrinting.show(out, heading(requester), intent));
  }

  /** Shows an intent to make an epoch of a group and asks for consent. */
  public void require(@Nullable CommandSpec spec, String requester, GroupIntent intent) {
    require(spec, out -> IntentPrinting.show(out, heading(requester), intent));
  }

  /** Shows an intent that lets somebody be a member and asks for consent. */
  public void require(@Nullable CommandSpec spec, String requester, TicketIntent intent) {
    require(spec, out -> IntentPrinting.show(out, heading(requester), intent));
  }

  /** Shows an intent to open an approval and asks for consent. */
  public void require(@Nullable CommandSpec spec, String requester, OpeningIntent intent) {
    require(spec, out -> IntentPrinting.show(out, heading(requester), intent));
  }

  /** Shows an intent to cancel a request. */
  public void require(@Nullable CommandSpec spec, String requester, CancelIntent intent) {
    IntentPrinting.show(Printing.shown(spec), heading(requester), intent);
    // Here NO says that the request is signed, and "nothing was signed" that it is not.
    ask(
        spec,
        ExitCode.UNAVAILABLE,
        "the request was not cancelled, and whether it was signed is not known");
  }

  private static String heading(String requester) {
    return HEADING + Output.oneLine(requester);
  }

  private void require(@Nullable CommandSpec spec, Consumer<PrintWriter> show) {
    show.accept(Printing.shown(spec));
    ask(spec, ExitCode.NO, "nothing was signed");
  }

  private void ask(@Nullable CommandSpec spec, int declined, String outcome) {
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
      throw new CliException(declined, outcome);
    }
  }
}
