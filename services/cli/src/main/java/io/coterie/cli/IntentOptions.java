package io.coterie.cli;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What every intent says besides what is to be done. */
final class IntentOptions {

  @Option(
      names = "--request-id",
      paramLabel = "UUID",
      description = "Idempotency key; a fresh one by default. Repeating it repeats the answer.")
  @Nullable String requestId;

  @Option(
      names = "--purpose",
      paramLabel = "TEXT",
      defaultValue = "",
      description = "For people and for policy, at most 256 characters.")
  String purpose = "";

  @Option(
      names = "--expires-in",
      paramLabel = "SECONDS",
      defaultValue = "300",
      description = "How long the signers may start it; default ${DEFAULT-VALUE}.")
  int expiresInSeconds = 300;

  String requestId() {
    if (requestId == null) {
      requestId = UUID.randomUUID().toString();
    }
    return requestId;
  }

  Timestamp notAfter() {
    return Timestamps.fromMillis(System.currentTimeMillis() + expiresInSeconds * 1000L);
  }

  /** The message of a signature: exactly one form. */
  static final class Payload {
    private static final int MAX_BYTES = 64 * 1024;

    @Option(
        names = {"-m", "--message"},
        paramLabel = "TEXT",
        description = "The message, as UTF-8.")
    @Nullable String text;

    @Option(names = "--message-hex", paramLabel = "HEX", description = "The message, as hex.")
    @Nullable String hex;

    @Option(
        names = {"-f", "--message-file"},
        paramLabel = "FILE",
        description = "The message, at most 64 KiB.")
    @Nullable Path file;

    byte[] bytes() {
      byte[] bytes;
      if (text != null) {
        bytes = text.getBytes(StandardCharsets.UTF_8);
      } else if (hex != null) {
        bytes = parseHex("--message-hex", hex);
      } else {
        Path path = file == null ? Path.of("") : file;
        try {
          bytes = Files.readAllBytes(path);
        } catch (IOException e) {
          throw CliException.local("message file " + path + " cannot be read");
        }
      }
      if (bytes.length > MAX_BYTES) {
        throw CliException.local(
            "the message has " + bytes.length + " bytes, more than " + MAX_BYTES);
      }
      return bytes;
    }
  }

  SigningIntent signing(String key, String scheme, Payload payload) {
    return SigningIntent.newBuilder()
        .setRequestId(requestId())
        .setKey(keyName(key))
        .setScheme(parseScheme(scheme))
        .setMessage(ByteString.copyFrom(payload.bytes()))
        .setPurpose(purpose)
        .setNotAfter(notAfter())
        .build();
  }

  /** {@code treasury} and {@code keys/treasury} mean the same key. */
  static String keyName(String key) {
    return key.startsWith("keys/") ? key : "keys/" + key;
  }

  static Scheme parseScheme(String scheme) {
    try {
      return Scheme.valueOf("SCHEME_" + scheme.toUpperCase(java.util.Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw CliException.local("scheme '" + scheme + "' is not known; there is: bls12381");
    }
  }

  static byte[] parseHex(String what, String hex) {
    try {
      return HexFormat.of().parseHex(hex.strip());
    } catch (IllegalArgumentException e) {
      throw CliException.local(what + " is not hex");
    }
  }
}
