package io.coterie.coordinator.custody.presignature;

import io.coterie.coordinator.custody.presignature.PresignatureStock.Combination;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * How many sessions that make presignatures run at once: one at first and after a failure, one more
 * after each success. Thread-safe.
 *
 * <p>The work of pairs is counted apart, since it takes long: a pair has one place, and pairs whose
 * last session made nothing have one place together. So a pair that never answers keeps that place
 * from others like it, and nothing from anybody else.
 */
final class MakingPlaces {
  /** One of pairs that fail, and one of others, however few there are in all. */
  private static final int FEWEST_OF_PAIRS = 2;

  private final int most;
  private int size = 1;
  private int running;
  private final Set<List<Integer>> pairs = new HashSet<>();

  /** Pairs whose last session made nothing. */
  private final Set<List<Integer>> failed = new HashSet<>();

  /**
   * @param most sessions at once, of which pairs may have half
   */
  MakingPlaces(int most) {
    this.most = most;
  }

  /** Whether a session may begin now. */
  synchronized boolean isFree(Combination combination) {
    if (!combination.isOfPair()) {
      return running < Math.max(1, Math.min(size, most - pairs.size()));
    }
    List<Integer> pair = combination.signingSet();
    return pairs.size() < Math.max(FEWEST_OF_PAIRS, most / 2)
        && !pairs.contains(pair)
        && (!failed.contains(pair) || Collections.disjoint(pairs, failed));
  }

  /** A session begins, and takes its place. */
  synchronized void begun(Combination combination) {
    if (combination.isOfPair()) {
      pairs.add(combination.signingSet());
    } else {
      running++;
    }
  }

  /**
   * It has ended.
   *
   * @param made whether there are presignatures of it
   */
  synchronized void ended(Combination combination, boolean made) {
    if (!combination.isOfPair()) {
      running--;
      size = made ? Math.min(most, size + 1) : 1;
      return;
    }
    pairs.remove(combination.signingSet());
    if (made) {
      failed.remove(combination.signingSet());
    } else {
      failed.add(combination.signingSet());
    }
  }
}
