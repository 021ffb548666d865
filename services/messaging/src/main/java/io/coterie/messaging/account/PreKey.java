package io.coterie.messaging.account;

import org.jspecify.annotations.Nullable;

/**
 * A public prekey.
 *
 * @param keyId chosen by the client
 * @param publicKey serialised as libsignal does: with its type byte
 * @param signature 64 bytes, by the identity key; absent on one-time EC keys
 */
public record PreKey(long keyId, byte[] publicKey, byte @Nullable [] signature) {

  /** The purpose of a prekey, in the order of the numbers in the database. */
  public enum Kind {
    EC,
    KEM
  }
}
