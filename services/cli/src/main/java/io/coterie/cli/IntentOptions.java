package io.coterie.cli;

import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Locale;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/** The fields that intents of every kind have. */
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
      description = "How long the signers may start it, a day at most; default ${DEFAULT-VALUE}.")
  int expiresInSeconds = 300;

  String requestId() {
    if (requestId == null) {
      requestId = UUID.randomUUID().toString();
    }
    return requestId;
  }

  Timestamp notAfter() {
    if (expiresInSeconds < 1 || expiresInSeconds > VerifiedIntent.MAX_AHEAD.toSeconds()) {
      throw CliException.local(
          "--expires-in is 1 to "
              + VerifiedIntent.MAX_AHEAD.toSeconds()
              + " seconds: no signer starts an intent that is good for longer");
    }
    return Timestamps.fromMillis(System.currentTimeMillis() + expiresInSeconds * 1000L);
  }

  /** An intent to sign. Its payload is decoded here first, so that mistakes show at once. */
  SigningIntent signing(String key, PayloadOptions payload, CommandLine command) {
    SigningIntent intent =
        payload
            .into(SigningIntent.newBuilder(), command)
            .setRequestId(requestId())
            .setKey(keyName(key))
            .setPurpose(purpose)
            .setNotAfter(notAfter())
            .build();
    SignedPayload.check(intent);
    return intent;
  }

  /** {@code treasury} and {@code keys/treasury} mean the same key. */
  static String keyName(String key) {
    return key.startsWith("keys/") ? key : "keys/" + key;
  }

  /** {@code ecdsa-secp256k1}, in either spelling of the dash, or without its curve. */
  static Scheme parseScheme(String scheme) {
    String name = scheme.toLowerCase(Locale.ROOT).replace('_', '-');
    return schemes()
        .filter(
            known -> {
              String whole = Output.scheme(known.name());
              return name.equals(whole) || name.equals(whole.replaceFirst("-.*", ""));
            })
        .findFirst()
        .orElseThrow(
            () ->
                CliException.local(
                    "scheme '"
                        + scheme
                        + "' is not known; there are: "
                        + schemes()
                            .map(known -> Output.scheme(known.name()))
                            .collect(Collectors.joining(", "))));
  }

  private static Stream<Scheme> schemes() {
    return Arrays.stream(Scheme.values())
        .filter(s -> s != Scheme.UNRECOGNIZED && s != Scheme.SCHEME_UNSPECIFIED);
  }

  static byte[] parseHex(String what, String hex) {
    try {
      return HexFormat.of().parseHex(hex.strip().replaceFirst("^0x", ""));
    } catch (IllegalArgumentException e) {
      throw CliException.local(what + " is not hex");
    }
  }
}
