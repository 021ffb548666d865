package io.coterie.cli.terminal;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.ListValue;
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.Struct;
import com.google.protobuf.Timestamp;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import com.google.protobuf.util.Timestamps;
import com.google.rpc.Status;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.CurrentProof;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.DecodedField;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import java.io.PrintWriter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;

/** How results are printed: for people, or as the JSON form of the API's messages. */
public final class Output {
  /** The form of a result. */
  enum Format {
    TEXT,
    JSON
  }

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FORMAT",
      defaultValue = "text",
      description = "text or json, also for errors; default ${DEFAULT-VALUE}.")
  Format format = Format.TEXT;

  /** Whether results are for people. */
  public boolean isText() {
    return format == Format.TEXT;
  }

  /**
   * How many receipts prove that a key has not signed a request, and whether it has so many
   * parties.
   */
  public static String receipts(int needed, int holders) {
    return needed > holders
        ? "no number of receipts proves that a request was not signed: %d would be needed of %d"
            .formatted(needed, holders)
        : "%d of %d receipts prove that a request was not signed".formatted(needed, holders);
  }

  /** Prints a key: in words its attested facts, in JSON the answer that agrees with them. */
  public void key(PrintWriter out, Key answer, AttestedKey attested) {
    // No party was asked which epoch is current, so nobody has verified such an answer.
    if (!json(out, answer.toBuilder().clearCurrent().build())) {
      facts(out, answer, attested, "");
    }
  }

  /** Prints a key, and how far its parties have proven that its epoch is the current one. */
  public void key(PrintWriter out, Key answer, AttestedKey attested, CurrentProof proof) {
    if (format == Format.JSON) {
      out.println(withProof(jsonForm(answer), proof));
      return;
    }
    String others = proof.undecided().isEmpty() ? "" : "; " + undecided(proof);
    facts(out, answer, attested, (proof.holds() ? "" : "not proven: ") + count(proof) + others);
  }

  /** The parties that say so, and may be at another epoch in the next moment. */
  public static String undecided(CurrentProof proof) {
    return String.join(", ", proof.undecided())
        + " may go on to another share of the key that they keep";
  }

  /** How many parties say that they use the epoch, and how many must if they are too few. */
  public static String count(CurrentProof proof) {
    return proof.confirming().size()
        + " of "
        + proof.holders()
        + " parties say so"
        + (proof.holds() ? "" : ", " + proof.needed() + " are needed");
  }

  /** The JSON form of a key with a field that only this command knows; it keeps the others. */
  private static String withProof(String key, CurrentProof proof) {
    return key.substring(0, key.lastIndexOf('}')).stripTrailing()
        + ",\n  \"currentProof\": {\n    \"holds\": "
        + proof.holds()
        + ",\n    \"needed\": "
        + proof.needed()
        + ",\n    \"holders\": "
        + proof.holders()
        + ",\n    \"confirming\": "
        + names(proof.confirming())
        + ",\n    \"undecided\": "
        + names(proof.undecided())
        + "\n  }\n}";
  }

  /** Names of the trust file, which have no character that JSON writes in another way. */
  private static String names(List<String> names) {
    return names.stream().map(name -> '"' + name + '"').collect(Collectors.joining(", ", "[", "]"));
  }

  private static void facts(PrintWriter out, Key answer, AttestedKey attested, String current) {
    row(out, "name", attested.name());
    row(out, "state", answer.getState().name());
    row(out, "scheme", Spelling.scheme(attested.scheme()));
    // Those who had the key before may have it still.
    row(out, "origin", attested.origin() == Key.Origin.IMPORTED ? "imported" : "");
    row(
        out,
        "threshold",
        attested.threshold()
            + " of "
            + attested.parties().size()
            + ": "
            + String.join(", ", attested.parties()));
    row(out, "public key", HexFormat.of().formatHex(attested.publicKey().toByteArray()));
    row(out, "xpub", attested.xpub().orElse(""));
    row(out, "fingerprint", KeyFingerprint.text(attested.fingerprint()));
    row(out, "epoch", Integer.toString(attested.epoch()));
    row(
        out,
        "reshared",
        attested.reshareEpoch() == 0 ? "" : "epoch " + attested.reshareEpoch() + " was the last");
    row(out, "current", current);
    row(out, "created", time(answer.getCreateTime()));
    row(out, "request id", answer.getRequestId());
  }

  /** Prints the public key of a child: in words alone, in JSON with what it is of. */
  public void child(PrintWriter out, String name, String path, ByteString publicKey) {
    if (format == Format.JSON) {
      String bytes = Base64.getEncoder().encodeToString(publicKey.toByteArray());
      json(out, texts("name", name, "path", path, "publicKey", bytes));
    } else {
      out.println(HexFormat.of().formatHex(publicKey.toByteArray()));
    }
  }

  /** Prints an address: in words alone, in JSON with what it is of. */
  public void address(PrintWriter out, String name, String path, String address) {
    if (!json(out, texts("name", name, "path", path, "address", address))) {
      out.println(address);
    }
  }

  /** A failure of a command as one line: in JSON if results are asked for so. */
  public static String failure(CommandSpec command, Throwable failure, CliException known) {
    OptionSpec form = command.findOption("--output");
    boolean inJson = form != null && form.getValue() == Format.JSON;
    return failure(inJson, known, StatusErrors.reason(failure).map(Enum::name).orElse(""));
  }

  /** A failure of one part of a command that goes on with the others, in the same form. */
  public String failure(CliException known) {
    return failure(format == Format.JSON, known, "");
  }

  private static String failure(boolean inJson, CliException known, String reason) {
    if (!inJson) {
      return "coterie: " + oneLine(known.getMessage());
    }
    Struct error = texts("error", known.getMessage(), "reason", reason);
    if (!known.refusals().isEmpty()) {
      ListValue.Builder refused = ListValue.newBuilder();
      known.refusals().forEach(refusal -> refused.addValues(refusal.json()));
      Value all = Value.newBuilder().setListValue(refused).build();
      error = error.toBuilder().putFields("refused", all).build();
    }
    try {
      return Terminal.printableJson(
          JsonFormat.printer().omittingInsignificantWhitespace().print(error));
    } catch (InvalidProtocolBufferException e) {
      return "coterie: " + oneLine(known.getMessage());
    }
  }

  /** Fields and their texts by turns, without empty ones. */
  private static Struct texts(String... fields) {
    Struct.Builder all = Struct.newBuilder();
    for (int i = 0; i < fields.length; i += 2) {
      if (!fields[i + 1].isEmpty()) {
        all.putFields(fields[i], Value.newBuilder().setStringValue(fields[i + 1]).build());
      }
    }
    return all.build();
  }

  /** Prints a key that is not active: the state, and nothing that only parties can say. */
  public void keyState(PrintWriter out, String name, Key answer) {
    Key state = stateOnly(name, answer);
    if (json(out, state)) {
      return;
    }
    row(out, "name", name);
    row(out, "state", state.getState().name());
    row(out, "created", time(state.getCreateTime()));
    row(out, "request id", state.getRequestId());
    if (state.hasError()) {
      row(out, "error", state.getError().getMessage());
    }
  }

  /** Text of a time; empty if it is no valid one, because nobody has signed it. */
  private static String time(Timestamp time) {
    return Timestamps.isValid(time) ? Timestamps.toString(time) : "";
  }

  /** An answer without the facts of a key. */
  public static Key stateOnly(String name, Key answer) {
    Key.Builder state =
        Key.newBuilder()
            .setName(name)
            .setStateValue(answer.getStateValue()) // as sent: it may be a number without a name
            .setRequestId(answer.getRequestId());
    if (answer.hasCreateTime()) {
      state.setCreateTime(answer.getCreateTime());
    }
    if (answer.hasError()) {
      state.setError(withoutDetails(answer.getError()));
    }
    return state.build();
  }

  /** The details have no JSON form here: their types are not known. */
  public static Status withoutDetails(Status error) {
    return error.toBuilder().clearDetails().build();
  }

  /**
   * Prints a signing.
   *
   * @param signedPayload the payload with its signature in it, if its kind has such a form
   */
  public void signing(PrintWriter out, Signing signing, Optional<String> signedPayload) {
    if (format == Format.JSON) {
      json(out, withField(signing, "signedPayload", signedPayload));
      return;
    }
    row(out, "name", signing.getName());
    row(out, "state", signing.getState().name());
    row(out, "scheme", Spelling.scheme(signing.getScheme()));
    row(out, "signature", HexFormat.of().formatHex(signing.getSignature().toByteArray()));
    if (signing.hasRecoveryId()) {
      row(out, "recovery id", Integer.toString(signing.getRecoveryId()));
    }
    row(out, "der", HexFormat.of().formatHex(signing.getDerSignature().toByteArray()));
    row(out, "digest", HexFormat.of().formatHex(signing.getDigest().toByteArray()));
    row(out, "public key", HexFormat.of().formatHex(signing.getPublicKey().toByteArray()));
    row(out, "signed by", String.join(", ", signing.getSigningSetList()));
    row(out, "request id", signing.getRequestId());
    row(out, "payload", signing.getDecoded().getKind());
    for (DecodedField field : signing.getDecoded().getFieldsList()) {
      row(out, "", field.getName() + ": " + field.getValue());
    }
    signedPayload.ifPresent(payload -> row(out, "result", payload));
    if (signing.hasError()) {
      row(out, "error", signing.getError().getMessage());
    }
  }

  /** The JSON form of a message with a field that only this command knows. */
  private static MessageOrBuilder withField(Signing signing, String name, Optional<String> value) {
    if (value.isEmpty()) {
      return signing;
    }
    Struct.Builder all = Struct.newBuilder();
    try {
      JsonFormat.parser().merge(jsonForm(signing), all);
    } catch (InvalidProtocolBufferException e) {
      throw new CliException(ExitCode.BUG, "the answer has no JSON form: " + e.getMessage());
    }
    return all.putFields(name, Value.newBuilder().setStringValue(value.get()).build());
  }

  /** Prints {@code message} and says true if JSON is asked for. */
  public boolean json(PrintWriter out, MessageOrBuilder message) {
    if (format != Format.JSON) {
      return false;
    }
    out.println(jsonForm(message));
    return true;
  }

  private static String jsonForm(MessageOrBuilder message) {
    try {
      return Terminal.printableJson(JsonFormat.printer().print(message));
    } catch (InvalidProtocolBufferException e) {
      throw new CliException(ExitCode.BUG, "the answer has no JSON form: " + e.getMessage());
    } catch (IllegalArgumentException e) {
      throw new CliException(
          ExitCode.REFUSED,
          "the answer has no JSON form, since a time in it is none. Show it to the operators of the"
              + " coordinator; -o text leaves such times out.");
    }
  }

  /** Prints a line of a result, if there is something to say. */
  public static void row(PrintWriter out, String label, String value) {
    if (!value.isEmpty()) {
      out.printf("%-11s %s%n", label, oneLine(value));
    }
  }

  /** Text of others cannot pose as a further line of this command. */
  public static String oneLine(String text) {
    return text.replace("\r", "\\r").replace("\n", "\\n");
  }
}
