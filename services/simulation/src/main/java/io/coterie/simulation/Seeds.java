package io.coterie.simulation;

import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * The seeds that a test runs, as in {@code services/mpc-core/sim/src/seeds.rs}. A test names its
 * full count. {@code COTERIE_RUNS_PERCENT} says how many per cent of it are run: 1 where it says
 * nothing, as in {@code make test}. {@code RUNS} and {@code SEED} choose runs by hand, and {@code
 * SHRINK=1} with a seed makes its schedule smaller if it fails.
 */
final class Seeds {
  private Seeds() {}

  private static @Nullable Long number(String name) {
    String text = System.getenv(name);
    return text == null || text.isBlank() ? null : Long.parseUnsignedLong(text.strip());
  }

  /** Whether one seed alone is to be replayed. */
  static boolean replaysOne() {
    return number("SEED") != null && number("RUNS") == null;
  }

  /** Whether a schedule that fails is to be made as small as it can be. */
  static boolean shrinks() {
    return number("SHRINK") != null;
  }

  /**
   * The seeds of a test: always the same for its name, and one that is drawn now and printed,
   * unless the environment chooses others.
   */
  static List<Long> wanted(String test, long full) {
    Long first = number("SEED");
    Long count = number("RUNS");
    Chance names = Chance.of(0).part(test);
    List<Long> seeds = new ArrayList<>();
    if (first != null) {
      LongStream.range(0, count == null ? 1 : count).forEach(n -> seeds.add(first + n));
    } else if (count != null) {
      LongStream.range(0, count).forEach(_ -> seeds.add(names.nextLong()));
    } else {
      Long percent = number("COTERIE_RUNS_PERCENT");
      long runs = Math.max(1, full * (percent == null ? 1 : percent) / 100);
      LongStream.range(0, runs).forEach(_ -> seeds.add(names.nextLong()));
      long fresh = new SecureRandom().nextLong() >>> 1;
      System.out.println("fresh seed " + fresh);
      seeds.add(fresh);
    }
    System.out.println(seeds.size() + " seeds");
    return seeds;
  }
}
