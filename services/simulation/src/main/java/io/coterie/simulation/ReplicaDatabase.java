package io.coterie.simulation;

import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.coordinator.custody.request.ReplicaStore;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.storage.memory.MemoryDatabase;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;

/** The way of one replica to the database, which may be interrupted. */
final class ReplicaDatabase {
  private final World world;
  private final Map<Class<?>, Object> stores;
  private final OrderChecker checker;
  private final String replica;
  private final Chance chance;
  private boolean away;

  /**
   * @param replica its name
   */
  ReplicaDatabase(World world, MemoryDatabase database, OrderChecker checker, String replica) {
    this.world = world;
    this.checker = checker;
    this.replica = replica;
    this.chance = world.chance().part(replica + " database");
    this.stores =
        Map.of(
            KeyStore.class, database.keys(replica),
            RenewalStore.class, database.renewals(replica),
            SigningStore.class, database.signings(replica),
            ReplicaStore.class, database.presence(replica),
            LedgerStore.class, database.ledgers());
  }

  /** Whether it can be reached. */
  void away(boolean now) {
    away = now;
  }

  /** A store of it, for a process, until that is killed. */
  <T> T of(Class<T> type, SimulatedThreads process) {
    Object store = stores.get(type);
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (_, method, given) -> {
              process.requireAlive();
              // An answer that is lost says nothing about what was done. A claim is found to be
              // left alone then: docs/assurance.md.
              boolean done = away && !method.getName().equals("claimOnce") && chance.perMille(300);
              if (away && !done) {
                throw unavailable();
              }
              Object answer;
              try {
                answer = method.invoke(store, given);
              } catch (InvocationTargetException e) {
                throw e.getCause() == null ? e : e.getCause();
              }
              notice(method.getName(), given);
              if (done) {
                throw unavailable();
              }
              return answer;
            }));
  }

  private void notice(String method, Object[] given) {
    switch (method) {
      case "seen" -> checker.seen(replica);
      case "excludeWentBack" -> world.checker().wentBackForCoordinator((Integer) given[0]);
      case "exclude" -> excluded((Integer) given[1]);
      default -> {}
    }
  }

  private void excluded(int party) {
    if (!world.setting().isCorrupt(party)) {
      world
          .checker()
          .violated(Checker.HONEST_CONVICTED, Identities.party(party) + " by " + replica);
    }
  }

  private StoreUnavailableException unavailable() {
    world.coverage().count("fault DATABASE_AWAY");
    return new StoreUnavailableException(
        "the database is away", new IllegalStateException("by the schedule"));
  }
}
