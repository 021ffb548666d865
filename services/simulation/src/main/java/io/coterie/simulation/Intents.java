package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** The wishes of the requester. */
final class Intents {
  /** Longer than any party lets the requester sign. */
  static final int TOO_LONG = 2048;

  private static final Duration LIFE = Duration.ofMinutes(5);

  private Intents() {}

  static Timestamp timestamp(Instant at) {
    return Timestamp.newBuilder().setSeconds(at.getEpochSecond()).setNanos(at.getNano()).build();
  }

  static KeyIntent key(String request, String key, Scheme scheme, Setting setting, Instant now) {
    List<String> parties = new ArrayList<>();
    for (int id = 1; id <= setting.parties(); id++) {
      parties.add(Identities.party(id));
    }
    return KeyIntent.newBuilder()
        .setInstallation(Identities.INSTALLATION)
        .setRequestId(request)
        .setKey(key)
        .setScheme(scheme)
        .setThreshold(setting.threshold())
        .addAllParties(parties)
        .setNotAfter(timestamp(now.plus(LIFE)))
        .build();
  }

  static RefreshIntent refresh(String request, KeyPublic key, Scheme scheme, Instant now) {
    return RefreshIntent.newBuilder()
        .setInstallation(Identities.INSTALLATION)
        .setRequestId(request)
        .setKey(key.getKeyId())
        .setKeyFingerprint(KeyFingerprint.of(key))
        .setScheme(scheme)
        .setEpoch(key.getEpoch())
        .setNotAfter(timestamp(now.plus(LIFE)))
        .build();
  }

  /**
   * @param parties ids of those that will hold a share
   */
  static ReshareIntent reshare(
      String request,
      KeyPublic key,
      Scheme scheme,
      int threshold,
      List<Integer> parties,
      Instant now) {
    return ReshareIntent.newBuilder()
        .setInstallation(Identities.INSTALLATION)
        .setRequestId(request)
        .setKey(key.getKeyId())
        .setScheme(scheme)
        .setEpoch(key.getEpoch())
        .setThreshold(threshold)
        .addAllParties(parties.stream().map(Identities::party).toList())
        .setPublicKey(key.getPublicKey())
        .setNotAfter(timestamp(now.plus(LIFE)))
        .build();
  }

  /**
   * @param signing the request that is cancelled
   */
  static CancelIntent cancel(SignedIntent signing, Instant notAfter) {
    try {
      SigningIntent request = SigningIntent.parseFrom(signing.getPayload());
      return CancelIntent.newBuilder()
          .setInstallation(Identities.INSTALLATION)
          .setRequestId(request.getRequestId())
          .setKey(request.getKey())
          .setKeyFingerprint(request.getKeyFingerprint())
          .setReshareEpoch(request.getReshareEpoch())
          .setScheme(request.getScheme())
          .setNotAfter(timestamp(notAfter))
          .build();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  static SigningIntent signing(
      String request, KeyPublic key, int reshareEpoch, Scheme scheme, byte[] payload, Instant now) {
    return signing(request, key, reshareEpoch, scheme, payload, LIFE, now);
  }

  /**
   * @param payload a message; hashed for a key that signs digests
   */
  static SigningIntent signing(
      String request,
      KeyPublic key,
      int reshareEpoch,
      Scheme scheme,
      byte[] payload,
      Duration life,
      Instant now) {
    SigningIntent.Builder intent =
        SigningIntent.newBuilder()
            .setInstallation(Identities.INSTALLATION)
            .setRequestId(request)
            .setKey(key.getKeyId())
            .setKeyFingerprint(KeyFingerprint.of(key))
            .setReshareEpoch(reshareEpoch)
            .setScheme(scheme)
            .setNotAfter(timestamp(now.plus(life)));
    if (!SchemeKeys.of(scheme).signsDigests()) {
      // Text, and not of 32 bytes: an Ed25519 message that may be a transaction or its hash is
      // refused.
      intent.setMessage(ByteString.copyFromUtf8("pay " + HexFormat.of().formatHex(payload)));
    } else {
      intent.setDigest(ByteString.copyFrom(Identities.hash(payload)));
    }
    return intent.build();
  }
}
