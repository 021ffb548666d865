package io.coterie.signer.order;

import java.time.Duration;

/**
 * How many presignatures this party makes and keeps. Nobody pays for them in advance, so they are
 * made at low priority and never beyond these bounds, whatever a coordinator orders.
 *
 * @param maxPerKey of one key, those being made included; 0 for none at all
 * @param maxTotal of all keys
 * @param maxRunning sessions that make some, at once
 * @param maxBlocks of the messages that they are for, in sum: those of exact signatures take some
 *     20 MB a block
 * @param maxAge an older one is dropped
 */
public record PresignatureLimits(
    int maxPerKey, int maxTotal, int maxRunning, int maxBlocks, Duration maxAge) {
  public PresignatureLimits {
    if (maxPerKey < 0 || maxTotal < 0 || maxRunning < 0 || maxBlocks < 0) {
      throw new IllegalArgumentException("limits of presignatures must not be negative");
    }
    if (maxAge.isNegative() || maxAge.isZero()) {
      throw new IllegalArgumentException("presignatures.max-age must be positive");
    }
  }
}
