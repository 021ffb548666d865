package io.coterie.coordinator.api;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.function.Predicate;
import java.util.zip.CRC32C;

/**
 * Where a page ended. Opaque to clients so that it may change; the sum refuses what was not made
 * here, and it grants nothing: the caller's rights are checked anew for every page.
 */
final class PageToken {
  private static final byte VERSION = 1;

  /** Version and sum. */
  private static final int HEADER = 1 + Integer.BYTES;

  /** Characters of a token: more cannot be one. */
  private static final int MAX_LENGTH = 256;

  private PageToken() {}

  static String after(String name) {
    byte[] text = name.getBytes(UTF_8);
    ByteBuffer token = ByteBuffer.allocate(HEADER + text.length);
    token.put(VERSION).putInt(sum(text)).put(text);
    return Base64.getUrlEncoder().withoutPadding().encodeToString(token.array());
  }

  /**
   * The place after which the page starts; empty for the first page.
   *
   * @param isPlace whether a text is a place of this list
   */
  static String parse(String token, Predicate<String> isPlace) {
    if (token.isEmpty()) {
      return "";
    }
    if (token.length() <= MAX_LENGTH) {
      try {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getUrlDecoder().decode(token));
        if (bytes.remaining() > HEADER) {
          byte[] text = new byte[bytes.remaining() - HEADER];
          bytes.get(HEADER, text);
          String name = new String(text, UTF_8);
          // Made again: version, sum and the one way to write it all at once.
          if (isPlace.test(name) && after(name).equals(token)) {
            return name;
          }
        }
      } catch (IllegalArgumentException e) {
        // Not base64: refused below.
      }
    }
    throw new CustodyException(ErrorReason.PAGE_TOKEN_INVALID);
  }

  private static int sum(byte[] text) {
    CRC32C crc = new CRC32C();
    crc.update(VERSION);
    crc.update(text);
    return (int) crc.getValue();
  }
}
