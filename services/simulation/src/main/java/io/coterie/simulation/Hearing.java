package io.coterie.simulation;

import io.coterie.proto.core.v1.Step;
import java.util.HashSet;
import java.util.Set;

/** A session as the core of a replica hears it, from one order of it to the next. */
final class Hearing {
  private final Set<Integer> parties;
  private final Set<Integer> missing;

  /** Those that have said that they do not go on. */
  private final Set<Integer> out = new HashSet<>();

  private boolean over;

  /**
   * @param parties of the session; nobody has contributed
   */
  Hearing(Set<Integer> parties) {
    this.parties = Set.copyOf(parties);
    this.missing = new HashSet<>(parties);
  }

  /** The core has taken a step. */
  void took(Step step) {
    if (step.hasWaiting()) {
      missing.clear();
      missing.addAll(step.getWaiting().getMissingList());
    }
    over |= step.hasDone() || step.hasAbort();
  }

  /** A party says that it does not go on. */
  void leaves(int party) {
    out.add(party);
  }

  /** Those that are not waited for. */
  Set<Integer> contributors() {
    Set<Integer> contributors = new HashSet<>(parties);
    contributors.removeAll(missing);
    return contributors;
  }

  /**
   * Whether it may still become a signature: its core has not ended, and each party that has left
   * it had contributed before.
   */
  boolean isInDoubt() {
    return !over && missing.stream().noneMatch(out::contains);
  }
}
