package io.coterie.messaging.account;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Recognises the password of a device. A password is random and long, made by the client's
 * software, so one keyed hash is enough and every request can afford it.
 *
 * @param salt {@value #SALT_BYTES} random bytes
 * @param hash HMAC-SHA-256 of the password under the salt
 */
public record PasswordHash(byte[] salt, byte[] hash) {
  /** A shorter one may be guessed from a stolen database. */
  public static final int MIN_PASSWORD_LENGTH = 16;

  public static final int MAX_PASSWORD_LENGTH = 256;
  private static final int SALT_BYTES = 16;
  private static final String TAG = "coterie/messaging/password/1";

  public static PasswordHash of(String password, SecureRandom random) {
    byte[] salt = new byte[SALT_BYTES];
    random.nextBytes(salt);
    return new PasswordHash(salt, hash(salt, password));
  }

  /** Whether this is the password; takes the same time for every wrong one of a length. */
  public boolean matches(String password) {
    return MessageDigest.isEqual(hash, hash(salt, password));
  }

  private static byte[] hash(byte[] salt, String password) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(salt, "HmacSHA256"));
      mac.update(TAG.getBytes(StandardCharsets.US_ASCII));
      return mac.doFinal(password.getBytes(StandardCharsets.UTF_8));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has HmacSHA256", e);
    }
  }

  @Override
  public String toString() {
    return "PasswordHash[redacted]";
  }
}
