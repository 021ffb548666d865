package io.coterie.trust;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;

/**
 * The root keys of a version of the trust file, and how many of them must sign the next version.
 *
 * @param threshold 1 to the number of keys
 * @param keys 1 to {@value #MAX_KEYS} different ones, in the order of their bytes
 */
public record Roots(int threshold, List<RootKey> keys) {
  /** Owners of one installation. */
  public static final int MAX_KEYS = 20;

  public Roots {
    keys = keys.stream().sorted((a, b) -> Arrays.compareUnsigned(a.spki(), b.spki())).toList();
    if (keys.isEmpty() || keys.size() > MAX_KEYS) {
      throw new IllegalArgumentException(
          "there are 1 to " + MAX_KEYS + " root keys, not " + keys.size());
    }
    if (new HashSet<>(keys).size() < keys.size()) {
      throw new IllegalArgumentException("a root key occurs twice");
    }
    if (threshold < 1 || threshold > keys.size()) {
      throw new IllegalArgumentException(
          "the threshold of the root keys is not 1 to " + keys.size() + " but " + threshold);
    }
  }

  /**
   * Whether any two sets of owners who may sign have one in common. Without that, honest owners can
   * sign two next versions that contradict each other.
   */
  public boolean isMajority() {
    return 2 * threshold > keys.size();
  }

  /** The short form of threshold and keys, by which somebody who has no version yet pins them. */
  public String fingerprint() {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    content.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(threshold).array());
    keys.forEach(key -> content.writeBytes(key.spki()));
    return Fingerprint.of("coterie/roots-fingerprint/1", content.toByteArray());
  }
}
