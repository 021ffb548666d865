package io.coterie.simulation;

import java.util.List;
import java.util.random.RandomGenerator;

/**
 * The random numbers of one part of a schedule. Each part has a stream of its own, so that the
 * number of draws of one does not move the draws of another.
 */
final class Chance implements RandomGenerator {
  private static final long GOLDEN = 0x9e37_79b9_7f4a_7c15L;

  private final long origin;
  private long state;

  private Chance(long origin) {
    this.origin = origin;
    this.state = origin;
  }

  static Chance of(long seed) {
    return new Chance(stir(seed + GOLDEN));
  }

  /** The stream of a part, the same however much was drawn from this one. */
  Chance part(String name) {
    long hash = 0xcbf2_9ce4_8422_2325L ^ origin;
    for (int i = 0; i < name.length(); i++) {
      hash = (hash ^ name.charAt(i)) * 0x0100_0000_01b3L;
    }
    return new Chance(stir(hash));
  }

  /** SplitMix64. */
  @Override
  public long nextLong() {
    state += GOLDEN;
    return stir(state);
  }

  private static long stir(long value) {
    long stirred = (value ^ (value >>> 30)) * 0xbf58_476d_1ce4_e5b9L;
    stirred = (stirred ^ (stirred >>> 27)) * 0x94d0_49bb_1331_11ebL;
    return stirred ^ (stirred >>> 31);
  }

  /** 0 to {@code bound} - 1. */
  int below(int bound) {
    return (int) Long.remainderUnsigned(nextLong(), bound);
  }

  /** A time between two times, ns, both included. */
  long between(long least, long most) {
    return least + Long.remainderUnsigned(nextLong(), most - least + 1);
  }

  /** Happens in so many of 1000 cases. */
  boolean perMille(int cases) {
    return below(1000) < cases;
  }

  <T> T any(List<T> of) {
    return of.get(below(of.size()));
  }

  byte[] bytes(int length) {
    byte[] bytes = new byte[length];
    nextBytes(bytes);
    return bytes;
  }
}
