package io.coterie.platform.limit;

import java.util.HashMap;
import java.util.Map;

/**
 * Places of which nobody gets all: an owner holds at most seven times as many as are free. So one
 * alone gets seven of eight, two that want as many as they can get get seven of fifteen each, and
 * however many there are, some places stay free for one that holds none. (Choudhury and Hahne,
 * "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Transactions on
 * Networking 6(2), 1998.) Fewer than eight places can all be taken. Thread-safe.
 */
public final class FairPlaces {
  private static final int TIMES_THE_FREE = 7;

  private final int most;
  private final Map<String, Integer> taken = new HashMap<>();
  private int all;

  /**
   * @param most places that there are
   */
  public FairPlaces(int most) {
    this.most = most;
  }

  /**
   * Takes a place if the owner may have one more; false if not.
   *
   * @param bound on the places of one owner, whatever is free
   */
  public synchronized boolean take(String owner, int bound) {
    if (of(owner) >= bound || !mayHave(of(owner), all)) {
      return false;
    }
    add(owner);
    return true;
  }

  /** Counts a place that is taken whatever the bounds say: {@link #isWithin} tells. */
  public synchronized void add(String owner) {
    taken.merge(owner, 1, Integer::sum);
    all++;
  }

  /** Whether the place that the owner took last would have been given to it. */
  public synchronized boolean isWithin(String owner) {
    return mayHave(of(owner) - 1, all - 1);
  }

  /** Whether no more places are taken, by whomever, than there are. */
  public synchronized boolean isEnough() {
    return all <= most;
  }

  /** Gives one of the owner's places back. */
  public synchronized void giveBack(String owner) {
    taken.computeIfPresent(owner, (_, now) -> now == 1 ? null : now - 1);
    all--;
  }

  /** How many places that owner has. */
  public synchronized int of(String owner) {
    return taken.getOrDefault(owner, 0);
  }

  private boolean mayHave(int own, int all) {
    return own < (long) TIMES_THE_FREE * (most - all);
  }
}
