package io.coterie.simulation;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A world in which nothing but the keys was made, and whose parties have stopped since. Others
 * begin where it ended, with its stores: keys are always made undisturbed, so one time is enough.
 *
 * @param stores the files of each party by its id, and their bytes by name
 */
record Prepared(World world, Map<Integer, Map<String, byte[]>> stores) {
  /** No schedule has such a seed by chance. */
  private static final long SEED = 0x8f1d_4c03_97ba_2e65L;

  private static final Map<Setting, Prepared> ALL = new ConcurrentHashMap<>();

  /** The one with the parties, the threshold and the core of a setting; made if need be. */
  static Prepared of(Setting setting) {
    return ALL.computeIfAbsent(setting.makingKeys(), Prepared::make);
  }

  private static Prepared make(Setting setting) {
    try (ScratchFolder folder = ScratchFolder.make()) {
      World world = new World(SEED, setting, Mutant.NONE, Faults.all(), folder.path(), null);
      Map<Integer, Map<String, byte[]>> stores = new TreeMap<>();
      for (SimulatedParty party : world.prepare()) {
        if (party.multiplications().hasEnds()) {
          throw new IllegalStateException("a multiplication of a key that was made is open");
        }
        stores.put(party.id(), party.files());
      }
      return new Prepared(world, stores);
    }
  }

  /** Begins another world with what there is. */
  void begin(World other, List<SimulatedParty> parties) {
    SimulatedCoordinator coordinator = other.coordinator();
    other.checker().goOnFrom(world.checker());
    coordinator.goOnFrom(world.coordinator());
    parties.forEach(party -> party.start(store(party.id())));
    for (Ordered made : coordinator.orders()) {
      other.uses(coordinator.key(made.order().getKey()), made.order().getSignedIntent());
    }
  }

  private Map<String, byte[]> store(int party) {
    Map<String, byte[]> store = stores.get(party);
    if (store == null) {
      throw new IllegalArgumentException("no party " + party);
    }
    return store;
  }

  long nanos() {
    return world.timeline().nanos();
  }
}
