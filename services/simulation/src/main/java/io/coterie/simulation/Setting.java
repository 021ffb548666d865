package io.coterie.simulation;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The parties of a schedule, and how hostile its world is.
 *
 * @param corrupt ids of the parties that lie: fewer than the threshold
 * @param restored id of the one honest party whose store may be put back; 0 for none
 * @param networkPerMille of 1000 messages so many meet each fault of the network
 * @param lyingPerMille of 1000 messages of a corrupt party so many are lies
 * @param coordinatorLies whether the coordinator does
 * @param kills whether processes are killed
 * @param fullDisks whether commits fail for a while
 * @param cuts whether members are cut off from each other
 * @param skews whether clocks differ, within what the parties allow for
 * @param restarts whether processes start again and again, after a clean stop too, one party is
 *     away for a time, and clocks are set back by minutes
 * @param coordinators replicas that share what they know
 * @param nativeCore whether the core is the one that ships
 * @param hostile how long all that goes on
 */
record Setting(
    int threshold,
    int parties,
    Set<Integer> corrupt,
    int restored,
    int networkPerMille,
    int lyingPerMille,
    boolean coordinatorLies,
    boolean kills,
    boolean fullDisks,
    boolean cuts,
    boolean skews,
    boolean restarts,
    int coordinators,
    boolean nativeCore,
    Duration hostile) {

  /** Of 1000 schedules so many run the native core: each takes seconds. */
  private static final int NATIVE_PER_MILLE = 10;

  /** A quiet world of three honest parties. */
  static Setting quiet() {
    return new Setting(
        2,
        3,
        Set.of(),
        0,
        0,
        0,
        false,
        false,
        false,
        false,
        false,
        false,
        1,
        false,
        Duration.ofSeconds(5));
  }

  /** Honest parties that are started anew all the time, and nothing else. */
  static Setting restarting() {
    return new Setting(
        2,
        3,
        Set.of(),
        0,
        0,
        0,
        false,
        false,
        false,
        false,
        false,
        true,
        1,
        false,
        Duration.ofSeconds(60));
  }

  /** As the seed decides. */
  static Setting of(Chance chance) {
    int shape = chance.below(20);
    int threshold = shape < 14 ? 2 : shape < 19 ? 3 : 4;
    int parties = 2 * threshold - 1;
    List<Integer> ids = new ArrayList<>();
    for (int id = 1; id <= parties; id++) {
      ids.add(id);
    }
    Collections.shuffle(ids, new java.util.Random(chance.nextLong()));
    int liars = chance.below(threshold);
    Set<Integer> corrupt = new TreeSet<>(ids.subList(0, liars));
    int restored = chance.perMille(400) ? ids.get(liars) : 0;
    return new Setting(
        threshold,
        parties,
        corrupt,
        restored,
        chance.perMille(500) ? chance.below(60) : 0,
        chance.perMille(700) ? 50 + chance.below(300) : 0,
        chance.perMille(700),
        chance.perMille(500),
        chance.perMille(200),
        chance.perMille(300),
        chance.perMille(300),
        false,
        chance.perMille(300) ? 2 : 1,
        chance.perMille(NATIVE_PER_MILLE),
        Duration.ofSeconds(10 + chance.below(20)));
  }

  boolean isCorrupt(int party) {
    return corrupt.contains(party);
  }

  /** Keeps what it has stored, and follows the rules. */
  boolean isSound(int party) {
    return !isCorrupt(party) && party != restored;
  }
}
