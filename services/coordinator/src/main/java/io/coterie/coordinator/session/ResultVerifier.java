package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;

/**
 * Checks the results of one scheme with an implementation other than the one that made them.
 * Thread-safe; blocks for the time of the computation.
 */
public interface ResultVerifier {

  /**
   * Whether a signature is valid under the public key, and its recovery id, if the scheme has one,
   * leads to that key. Malformed input is not valid.
   *
   * @param payload input of the scheme: the message, or a digest
   */
  boolean verifies(ByteString publicKey, ByteString payload, Signature signature);

  /**
   * Whether the public data of a key is what it claims: valid points, the proofs that the scheme
   * has, and verification shares that lie on one polynomial of degree threshold - 1 through the
   * public key, so that any threshold parties can sign.
   */
  boolean isSound(KeyPublic key);
}
