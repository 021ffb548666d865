package io.coterie.coordinator.api;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.signing.CancelledSigning;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Records as resources of the API, and their names. */
final class Resources {
  private static final Pattern SIGNING =
      Pattern.compile(
          "(keys/[a-z][a-z0-9-]{0,62})/signings/"
              + "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})");

  /** Microseconds since 1970, below the year 10,000. */
  private static final Pattern PLACE = Pattern.compile(SIGNING + "@(0|[1-9][0-9]{0,17})");

  private static final long MICROS = 1_000_000;
  private static final int NANOS_PER_MICRO = 1000;

  /** Characters of a name shown in an error: the rest of a hostile one is nobody's business. */
  private static final int SHOWN = 80;

  private static final byte DER_SEQUENCE = 0x30;
  private static final byte DER_INTEGER = 0x02;

  private Resources() {}

  /** The parts of a signing's name. */
  record SigningName(String key, UUID id) {
    static SigningName parse(String name) {
      Matcher matcher = SIGNING.matcher(name);
      if (!matcher.matches()) {
        throw badName(name);
      }
      return new SigningName(matcher.group(1), UUID.fromString(matcher.group(2)));
    }
  }

  /** The place of a signing in the list of its key, as text: its name, and when it began. */
  static String place(Signing signing) {
    Timestamp began = signing.getCreateTime();
    long micros = began.getSeconds() * MICROS + began.getNanos() / NANOS_PER_MICRO;
    return signing.getName() + "@" + micros;
  }

  static boolean isPlace(String text) {
    return PLACE.matcher(text).matches();
  }

  /** The place that {@link #place} wrote. */
  static SigningStore.Place parsePlace(String text) {
    int at = text.indexOf('@');
    long micros = Long.parseLong(text.substring(at + 1));
    return new SigningStore.Place(
        Instant.EPOCH.plus(micros, ChronoUnit.MICROS),
        SigningName.parse(text.substring(0, at)).id());
  }

  static String keyName(String name) {
    if (!IntentVerifier.isKeyName(name)) {
      throw badName(name);
    }
    return name;
  }

  private static CustodyException badName(String name) {
    return new CustodyException(
        ErrorReason.RESOURCE_NAME_INVALID,
        Map.of(
            StatusErrors.RESOURCE,
            name.substring(0, Math.min(SHOWN, name.length())).replaceAll("[^ -~]", "?")));
  }

  static Key key(KeyRecord record) {
    Key.Builder key =
        Key.newBuilder()
            .setName(record.name())
            .setScheme(record.scheme())
            .setThreshold(record.threshold())
            .setState(record.state())
            .setCreateTime(timestamp(record.createdAt()))
            .setRequestId(record.requestId());
    record.parties().forEach(p -> key.addParties(p.name()));
    MadeKey made = record.made();
    if (made != null) {
      KeyPublic keyPublic = made.keyPublic();
      SchemeKeys keys = SchemeKeys.of(record.scheme());
      key.setPublicKey(keys.verifyingKey(keyPublic, KeyTarget.SELF))
          .setProofOfPossession(keyPublic.getProofOfPossession())
          .setEpoch(keyPublic.getEpoch())
          .setFingerprint(KeyFingerprint.of(keyPublic))
          .setAttestation(made.attestation())
          .setReshareEpoch(made.reshareEpoch())
          .setOrigin(made.origin());
      keys.xpub(keyPublic).ifPresent(key::setXpub);
    }
    if (record.error() != null) {
      key.setError(record.error());
    }
    return key.build();
  }

  static Signing signing(SigningRecord record) {
    Signing.Builder signing =
        Signing.newBuilder()
            .setName(record.name())
            .setRequestId(record.requestId())
            .setScheme(record.scheme())
            .setState(record.state())
            .setIntentDigest(record.intentDigest())
            .setDecoded(record.decoded())
            .addAllSigningSet(record.signingSet())
            .setCreateTime(timestamp(record.createdAt()))
            .setSessions(record.sessions())
            .addAllReceipts(record.receipts());
    if (record.payloadDigest() != null) {
      signing.setDigest(record.payloadDigest());
    }
    SigningRecord.Result result = record.result();
    if (result != null) {
      signing
          .setSignature(result.signature())
          .setPublicKey(result.publicKey())
          .setPresigned(result.presigned());
      if (result.recoveryId().isPresent()) {
        signing
            .setRecoveryId(result.recoveryId().getAsInt())
            .setDerSignature(der(result.signature()));
      }
    }
    if (record.completedAt() != null) {
      signing.setCompleteTime(timestamp(record.completedAt()));
    }
    if (record.error() != null) {
      signing.setError(record.error());
    }
    return signing.build();
  }

  /** The end of a cancelled signing; of one that is not stored nothing else is known. */
  static Signing signing(CancelledSigning ended) {
    Signing.Builder signing =
        ended.record() == null
            ? Signing.newBuilder()
                .setName(ended.name())
                .setRequestId(ended.intent().requestId())
                .setScheme(ended.intent().scheme())
            : signing(ended.record()).toBuilder();
    signing.setState(ended.state()).clearReceipts().addAllReceipts(ended.receipts()).clearError();
    if (ended.error() != null) {
      signing.setError(ended.error());
    }
    return signing.build();
  }

  /** The same signature, r and s of equal length, as an ASN.1 sequence (RFC 3279, 2.2.3). */
  private static ByteString der(ByteString signature) {
    int half = signature.size() / 2;
    ByteArrayOutputStream integers = new ByteArrayOutputStream();
    for (ByteString part : List.of(signature.substring(0, half), signature.substring(half))) {
      byte[] integer = new BigInteger(1, part.toByteArray()).toByteArray();
      integers.write(DER_INTEGER);
      integers.write(integer.length);
      integers.writeBytes(integer);
    }
    return ByteString.copyFrom(new byte[] {DER_SEQUENCE, (byte) integers.size()})
        .concat(ByteString.copyFrom(integers.toByteArray()));
  }

  private static Timestamp timestamp(Instant instant) {
    return Timestamp.newBuilder()
        .setSeconds(instant.getEpochSecond())
        .setNanos(instant.getNano())
        .build();
  }
}
