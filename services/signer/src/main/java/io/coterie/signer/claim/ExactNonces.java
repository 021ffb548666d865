package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import java.util.concurrent.CompletionStage;

/**
 * The nonce points that this party has signed under with exact Ed25519, across all its peers. The
 * nonce is a function of key and message: neither a second point for one message nor a second
 * message for one point is ever answered. They outlive the shares of a key, which can be imported
 * again.
 */
public interface ExactNonces {

  /**
   * Records the nonce point of a message, unless there is one.
   *
   * @param publicKey 32 bytes
   * @param messageDigest SHA-512 of the message, 64 bytes
   * @param noncePoint that the pair has just opened, 32 bytes
   * @param account for whose disk it counts
   * @return completes when a point is on disk: this one, or the one that was there, with which the
   *     answer is begun. Fails if another message of the key has this point: nothing is answered
   *     then
   */
  CompletionStage<ByteString> settle(
      ByteString publicKey, ByteString messageDigest, ByteString noncePoint, String account);
}
