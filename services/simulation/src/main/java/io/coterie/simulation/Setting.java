package io.coterie.simulation;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The parties of a schedule, and how hostile its world is.
 *
 * @param threshold of keys when they are made
 * @param corrupt ids of the parties that lie: fewer than the threshold
 * @param unsound id of the one honest party whose store may be put back or cloned; 0 for none
 * @param jumping id of the one sound party whose clock may jump
 * @param networkPerMille of 1000 messages so many meet each fault of the network
 * @param lyingPerMille of 1000 messages of a corrupt party so many are lies
 * @param plagues further troubles of the world
 * @param coordinators replicas that share what they know and order what the workload says
 * @param requests whether clients ask replicas of the coordinator that ships
 * @param nativeCore whether the core is the one that ships
 * @param prepared whether it begins with keys that were made before it
 * @param hostile how long all that goes on
 */
record Setting(
    int threshold,
    int parties,
    Set<Integer> corrupt,
    int unsound,
    int jumping,
    int networkPerMille,
    int lyingPerMille,
    Set<Plague> plagues,
    int coordinators,
    boolean requests,
    boolean nativeCore,
    boolean prepared,
    Duration hostile) {

  /** Of 1000 schedules so many run the native core: each takes seconds. */
  private static final int NATIVE_PER_MILLE = 10;

  /** Of 1000 schedules so many begin with keys that are there. */
  private static final int PREPARED_PER_MILLE = 950;

  /** Of 1000 schedules so many have clients. */
  private static final int REQUESTS_PER_MILLE = 500;

  private static final Duration MINUTE = Duration.ofMinutes(1);

  private static final Set<Plague> OF_REPLICAS =
      EnumSet.of(Plague.REPLICA_KILLS, Plague.DATABASE_AWAY, Plague.DATABASE_CRASHES);

  private static final Set<Plague> OF_PARTIES =
      EnumSet.range(Plague.LYING_COORDINATOR, Plague.CLONES);

  /** A quiet world of three honest parties. */
  static Setting quiet() {
    return new Setting(
        2, 3, Set.of(), 0, 1, 0, 0, Set.of(), 1, true, false, false, Duration.ofSeconds(5));
  }

  /** Honest parties that are started anew all the time, and nothing else. */
  static Setting restarting() {
    return new Setting(
        2, 3, Set.of(), 0, 1, 0, 0, Set.of(Plague.RESTARTS), 1, false, false, true, MINUTE);
  }

  /** A world of the same parties and core that makes keys, and does nothing else. */
  Setting makingKeys() {
    return new Setting(
        threshold,
        parties,
        Set.of(),
        0,
        1,
        0,
        0,
        Set.of(),
        1,
        false,
        nativeCore,
        false,
        Duration.ZERO);
  }

  /** The setting that a seed decides on. */
  static Setting of(Chance chance) {
    int shape = chance.below(20);
    int threshold = shape < 14 ? 2 : shape < 19 ? 3 : 4;
    int parties = 2 * threshold - 1;
    if (threshold == 4 && chance.part("five of seven").perMille(500)) {
      threshold = 5;
    }
    List<Integer> ids = new ArrayList<>();
    for (int id = 1; id <= parties; id++) {
      ids.add(id);
    }
    Collections.shuffle(ids, new java.util.Random(chance.nextLong()));
    int liars = chance.below(threshold);
    Set<Integer> corrupt = new TreeSet<>(ids.subList(0, liars));
    int unsound = chance.perMille(450) ? ids.get(liars) : 0;
    int network = chance.perMille(500) ? chance.below(60) : 0;
    int lying = chance.perMille(700) ? 50 + chance.below(300) : 0;
    boolean nativeCore = chance.perMille(NATIVE_PER_MILLE);
    Set<Plague> plagues = EnumSet.noneOf(Plague.class);
    for (Plague plague : OF_PARTIES) {
      if (chance.perMille(perMille(plague)) && possible(plague, unsound, nativeCore)) {
        plagues.add(plague);
      }
    }
    Chance requesting = chance.part("requests");
    boolean requests = requesting.perMille(REQUESTS_PER_MILLE);
    for (Plague plague : OF_REPLICAS) {
      if (requesting.perMille(perMille(plague)) && requests) {
        plagues.add(plague);
      }
    }
    return new Setting(
        threshold,
        parties,
        corrupt,
        unsound,
        ids.get(liars + 1),
        network,
        lying,
        plagues,
        chance.perMille(300) ? 2 : 1,
        requests,
        nativeCore,
        chance.part("keys").perMille(PREPARED_PER_MILLE),
        Duration.ofSeconds(10 + chance.below(20)));
  }

  private static int perMille(Plague plague) {
    return switch (plague) {
      case LYING_COORDINATOR -> 700;
      case KILLS -> 500;
      case FULL_DISKS -> 200;
      case CUTS, SKEWS -> 300;
      case JUMPS -> 150;
      case HOLDS, DATABASE_CRASHES -> 200;
      case PUT_BACK -> 850;
      case CLONES -> 300;
      case REPLICA_KILLS, DATABASE_AWAY -> 400;
      case RESTARTS -> 0;
    };
  }

  private static boolean possible(Plague plague, int unsound, boolean nativeCore) {
    return switch (plague) {
      case PUT_BACK -> unsound != 0;
      // Two copies say two things in one round, for which the core that ships names a party.
      case CLONES -> unsound != 0 && !nativeCore;
      default -> true;
    };
  }

  /** The name of its threshold and number of parties in the coverage. */
  String shape() {
    return "shape %d of %d".formatted(threshold, parties);
  }

  /** The same without one kind of trouble. */
  Setting without(Plague plague) {
    Set<Plague> fewer = EnumSet.noneOf(Plague.class);
    fewer.addAll(plagues);
    fewer.remove(plague);
    return with(networkPerMille, lyingPerMille, fewer, nativeCore, hostile);
  }

  /** The same with other numbers of faults and lies. */
  Setting withFaults(int network, int lying) {
    return with(network, lying, plagues, nativeCore, hostile);
  }

  /** The same with another hostile time. */
  Setting lasting(Duration time) {
    return with(networkPerMille, lyingPerMille, plagues, nativeCore, time);
  }

  /** The same without cryptography. */
  Setting withFastCore() {
    return with(networkPerMille, lyingPerMille, plagues, false, hostile);
  }

  /** The same, with keys that are made in it, as in all schedules once. */
  Setting withoutKeys() {
    return new Setting(
        threshold,
        parties,
        corrupt,
        unsound,
        jumping,
        networkPerMille,
        lyingPerMille,
        plagues,
        coordinators,
        requests,
        nativeCore,
        false,
        hostile);
  }

  private Setting with(
      int network, int lying, Set<Plague> trouble, boolean realCore, Duration time) {
    return new Setting(
        threshold,
        parties,
        corrupt,
        unsound,
        jumping,
        network,
        lying,
        trouble,
        coordinators,
        requests,
        realCore,
        prepared,
        time);
  }

  boolean has(Plague plague) {
    return plagues.contains(plague);
  }

  boolean isCorrupt(int party) {
    return corrupt.contains(party);
  }

  /** Keeps what it has stored, and follows the rules. */
  boolean isSound(int party) {
    return !isCorrupt(party) && party != unsound;
  }
}
