package io.coterie.mpc;

import java.util.EnumSet;
import java.util.Set;

/** A measure that protects the memory of this process. The numbers are those of the C header. */
public enum Protection {
  /** No other process of the user can read it ({@code PR_SET_DUMPABLE} is 0). */
  UNREADABLE(1),
  /** It leaves no core dump ({@code RLIMIT_CORE} is 0). */
  NO_CORE(2),
  /**
   * Every data key so far is locked in memory, so that none reaches a swap device. Absent if {@code
   * RLIMIT_MEMLOCK} is too small.
   */
  LOCKED(4);

  final int bit;

  Protection(int bit) {
    this.bit = bit;
  }

  static Set<Protection> of(int bits) {
    Set<Protection> protections = EnumSet.allOf(Protection.class);
    protections.removeIf(protection -> (bits & protection.bit) == 0);
    return protections;
  }
}
