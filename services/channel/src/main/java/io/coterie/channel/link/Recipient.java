package io.coterie.channel.link;

import io.coterie.trust.Member;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.InvalidKeyException;

/**
 * A member as the messaging service is asked about it.
 *
 * @param identity the identity key that the roster pins
 */
public record Recipient(Member member, IdentityKey identity) {
  /**
   * A recipient from its entry in the roster.
   *
   * @throws IllegalArgumentException when the pinned identity key is not readable
   */
  public static Recipient of(Member member) {
    try {
      return new Recipient(member, new IdentityKey(member.identityKey()));
    } catch (InvalidKeyException e) {
      throw new IllegalArgumentException(member.name() + ": identityKey is not a public key", e);
    }
  }
}
