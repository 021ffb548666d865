package io.coterie.cli.intent;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.io.PrintWriter;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;

/** Intents as people read them: a heading, every field, and a digest as the last line. */
final class IntentPrinting {
  private IntentPrinting() {}

  /**
   * Shows an intent to sign.
   *
   * @param publicKey that the signature will verify under, if it is known; else empty
   * @param digest of the intent as its requester signs it
   * @throws CliException if the payload is not what it claims to be; then nothing is shown
   */
  static void show(
      PrintWriter out,
      String heading,
      SigningIntent intent,
      ByteString publicKey,
      ByteString digest) {
    DecodedPayload decoded;
    try {
      decoded = Payloads.preview(intent);
    } catch (IntentException e) {
      throw SignedPayload.refused(e);
    }
    about(out, heading, intent.getKey(), intent.getKeyFingerprint(), intent.getInstallation());
    if (intent.getDerivationPathCount() > 0) {
      Output.row(
          out,
          "path",
          intent.getDerivationPathList().stream()
              .map(String::valueOf)
              .collect(Collectors.joining("/", "m/", "")));
    }
    if (intent.hasTaproot()) {
      ByteString root = intent.getTaproot().getMerkleRoot();
      Output.row(
          out, "taproot", root.isEmpty() ? "output key without scripts" : "root " + hex(root));
    }
    Output.row(out, "public key", hex(publicKey));
    terms(out, intent.getScheme(), intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "one signature");
    Output.row(out, "", "request id: " + escaped(intent.getRequestId()));
    Output.row(out, "", "reshare epoch: " + Integer.toUnsignedString(intent.getReshareEpoch()));
    Output.row(out, "", "digest of the intent: " + hex(digest));
    if (intent.hasApprovers()) {
      Approvers approvers = intent.getApprovers();
      Output.row(
          out,
          "approvers",
          approvers.getGroup() + ", epoch " + Integer.toUnsignedString(approvers.getEpoch()));
      Output.row(out, "", "digest of the group: " + hex(approvers.getDigest()));
    }
    Output.row(out, "payload", decoded.kind().label());
    for (DecodedPayload.Field field : decoded.fields()) {
      Output.row(out, "", field.name() + ": " + field.value());
    }
    switch (decoded.kind()) {
      // These are signed as they are.
      case MESSAGE, SOLANA_TRANSACTION ->
          digest(out, "sha-256", IntentVerifier.digest(decoded.toSign()));
      case DIGEST, ETHEREUM_TRANSACTION, ETHEREUM_MESSAGE, ETHEREUM_TYPED_DATA, BITCOIN_INPUT ->
          digest(out, "digest", decoded.toSign());
    }
  }

  /** Shows an intent to sign as its requester has signed it. */
  static void show(PrintWriter out, VerifiedIntent.Signing signed, ByteString publicKey) {
    String heading = "signed by " + signed.requester();
    show(out, heading, signed.intent(), publicKey, signed.digest());
  }

  static void show(PrintWriter out, String heading, KeyIntent intent) {
    about(out, heading, intent.getKey(), ByteString.EMPTY, intent.getInstallation());
    terms(out, intent.getScheme(), intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "a new key");
    Output.row(out, "", holders(intent.getThreshold(), intent.getPartiesList()));
    Output.row(out, "", "request id: " + intent.getRequestId());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  static void show(PrintWriter out, String heading, ImportIntent intent) {
    about(out, heading, intent.getKey(), ByteString.EMPTY, intent.getInstallation());
    terms(out, intent.getScheme(), intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "the import of a key that exists already");
    Output.row(out, "", holders(intent.getThreshold(), intent.getPartiesList()));
    Output.row(out, "", "public key: " + hex(intent.getPublicKey()));
    Output.row(out, "", "request id: " + intent.getRequestId());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  static void show(PrintWriter out, String heading, RefreshIntent intent) {
    about(out, heading, intent.getKey(), intent.getKeyFingerprint(), intent.getInstallation());
    terms(out, intent.getScheme(), intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "new shares of this key for the parties that hold it");
    Output.row(out, "", "in place of those of epoch: " + intent.getEpoch());
    Output.row(out, "", "request id: " + intent.getRequestId());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  static void show(PrintWriter out, String heading, ReshareIntent intent) {
    about(out, heading, intent.getKey(), ByteString.EMPTY, intent.getInstallation());
    terms(out, intent.getScheme(), intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "new shares of this key for these parties and no others");
    Output.row(out, "", holders(intent.getThreshold(), intent.getPartiesList()));
    Output.row(out, "", "in place of those of epoch: " + intent.getEpoch());
    Output.row(out, "", "public key: " + hex(intent.getPublicKey()));
    Output.row(out, "", "request id: " + intent.getRequestId());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  static void show(PrintWriter out, String heading, CancelIntent intent) {
    about(out, heading, intent.getKey(), intent.getKeyFingerprint(), intent.getInstallation());
    terms(out, intent.getScheme(), intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "no signature, ever, under this request id");
    Output.row(out, "", "request id: " + intent.getRequestId());
    Output.row(out, "", "reshare epoch: " + intent.getReshareEpoch());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  static void show(PrintWriter out, String heading, TicketIntent intent) {
    group(out, heading, intent.getGroup(), intent.getInstallation());
    terms(out, intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "that the holder of this key be a member of the group");
    Output.row(out, "", "identity: " + hex(intent.getIdentity()));
    Output.row(out, "", "epoch: " + Integer.toUnsignedString(intent.getEpoch()));
    Output.row(out, "", "request id: " + intent.getRequestId());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  static void show(PrintWriter out, String heading, OpeningIntent intent) {
    group(out, heading, intent.getGroup(), intent.getInstallation());
    terms(out, intent.getPurpose(), intent.getNotAfter());
    Output.row(
        out,
        "asks for",
        intent.getRejection() ? "the member that rejects it" : "the member that approves it");
    Output.row(out, "", "request: " + hex(intent.getRequest()));
    Output.row(
        out, "", "digest of the approval: " + hex(IntentVerifier.digest(intent.getApproval())));
    Output.row(out, "", "for the key: " + hex(intent.getRecipient()));
    Output.row(out, "", "epoch: " + Integer.toUnsignedString(intent.getEpoch()));
    Output.row(out, "", "request id: " + intent.getRequestId());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  private static void group(PrintWriter out, String heading, String group, String installation) {
    out.println(heading);
    Output.row(out, "group", group);
    Output.row(out, "in", escaped(installation));
  }

  private static void terms(PrintWriter out, String purpose, Timestamp notAfter) {
    Output.row(out, "purpose", escaped(purpose));
    Output.row(out, "good until", Instant.ofEpochSecond(notAfter.getSeconds()).toString());
  }

  static void show(PrintWriter out, String heading, GroupIntent intent) {
    group(out, heading, intent.getGroup(), intent.getInstallation());
    terms(out, intent.getPurpose(), intent.getNotAfter());
    Output.row(out, "asks for", "a new epoch of this group of approvers");
    Output.row(out, "", "epoch: " + Integer.toUnsignedString(intent.getEpoch()));
    Output.row(
        out, "", "issuers, " + holders(intent.getIssuerThreshold(), intent.getIssuersList()));
    Output.row(
        out, "", "openers, " + holders(intent.getOpenerThreshold(), intent.getOpenersList()));
    Output.row(out, "", "request id: " + intent.getRequestId());
    digest(out, "digest", IntentVerifier.digest(intent.toByteString()));
  }

  /** The key and installation that the intent names; a row without a value is left out. */
  private static void about(
      PrintWriter out, String heading, String key, ByteString fingerprint, String installation) {
    out.println(heading);
    Output.row(out, "key", key);
    if (!fingerprint.isEmpty()) {
      Output.row(out, "fingerprint", KeyFingerprint.text(fingerprint));
    }
    Output.row(out, "in", escaped(installation));
  }

  private static void terms(PrintWriter out, Scheme scheme, String purpose, Timestamp notAfter) {
    Output.row(out, "scheme", Spelling.scheme(scheme));
    terms(out, purpose, notAfter);
  }

  private static String holders(int threshold, List<String> parties) {
    return escaped(
        "threshold: %s of %d: %s"
            .formatted(
                Integer.toUnsignedString(threshold), parties.size(), String.join(", ", parties)));
  }

  private static void digest(PrintWriter out, String label, ByteString digest) {
    Output.row(out, label, hex(digest));
    out.flush();
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  /** Text that nobody can take for a line of this command. */
  private static String escaped(String text) {
    return text.replace("\\", "\\\\").replace("\n", "\\n");
  }
}
