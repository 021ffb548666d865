package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.KeyTarget;

/**
 * The payload to be signed, and the key that will verify the signature.
 *
 * @param payload input of the scheme: the message, or a digest of 32 bytes
 * @param publicKey of the target, in the scheme's standard encoding
 * @param target which key signs
 */
public record ToSign(ByteString payload, ByteString publicKey, KeyTarget target) {
  /** Leaves the payload out, which belongs to the requester and not into logs. */
  @Override
  public String toString() {
    return "ToSign[" + target.pathText() + "]";
  }
}
