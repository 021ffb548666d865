package io.coterie.platform.intent;

import java.security.SecureRandom;
import java.time.Instant;
import java.util.UUID;
import java.util.random.RandomGenerator;
import java.util.regex.Pattern;

/**
 * Ids of requests: UUIDs of version 7 in lower case (RFC 9562, section 5.7). Their first 48 bits
 * are the time they were drawn at, in milliseconds since 1970, so that their order as text is that
 * of their times, and an id says itself from when on no intent can use it any more.
 */
public final class RequestId {
  private static final Pattern VERSION_7 =
      Pattern.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");

  private static final SecureRandom RANDOM = new SecureRandom();
  private static final long MAX_MILLIS = (1L << 48) - 1;
  private static final long VERSION = 7L << 12;
  private static final long VARIANT = 1L << 63;

  private RequestId() {}

  /** A new id, of now. */
  public static String next() {
    return at(Instant.now());
  }

  /**
   * A new id.
   *
   * @param time 1970 or later
   */
  public static String at(Instant time) {
    return at(time, RANDOM);
  }

  /** The same, drawn from given randomness. */
  public static String at(Instant time, RandomGenerator random) {
    return text(time, random.nextLong() & 0xFFF, random.nextLong() >>> 2);
  }

  /** The first id in the order of text that was drawn at a time, or later. */
  public static String first(Instant time) {
    return text(time, 0, 0);
  }

  private static String text(Instant time, long random12, long random62) {
    long millis = time.toEpochMilli();
    if (millis < 0 || millis > MAX_MILLIS) {
      throw new IllegalArgumentException("no request id has the time " + time);
    }
    return new UUID(millis << 16 | VERSION | random12, VARIANT | random62).toString();
  }

  /** Whether a text is one. */
  public static boolean isOne(String text) {
    return VERSION_7.matcher(text).matches();
  }

  /**
   * The time at which it was drawn, as its maker says; with milliseconds.
   *
   * @param id for which {@link #isOne} holds
   */
  public static Instant time(String id) {
    return Instant.ofEpochMilli(UUID.fromString(id).getMostSignificantBits() >>> 16);
  }
}
