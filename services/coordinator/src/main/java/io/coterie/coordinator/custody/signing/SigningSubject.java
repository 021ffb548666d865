package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.session.ToSign;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.protocol.ExactProtocol;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.DecodedPayload;
import io.coterie.proto.custody.v1.Scheme;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The payload that an intent asks to be signed, and the key that is to sign.
 *
 * @param approvals of the intent, as they were received
 * @param digest input of the scheme, 32 bytes, if that is a digest
 * @param decoded fields of the payload
 */
record SigningSubject(
    ToSign toSign,
    List<ByteString> approvals,
    @Nullable ByteString digest,
    DecodedPayload decoded) {

  /**
   * Decodes the payload of an intent.
   *
   * @param key ACTIVE
   * @throws CustodyException saying what is wrong with the payload
   */
  static SigningSubject of(
      VerifiedIntent.Signing intent, List<ByteString> approvals, KeyRecord key) {
    KeyTarget target = intent.target();
    ByteString publicKey = publicKey(key, target);
    io.coterie.platform.payload.DecodedPayload decoded;
    try {
      decoded = Payloads.decode(intent.intent(), publicKey);
    } catch (IntentException e) {
      throw e.toCustodyException();
    }
    return new SigningSubject(
        new ToSign(decoded.toSign(), publicKey, target),
        approvals,
        SchemeKeys.of(key.scheme()).signsDigests() ? decoded.toSign() : null,
        decoded.toProto());
  }

  /**
   * The work of a session.
   *
   * @param keyPublic of the key itself
   * @param presignature to use; null: without
   */
  SessionPlan.Work.Sign work(KeyPublic keyPublic, @Nullable ByteString presignature) {
    return new SessionPlan.Work.Sign(toSign, keyPublic, presignature, approvals);
  }

  /** Blocks of the message, if a presignature is for messages of that length alone; else 0. */
  int messageBlocks(Scheme scheme) {
    boolean ofPairs = Protocol.of(scheme, Operation.SIGN).filter(Protocol::isOfPairs).isPresent();
    return ofPairs ? ExactProtocol.blocks(toSign.payload().size()) : 0;
  }

  private static ByteString publicKey(KeyRecord key, KeyTarget target) {
    try {
      return SchemeKeys.of(key.scheme())
          .verifyingKey(Objects.requireNonNull(key.keyPublic()), target);
    } catch (IllegalArgumentException e) {
      // The key's own data were checked when it was made, and the target with the intent.
      throw Failure.of(ErrorReason.PAYLOAD_INVALID, key.name()).toException();
    }
  }
}
