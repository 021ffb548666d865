package io.coterie.channel.link;

import io.coterie.trust.Member;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.InvalidKeyException;

/**
 * A member as the messaging service is asked about it.
 *
 * @param identity the identity key that the roster pins
 * @param accessKey see {@link Messaging#accessKey}
 */
public record Recipient(Member member, IdentityKey identity, byte[] accessKey) {
  /**
   * A recipient from its entry in the roster.
   *
   * @throws IllegalArgumentException when the pinned identity key is not readable
   */
  public static Recipient of(Member member) {
    byte[] key = member.identityKey();
    try {
      return new Recipient(member, new IdentityKey(key), Messaging.accessKey(key));
    } catch (InvalidKeyException e) {
      throw new IllegalArgumentException(member.name() + ": identityKey is not a public key", e);
    }
  }
}
