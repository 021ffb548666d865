package io.coterie.coordinator.channel;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.coterie.channel.ChannelAccount;
import io.coterie.platform.unseal.DataKeySource;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.UUID;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Seals this replica's account for the database: AES-256-GCM under the coordinator's data key,
 * which is had for the moment and wiped. The associated data names format and replica, so that a
 * row cannot be opened as another's.
 *
 * <p>Sealed: nonce (12 bytes), ciphertext and tag. Inside, big-endian: account id (16), device id
 * (u32), registration id (u32), password (u32 length, bytes), identity key pair (u32 length,
 * bytes).
 */
public final class AccountSealer {
  private static final String FORMAT = "coterie/channel-account/1|";
  private static final int NONCE = 12;
  private static final int TAG_BITS = 128;
  private static final int FIXED = 16 + 4 * Integer.BYTES;

  private final DataKeySource source;
  private final SecureRandom random;

  public AccountSealer(DataKeySource source, SecureRandom random) {
    this.source = source;
    this.random = random;
  }

  byte[] seal(String replica, ChannelAccount account) {
    ByteBuffer plain =
        ByteBuffer.allocate(FIXED + account.password().length + account.identityKeyPair().length);
    plain.putLong(account.aci().getMostSignificantBits());
    plain.putLong(account.aci().getLeastSignificantBits());
    plain.putInt(account.deviceId()).putInt(account.registrationId());
    plain.putInt(account.password().length).put(account.password());
    plain.putInt(account.identityKeyPair().length).put(account.identityKeyPair());
    byte[] nonce = new byte[NONCE];
    random.nextBytes(nonce);
    try {
      byte[] box = crypt(Cipher.ENCRYPT_MODE, replica, nonce, plain.array(), 0);
      return ByteBuffer.allocate(NONCE + box.length).put(nonce).put(box).array();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has AES-256-GCM", e);
    } finally {
      Arrays.fill(plain.array(), (byte) 0);
    }
  }

  /**
   * Opens what {@link #seal} made.
   *
   * @throws IllegalStateException if it was altered, is another replica's, or the data key is
   *     another
   */
  ChannelAccount unseal(String replica, byte[] sealed) {
    if (sealed.length < NONCE + TAG_BITS / 8 + FIXED) {
      throw damaged();
    }
    byte[] plain;
    try {
      plain = crypt(Cipher.DECRYPT_MODE, replica, Arrays.copyOf(sealed, NONCE), sealed, NONCE);
    } catch (GeneralSecurityException e) {
      throw damaged();
    }
    try {
      ByteBuffer in = ByteBuffer.wrap(plain);
      UUID aci = new UUID(in.getLong(), in.getLong());
      int deviceId = in.getInt();
      int registrationId = in.getInt();
      return new ChannelAccount(aci, deviceId, next(in), registrationId, next(in));
    } catch (BufferUnderflowException e) {
      throw damaged();
    } finally {
      Arrays.fill(plain, (byte) 0);
    }
  }

  private static byte[] next(ByteBuffer in) {
    int length = in.getInt();
    if (length < 0 || length > in.remaining()) {
      throw damaged();
    }
    byte[] bytes = new byte[length];
    in.get(bytes);
    return bytes;
  }

  private static IllegalStateException damaged() {
    return new IllegalStateException(
        "the stored channel account cannot be opened: altered, another replica's, or sealed under"
            + " another data key");
  }

  private byte[] crypt(int mode, String replica, byte[] nonce, byte[] input, int offset)
      throws GeneralSecurityException {
    byte[] key = source.dataKey();
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(mode, new SecretKeySpec(key, "AES"), new GCMParameterSpec(TAG_BITS, nonce));
      cipher.updateAAD((FORMAT + replica).getBytes(UTF_8));
      return cipher.doFinal(input, offset, input.length - offset);
    } finally {
      Arrays.fill(key, (byte) 0);
    }
  }
}
