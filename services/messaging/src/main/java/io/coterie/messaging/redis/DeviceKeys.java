package io.coterie.messaging.redis;

import static io.coterie.messaging.redis.RedisLink.ascii;

import io.coterie.messaging.account.DeviceAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.UUID;

/**
 * Names in Redis. The part in braces decides which node of a cluster keeps a key, so that all of a
 * device are together.
 */
final class DeviceKeys {
  private static final String CHANNEL_SUFFIX = "}:live";
  private static final String PREFIX = "coterie:{";

  private DeviceKeys() {}

  static byte[] channel(DeviceAddress device) {
    return ascii(PREFIX + device + CHANNEL_SUFFIX);
  }

  static byte[] holder(DeviceAddress device) {
    return ascii(PREFIX + device + "}:holder");
  }

  static byte[] waiting(DeviceAddress device) {
    return ascii(PREFIX + device + "}:online");
  }

  static byte[] waitingBytes(DeviceAddress device) {
    return ascii(PREFIX + device + "}:online-bytes");
  }

  static Optional<DeviceAddress> device(byte[] channel) {
    String name = new String(channel, StandardCharsets.US_ASCII);
    int dot = name.lastIndexOf('.');
    if (!name.startsWith(PREFIX) || !name.endsWith(CHANNEL_SUFFIX) || dot < 0) {
      return Optional.empty();
    }
    try {
      return Optional.of(
          new DeviceAddress(
              UUID.fromString(name.substring(PREFIX.length(), dot)),
              Integer.parseInt(name.substring(dot + 1, name.length() - CHANNEL_SUFFIX.length()))));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }
}
