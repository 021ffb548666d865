package io.coterie.simulation;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * Makes a schedule that breaks a promise as small as it can: first it takes whole kinds of trouble
 * away and shortens the hostile time, then it searches for the fewest faults, lies and deeds that
 * break the same promise (delta debugging; Zeller and Hildebrandt 2002, section 3).
 */
final class Shrinker {
  private final long seed;
  private final Mutant mutant;
  private final String violation;
  private int runsLeft;
  private Setting setting;
  private Simulation.Outcome smallest;

  /**
   * A schedule that is as small as it could be made.
   *
   * @param outcome of it; its faults are all that is needed
   */
  record Shrunk(Setting setting, Simulation.Outcome outcome) {
    /** The schedule again. */
    Simulation.Outcome again(long seed, Mutant mutant, java.io.PrintStream out) {
      return Simulation.run(
          seed, setting, mutant, Faults.only(Set.copyOf(outcome.faults())), new Coverage(), out);
    }
  }

  private Shrinker(long seed, Mutant mutant, Simulation.Outcome failed, int runs) {
    this.seed = seed;
    this.mutant = mutant;
    this.violation = kind(failed.violations().getFirst());
    this.setting = Simulation.setting(seed);
    this.smallest = failed;
    this.runsLeft = runs;
  }

  /** A violation without where it happened. */
  private static String kind(String violation) {
    return violation.substring(0, violation.indexOf(':'));
  }

  /**
   * Makes the schedule of a seed smaller.
   *
   * @param failed its outcome, with a violation; the first one is kept
   * @param runs to be spent at most
   */
  static Shrunk shrink(long seed, Mutant mutant, Simulation.Outcome failed, int runs) {
    Shrinker shrinker = new Shrinker(seed, mutant, failed, runs);
    shrinker.takeAway();
    shrinker.minimise();
    return new Shrunk(shrinker.setting, shrinker.smallest);
  }

  /** Whether the promise is broken without the rest; then the rest is gone. */
  private boolean isEnough(Setting with, List<String> faults) {
    if (runsLeft == 0) {
      return false;
    }
    runsLeft--;
    Simulation.Outcome outcome =
        Simulation.run(seed, with, mutant, Faults.only(Set.copyOf(faults)), new Coverage(), null);
    if (outcome.violations().stream().noneMatch(each -> kind(each).equals(violation))) {
      return false;
    }
    setting = with;
    smallest = outcome;
    return true;
  }

  // ---- the setting -----------------------------------------------------------------------------

  private void takeAway() {
    List<UnaryOperator<Setting>> simpler = new ArrayList<>();
    simpler.add(Setting::withFastCore);
    simpler.add(now -> now.lasting(now.hostile().dividedBy(2)));
    simpler.add(now -> now.lasting(now.hostile().dividedBy(2)));
    simpler.add(now -> now.lasting(now.hostile().dividedBy(2)));
    simpler.add(now -> now.withFaults(0, now.lyingPerMille()));
    simpler.add(now -> now.withFaults(now.networkPerMille(), 0));
    for (Plague plague : Plague.values()) {
      simpler.add(now -> now.without(plague));
    }
    for (UnaryOperator<Setting> step : simpler) {
      Setting next = step.apply(setting);
      if (!next.equals(setting) && next.hostile().compareTo(Duration.ofSeconds(1)) > 0) {
        isEnough(next, smallest.faults());
      }
    }
  }

  // ---- the faults ------------------------------------------------------------------------------

  private void minimise() {
    int parts = 2;
    while (runsLeft > 0 && !smallest.faults().isEmpty()) {
      if (reduce(parts)) {
        parts = Math.max(2, parts - 1);
      } else if (parts < smallest.faults().size()) {
        parts = Math.min(smallest.faults().size(), 2 * parts);
      } else {
        return;
      }
    }
  }

  /** Leaves out one of so many parts, if that is possible. */
  private boolean reduce(int parts) {
    List<String> all = smallest.faults();
    int size = Math.ceilDiv(all.size(), parts);
    for (int from = 0; from < all.size(); from += size) {
      Set<String> rest = new LinkedHashSet<>(all);
      all.subList(from, Math.min(from + size, all.size())).forEach(rest::remove);
      if (isEnough(setting, List.copyOf(rest))) {
        return true;
      }
    }
    return false;
  }
}
