package io.coterie.acceptance.cluster;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;

/**
 * Signs intents as a requester, and fills in what they do not say of the installation and the key.
 * Thread-safe.
 */
public final class NamedIntents {
  private static final ByteString NONE =
      ByteString.copyFrom(new byte[IntentVerifier.FINGERPRINT_BYTES]);

  private final IntentSigner signer;
  private final String installation;
  private final Function<String, Optional<ByteString>> fingerprints;
  private final Function<String, Integer> reshares;
  private final ConcurrentMap<String, ByteString> known = new ConcurrentHashMap<>();

  /**
   * @param fingerprints of a key by its resource name; asked until there is one
   * @param reshares epoch that the last known reshare of a key made; asked each time
   */
  NamedIntents(
      IntentSigner signer,
      String installation,
      Function<String, Optional<ByteString>> fingerprints,
      Function<String, Integer> reshares) {
    this.signer = signer;
    this.installation = installation;
    this.fingerprints = fingerprints;
    this.reshares = reshares;
  }

  private String installation(String said) {
    return said.isEmpty() ? installation : said;
  }

  private ByteString fingerprint(ByteString said, String key) {
    if (!said.isEmpty()) {
      return said;
    }
    ByteString found = known.get(key);
    if (found == null) {
      Optional<ByteString> now = fingerprints.apply(key);
      now.ifPresent(fingerprint -> known.put(key, fingerprint));
      found = now.orElse(NONE);
    }
    return found;
  }

  public SignedIntent sign(SigningIntent intent) {
    return signer.sign(
        intent.toBuilder()
            .setInstallation(installation(intent.getInstallation()))
            .setKeyFingerprint(fingerprint(intent.getKeyFingerprint(), intent.getKey()))
            .setReshareEpoch(reshares.apply(intent.getKey()))
            .build());
  }

  public SignedIntent sign(RefreshIntent intent) {
    return signer.sign(
        intent.toBuilder()
            .setInstallation(installation(intent.getInstallation()))
            .setKeyFingerprint(fingerprint(intent.getKeyFingerprint(), intent.getKey()))
            .build());
  }

  public SignedIntent sign(GroupIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }

  public SignedIntent sign(KeyIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }

  public SignedIntent sign(ImportIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }

  public SignedIntent sign(ReshareIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }
}
