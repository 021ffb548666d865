package io.coterie.cli;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import com.google.protobuf.util.Timestamps;
import io.coterie.proto.custody.v1.DecodedField;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import java.io.PrintWriter;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Optional;
import picocli.CommandLine.Option;

/** How results are printed: for people, or as the JSON form of the API's messages. */
final class Output {
  enum Format {
    TEXT,
    JSON
  }

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FORMAT",
      defaultValue = "text",
      description = "text or json; default ${DEFAULT-VALUE}.")
  Format format = Format.TEXT;

  void key(PrintWriter out, Key key) {
    if (json(out, key)) {
      return;
    }
    row(out, "name", key.getName());
    row(out, "state", key.getState().name());
    row(out, "scheme", scheme(key.getScheme().name()));
    row(
        out,
        "threshold",
        key.getThreshold()
            + " of "
            + key.getPartiesCount()
            + ": "
            + String.join(", ", key.getPartiesList()));
    row(out, "public key", HexFormat.of().formatHex(key.getPublicKey().toByteArray()));
    row(out, "xpub", key.getXpub());
    row(out, "epoch", Integer.toString(key.getEpoch()));
    row(out, "created", Timestamps.toString(key.getCreateTime()));
    row(out, "request id", key.getRequestId());
    if (key.hasError()) {
      row(out, "error", key.getError().getMessage());
    }
  }

  /**
   * Prints a signing.
   *
   * @param signedPayload what {@link SignedPayload#signed} made of it
   */
  void signing(PrintWriter out, Signing signing, Optional<String> signedPayload) {
    if (format == Format.JSON) {
      json(out, withField(signing, "signedPayload", signedPayload));
      return;
    }
    row(out, "name", signing.getName());
    row(out, "state", signing.getState().name());
    row(out, "scheme", scheme(signing.getScheme().name()));
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
      JsonFormat.parser().merge(JsonFormat.printer().print(signing), all);
    } catch (InvalidProtocolBufferException e) {
      throw new CliException(Coterie.BUG, "the answer has no JSON form: " + e.getMessage());
    }
    return all.putFields(name, Value.newBuilder().setStringValue(value.get()).build());
  }

  /** Prints {@code message} and says true if JSON is asked for. */
  boolean json(PrintWriter out, MessageOrBuilder message) {
    if (format != Format.JSON) {
      return false;
    }
    try {
      out.println(JsonFormat.printer().print(message));
    } catch (InvalidProtocolBufferException e) {
      throw new CliException(Coterie.BUG, "the answer has no JSON form: " + e.getMessage());
    }
    return true;
  }

  static String scheme(String name) {
    return name.replaceFirst("^SCHEME_", "").toLowerCase(Locale.ROOT).replace('_', '-');
  }

  static void row(PrintWriter out, String label, String value) {
    if (!value.isEmpty()) {
      out.printf("%-11s %s%n", label, value);
    }
  }
}
