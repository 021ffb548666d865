package io.coterie.cli;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.util.JsonFormat;
import com.google.protobuf.util.Timestamps;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import java.io.PrintWriter;
import java.util.HexFormat;
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
    row(out, "epoch", Integer.toString(key.getEpoch()));
    row(out, "created", Timestamps.toString(key.getCreateTime()));
    row(out, "request id", key.getRequestId());
    if (key.hasError()) {
      row(out, "error", key.getError().getMessage());
    }
  }

  void signing(PrintWriter out, Signing signing) {
    if (json(out, signing)) {
      return;
    }
    row(out, "name", signing.getName());
    row(out, "state", signing.getState().name());
    row(out, "scheme", scheme(signing.getScheme().name()));
    row(out, "signature", HexFormat.of().formatHex(signing.getSignature().toByteArray()));
    row(out, "signed by", String.join(", ", signing.getSigningSetList()));
    row(out, "request id", signing.getRequestId());
    if (signing.hasError()) {
      row(out, "error", signing.getError().getMessage());
    }
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
    return name.replaceFirst("^SCHEME_", "").toLowerCase(java.util.Locale.ROOT);
  }

  static void row(PrintWriter out, String label, String value) {
    if (!value.isEmpty()) {
      out.printf("%-11s %s%n", label, value);
    }
  }
}
