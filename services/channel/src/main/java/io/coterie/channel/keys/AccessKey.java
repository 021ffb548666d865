package io.coterie.channel.keys;

import io.coterie.channel.wire.Frame;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKeyPair;

/**
 * The unidentified-access key of an account: with it a sender reaches the account without saying
 * who it is. Secret; it protects availability only. ADR 0039 says how members get each other's.
 */
public final class AccessKey {
  /** Bytes of a key. */
  public static final int BYTES = Frame.ACCESS_KEY_BYTES;

  private static final String LABEL = "coterie/channel/access-key/3";

  private final byte[] bytes;

  /**
   * @throws IllegalArgumentException if they are not {@link #BYTES}
   */
  public AccessKey(byte[] bytes) {
    if (bytes.length != BYTES) {
      throw new IllegalArgumentException("an access key has " + BYTES + " bytes");
    }
    this.bytes = bytes.clone();
  }

  /**
   * The key of a member with that roster: the first bytes of HMAC-SHA-256 under its private
   * identity key. Nobody else can compute it, each process of the member has the same without
   * keeping anything, and members that have left know none that is in use, nor one that will be
   * when the members are the same again.
   */
  public static AccessKey of(IdentityKeyPair identity, Roster roster) {
    byte[] secret = identity.getPrivateKey().serialize();
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret, "HmacSHA256"));
      LABEL.chars().forEach(character -> mac.update((byte) character));
      List<byte[]> keys =
          roster.members().stream().map(Member::identityKey).sorted(Arrays::compare).toList();
      for (int shift = Long.SIZE - Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
        mac.update((byte) (roster.version() >>> shift));
      }
      // The version has 8 bytes and a serialised identity key 33, so what follows is unambiguous.
      keys.forEach(mac::update);
      return new AccessKey(Arrays.copyOf(mac.doFinal(), BYTES));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has HMAC-SHA-256", e);
    } finally {
      Arrays.fill(secret, (byte) 0);
    }
  }

  /** A key that nobody knows: for an account whose members are not known yet. */
  public static AccessKey random() {
    byte[] bytes = new byte[BYTES];
    new SecureRandom().nextBytes(bytes);
    return new AccessKey(bytes);
  }

  /** A copy of the bytes. */
  public byte[] bytes() {
    return bytes.clone();
  }

  /** Takes as long for every other key. */
  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof AccessKey key && MessageDigest.isEqual(bytes, key.bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes);
  }

  /** Says nothing about the key. */
  @Override
  public String toString() {
    return "AccessKey";
  }
}
