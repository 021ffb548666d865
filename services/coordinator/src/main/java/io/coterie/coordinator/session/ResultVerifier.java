package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;

/**
 * Checks results with an implementation other than the one that made them. Thread-safe; blocks for
 * the time of the computation.
 */
public interface ResultVerifier {

  /**
   * Whether a signature in the scheme's standard encoding is valid under the public key. Malformed
   * input is not valid.
   */
  boolean verifies(Scheme scheme, ByteString publicKey, ByteString message, ByteString signature);

  /**
   * Whether the public data of a new key is what it claims: valid points, a proof of possession
   * that holds, and verification shares that lie on one polynomial of degree threshold - 1 through
   * the public key, so that any threshold parties can sign.
   */
  boolean isSound(Scheme scheme, KeyPublic key);
}
