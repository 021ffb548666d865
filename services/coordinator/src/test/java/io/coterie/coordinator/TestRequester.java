package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.attestation.Holding;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.security.PrivateKey;

/** Signs intents as a requester, and fills in the installation and the key's fingerprint. */
final class TestRequester {
  private final TestInstallation installation;
  private final IntentSigner signer;

  TestRequester(TestInstallation installation, String name, PrivateKey key) {
    this.installation = installation;
    this.signer = new IntentSigner(name, key);
  }

  /** As the database has it; some bytes if it has no such key. */
  private ByteString fingerprint(ByteString said, String key) {
    return said.isEmpty()
        ? installation
            .attestation(key)
            .map(TestRequester::fingerprint)
            .orElse(ByteString.copyFrom(new byte[IntentVerifier.FINGERPRINT_BYTES]))
        : said;
  }

  private static ByteString fingerprint(Attestation attestation) {
    try {
      return KeyFingerprint.of(KeyPublic.parseFrom(attestation.getCompletions(0).getKeyPublic()));
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  /** As the database has it. */
  private int reshareEpoch(int said, String key) {
    return said == 0 ? installation.attestation(key).map(Holding::reshareEpoch).orElse(0) : said;
  }

  private static String installation(String said) {
    return said.isEmpty() ? "test" : said;
  }

  SignedIntent sign(SigningIntent intent) {
    return signer.sign(
        intent.toBuilder()
            .setInstallation(installation(intent.getInstallation()))
            .setKeyFingerprint(fingerprint(intent.getKeyFingerprint(), intent.getKey()))
            .setReshareEpoch(reshareEpoch(intent.getReshareEpoch(), intent.getKey()))
            .build());
  }

  /** Its reshare epoch is the one that it says, also 0. */
  SignedIntent sign(CancelIntent intent) {
    return signer.sign(
        intent.toBuilder()
            .setInstallation(installation(intent.getInstallation()))
            .setKeyFingerprint(fingerprint(intent.getKeyFingerprint(), intent.getKey()))
            .build());
  }

  SignedIntent sign(GroupIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }

  SignedIntent sign(OpeningIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }

  SignedIntent sign(TicketIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }

  SignedIntent sign(RefreshIntent intent) {
    return signer.sign(
        intent.toBuilder()
            .setInstallation(installation(intent.getInstallation()))
            .setKeyFingerprint(fingerprint(intent.getKeyFingerprint(), intent.getKey()))
            .build());
  }

  SignedIntent sign(KeyIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }

  SignedIntent sign(ReshareIntent intent) {
    return signer.sign(
        intent.toBuilder().setInstallation(installation(intent.getInstallation())).build());
  }
}
