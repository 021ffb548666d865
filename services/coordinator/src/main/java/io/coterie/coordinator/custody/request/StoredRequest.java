package io.coterie.coordinator.custody.request;

import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.SignedIntent;
import java.time.Instant;

/** A request as the database keeps it. The requester and the request id name it. */
public interface StoredRequest {
  /** The part that every kind of request has. */
  RequestHeader header();

  /** Name of the resource that it makes or changes. */
  String resource();

  /** See {@link RequestHeader#requester}. */
  default String requester() {
    return header().requester();
  }

  /** See {@link RequestHeader#requestId}. */
  default String requestId() {
    return header().requestId();
  }

  /** See {@link RequestHeader#intentDigest}. */
  default ByteString intentDigest() {
    return header().intentDigest();
  }

  /** See {@link RequestHeader#intent}. */
  default SignedIntent intent() {
    return header().intent();
  }

  /** See {@link RequestHeader#notAfter}. */
  default Instant notAfter() {
    return header().notAfter();
  }

  /** See {@link RequestHeader#createdAt}. */
  default Instant createdAt() {
    return header().createdAt();
  }
}
