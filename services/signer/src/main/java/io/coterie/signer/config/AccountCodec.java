package io.coterie.signer.config;

import io.coterie.channel.ChannelAccount;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.UUID;

/**
 * A channel account as the bytes that are sealed. Version 1, integers big-endian: version (1 byte),
 * account id (16), device id (1), registration id (2), then password and identity key pair, each
 * after its length (2).
 */
final class AccountCodec {
  private static final byte VERSION = 1;
  private static final int FIXED = 1 + 16 + 1 + 2 + 2 + 2;

  private AccountCodec() {}

  /** Secret: the caller zeroes it. */
  static byte[] encode(ChannelAccount account) {
    ByteBuffer out =
        ByteBuffer.allocate(FIXED + account.password().length + account.identityKeyPair().length);
    out.put(VERSION)
        .putLong(account.aci().getMostSignificantBits())
        .putLong(account.aci().getLeastSignificantBits())
        .put((byte) account.deviceId())
        .putShort((short) account.registrationId());
    for (byte[] part : new byte[][] {account.password(), account.identityKeyPair()}) {
      out.putShort((short) part.length).put(part);
    }
    return out.array();
  }

  /**
   * @throws IllegalStateException if these are not the bytes of an account
   */
  static ChannelAccount decode(byte[] bytes) {
    try {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      if (in.get() != VERSION) {
        throw new IllegalStateException("the stored account has an unknown version");
      }
      UUID aci = new UUID(in.getLong(), in.getLong());
      int deviceId = in.get();
      int registrationId = in.getShort();
      byte[] password = part(in);
      byte[] identity = part(in);
      if (in.hasRemaining()) {
        throw new IllegalStateException("the stored account has bytes too many");
      }
      return new ChannelAccount(aci, deviceId, password, registrationId, identity);
    } catch (BufferUnderflowException e) {
      throw new IllegalStateException("the stored account is cut short", e);
    }
  }

  private static byte[] part(ByteBuffer in) {
    int length = in.getShort() & 0xFFFF;
    if (length > in.remaining()) {
      throw new BufferUnderflowException();
    }
    byte[] part = new byte[length];
    in.get(part);
    return part;
  }
}
