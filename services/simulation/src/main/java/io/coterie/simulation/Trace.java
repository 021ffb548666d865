package io.coterie.simulation;

import java.io.PrintStream;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The events of a schedule, line by line, and one number for all of them. */
final class Trace {
  private final Timeline timeline;
  private final @Nullable PrintStream out;
  private long hash = 0xcbf2_9ce4_8422_2325L;

  /**
   * @param out where lines are printed; null to print none
   */
  Trace(Timeline timeline, @Nullable PrintStream out) {
    this.timeline = timeline;
    this.out = out;
  }

  /** Something happened now. Lines hold nothing that the seed does not decide. */
  void line(String text) {
    mix(timeline.nanos());
    for (int i = 0; i < text.length(); i++) {
      mix(text.charAt(i));
    }
    if (out != null) {
      out.printf(Locale.ROOT, "%12.6f  %s%n", timeline.nanos() / 1e9, text);
    }
  }

  private void mix(long value) {
    hash = (hash ^ value) * 0x0100_0000_01b3L;
  }

  /** Equal for equal traces. */
  long hash() {
    return hash;
  }
}
