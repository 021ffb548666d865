package io.coterie.simulation;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.coordinator.session.ToSign;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;

/** A wish of the requester for a signature. */
record SigningRequest(String id, SimulatedKey key, SignedIntent intent, Ordered.Cause cause) {
  /** The request in the form that the core of the coordinator takes. */
  ToSign toSign(KeyPublic current) {
    try {
      SigningIntent signing = SigningIntent.parseFrom(intent.getPayload());
      return new ToSign(
          signing.hasDigest() ? signing.getDigest() : signing.getMessage(),
          SchemeKeys.of(key.scheme).verifyingKey(current, KeyTarget.SELF),
          KeyTarget.SELF);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }
}
