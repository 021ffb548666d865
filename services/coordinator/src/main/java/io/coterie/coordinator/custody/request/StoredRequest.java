package io.coterie.coordinator.custody.request;

import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.SignedIntent;

/** A request as the database keeps it. The requester and the request id name it. */
public interface StoredRequest {
  /** Name of the resource that it makes or changes. */
  String resource();

  /** Name of the requester that signed the intent. */
  String requester();

  /** UUID, lower case. */
  String requestId();

  /** SHA-256 of the intent's payload. */
  ByteString intentDigest();

  /** The intent as it was received. */
  SignedIntent intent();
}
