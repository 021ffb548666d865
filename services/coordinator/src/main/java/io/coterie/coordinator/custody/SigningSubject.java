package io.coterie.coordinator.custody;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.ToSign;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.payload.Payloads;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.DecodedPayload;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What an intent asks to be signed, under which key.
 *
 * @param digest what the scheme signs, 32 bytes, if that is a digest
 * @param decoded what the payload says
 */
record SigningSubject(ToSign toSign, @Nullable ByteString digest, DecodedPayload decoded) {

  /**
   * Decodes the payload of an intent.
   *
   * @param key ACTIVE
   * @throws CustodyException saying what is wrong with the payload
   */
  static SigningSubject of(VerifiedIntent.Signing intent, KeyRecord key) {
    ByteString publicKey =
        publicKey(Objects.requireNonNull(key.keyPublic()), intent.derivationPath(), key.name());
    io.coterie.platform.payload.DecodedPayload decoded;
    try {
      decoded = Payloads.decode(intent.intent(), publicKey);
    } catch (IntentException e) {
      throw e.toCustodyException();
    }
    return new SigningSubject(
        new ToSign(decoded.toSign(), publicKey, intent.derivationPath()),
        decoded.kind() == PayloadKind.MESSAGE ? null : decoded.toSign(),
        decoded.toProto());
  }

  private static ByteString publicKey(KeyPublic key, List<Integer> path, String name) {
    if (path.isEmpty()) {
      return key.getPublicKey();
    }
    try {
      return ExtendedPublicKey.of(key.getPublicKey(), key.getChainCode()).derive(path).publicKey();
    } catch (IllegalArgumentException e) {
      // The key's own data were checked when it was made.
      throw Trouble.of(ErrorReason.PAYLOAD_INVALID, name).toException();
    }
  }
}
