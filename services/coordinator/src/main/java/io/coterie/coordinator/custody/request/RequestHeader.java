package io.coterie.coordinator.custody.request;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import java.time.Instant;

/**
 * The part of a stored request that every kind has: requester, intent and times.
 *
 * @param requester name of the requester that signed the intent
 * @param requestId UUID, lower case
 * @param intentDigest SHA-256 of the intent's payload
 * @param intent as it was received
 * @param notAfter end of the intent
 * @param createdAt when the request was first received, in microseconds
 */
public record RequestHeader(
    String requester,
    String requestId,
    ByteString intentDigest,
    SignedIntent intent,
    Instant notAfter,
    Instant createdAt) {

  /** The header of a request that was received now. */
  public static RequestHeader of(VerifiedIntent intent, Instant now) {
    return new RequestHeader(
        intent.requester(),
        intent.requestId(),
        intent.digest(),
        intent.envelope(),
        intent.notAfter(),
        now);
  }
}
