package io.coterie.messaging;

import java.util.Locale;

/**
 * A figure that a benchmark has measured, and the bar for it.
 *
 * @param isMet whether it is on the right side of the bar
 */
record Bar(String figure, double value, double bar, boolean isMet) {
  static Bar atMost(String figure, double value, double bar) {
    return new Bar(figure, value, bar, value <= bar);
  }

  static Bar atLeast(String figure, double value, double bar) {
    return new Bar(figure, value, bar, value >= bar);
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT, "%s: %.1f, bar %.0f: %s", figure, value, bar, isMet ? "met" : "MISSED");
  }
}
