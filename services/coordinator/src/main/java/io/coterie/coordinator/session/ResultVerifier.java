package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import java.util.List;

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
   * Bytes that somebody takes for a signature.
   *
   * @param payload as in {@link ResultVerifier#verifies}
   */
  record Claim(ByteString publicKey, ByteString payload, Signature signature) {
    /** Leaves the payload out, which belongs to the requester and not into logs. */
    @Override
    public String toString() {
      return "Claim[" + signature + "]";
    }
  }

  /** Whether {@link #verifiesAll} costs less than one check after another. */
  default boolean verifiesTogether() {
    return false;
  }

  /**
   * Whether every one of several signatures is valid, as {@link #verifies} says of one. A list with
   * one that is not passes with a chance of 2^-127 at most, whoever made it.
   *
   * @param claims at least one
   */
  default boolean verifiesAll(List<Claim> claims) {
    return claims.stream()
        .allMatch(claim -> verifies(claim.publicKey, claim.payload, claim.signature));
  }

  /**
   * Whether the public data of a key is what it claims: valid points, the proofs that the scheme
   * has, and verification shares that lie on one polynomial of degree threshold - 1 through the
   * public key, so that any threshold parties can sign.
   */
  boolean isSound(KeyPublic key);
}
