package io.coterie.cli.intent;

import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.payload.PayloadOptions;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/** The fields that intents of every kind have. */
public final class IntentOptions {

  private static final Duration DRAWN_AGO = Duration.ofSeconds(1);

  @Option(
      names = "--request-id",
      paramLabel = "UUID",
      description =
          "Idempotency key, of version 7; a fresh one by default. The same one with the same other"
              + " options repeats the request, and gets its answer.")
  @Nullable String requestId;

  private @Nullable String fresh;

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
      description =
          "How long after the time of its request id the signers may start it, a day at most;"
              + " default ${DEFAULT-VALUE}.")
  int expiresInSeconds = 300;

  /** Whether a request id was given: a request of that id may have been sent before. */
  public boolean hasRequestId() {
    return requestId != null;
  }

  /** The request id that was given, or a fresh one that stays the same. */
  public String requestId() {
    if (requestId == null) {
      fresh = Objects.requireNonNullElseGet(fresh, IntentOptions::newRequestId);
      return fresh;
    }
    if (!RequestId.isOne(requestId)) {
      throw CliException.local(
          "--request-id is not a lower-case UUID of version 7; 'uuidgen --time-v7' makes one");
    }
    return requestId;
  }

  /** The purpose that was given, or none. */
  public String purpose() {
    return purpose;
  }

  /**
   * A new request id. It is of a moment ago, so that a clock that is a little ahead matters not.
   */
  public static String newRequestId() {
    return RequestId.at(Instant.now().minus(DRAWN_AGO));
  }

  /**
   * The time after which no signer starts the intent. It is counted from the request id, and so the
   * same for a request that is repeated with the same id and options, whenever that is. The intent
   * to sign is the same one only if it also names the reshare epoch of the first time: {@code sign}
   * demands that number beside a request id.
   *
   * @throws CliException if it is too far ahead for signers
   */
  public Timestamp notAfter() {
    long most = VerifiedIntent.MAX_LIFE.toSeconds();
    if (expiresInSeconds < 1 || expiresInSeconds > most) {
      throw CliException.local(
          "--expires-in is 1 to "
              + most
              + " seconds: no signer starts an intent that is good for longer");
    }
    Instant drawn = RequestId.time(requestId());
    Instant end = drawn.plus(DRAWN_AGO).plusSeconds(expiresInSeconds);
    Instant last = drawn.plus(VerifiedIntent.MAX_LIFE);
    if (end.isAfter(last)) {
      end = last;
    }
    return Timestamps.fromMillis(end.toEpochMilli());
  }

  /** An intent to sign. Its payload is decoded here first, so that mistakes show at once. */
  public SigningIntent signing(String key, PayloadOptions payload, CommandLine command) {
    SigningIntent intent =
        payload
            .into(SigningIntent.newBuilder(), command)
            .setRequestId(requestId())
            .setKey(Spelling.keyName(key))
            .setPurpose(purpose)
            .setNotAfter(notAfter())
            .build();
    SignedPayload.check(intent);
    return intent;
  }
}
