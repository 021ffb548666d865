package io.coterie.simulation;

import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.coordinator.custody.request.ReplicaStore;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.storage.memory.MemoryDatabase;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The way of one replica to the database, which may be interrupted, lose an answer or be slow. */
final class ReplicaDatabase {
  /** Statements of which one answer may be lost alone. */
  private static final List<String> LOSABLE = List.of("claimOnce", "take", "takeAll", "finish");

  private static final long MILLI = 1_000_000L;

  private final World world;
  private final Map<Class<?>, Object> stores;
  private final OrderChecker checker;
  private final String replica;
  private final Chance chance;
  private final Chance delays;
  private final RowLocks locks;
  private boolean away;
  private boolean down;

  /** How often the database has ended: no statement that it was doing then has an answer. */
  private int crashes;

  private boolean slow;

  /** The next answer to that statement is lost; null if none is. */
  private @Nullable String losing;

  /**
   * @param replica its name
   */
  ReplicaDatabase(
      World world, MemoryDatabase database, RowLocks locks, OrderChecker checker, String replica) {
    this.locks = locks;
    this.delays = world.chance().part(replica + " slow statements");
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

  /** Whether the database has ended, with all that it was doing. */
  void down(boolean now) {
    down = now;
    if (now) {
      crashes++;
    }
  }

  /** Whether statements that take rows have them locked for a while. */
  void slow(boolean now) {
    slow = now;
  }

  /** Loses the next answer to a statement of one kind, which is done. */
  void loseAnswer(Chance own) {
    losing = own.any(LOSABLE);
  }

  /** Loses no answer any more. */
  void loseNothing() {
    losing = null;
  }

  /** A store of it, for a process, until that is killed. */
  <T> T of(Class<T> type, SimulatedThreads process) {
    Object store = Objects.requireNonNull(stores.get(type));
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (_, method, given) -> {
              process.requireAlive();
              // An answer that is lost says nothing about what was done.
              boolean done = away && chance.perMille(300);
              if (down || (away && !done)) {
                throw unavailable();
              }
              int before = crashes;
              String name = method.getName();
              Object answer =
                  switch (name) {
                    case "take" -> take(() -> invoke(method, store, given), given[0], process);
                    case "takeAll" -> takeAll((List<?>) invoke(method, store, given), process);
                    default -> invoke(method, store, given);
                  };
              if (crashes != before) {
                throw unavailable();
              }
              notice(name, given);
              boolean lost = name.equals(losing);
              if (lost) {
                losing = null;
                world.coverage().count("fault ANSWER_LOST");
              }
              if (done || lost) {
                if (name.equals("claimOnce")) {
                  world.coverage().count("fault CLAIM_UNANSWERED");
                }
                throw unavailable();
              }
              return answer;
            }));
  }

  private static Object invoke(Method method, Object store, Object[] given) throws Throwable {
    try {
      return method.invoke(store, given);
    } catch (InvocationTargetException e) {
      throw e.getCause() == null ? e : e.getCause();
    }
  }

  /** A statement that takes rows. */
  @FunctionalInterface
  private interface Taking {
    Object run() throws Throwable;
  }

  /** As {@code for update}: it waits for a statement that has the row locked. */
  private Object take(Taking statement, Object row, SimulatedThreads process) throws Throwable {
    if (world.mutant() == Mutant.TAKES_UP_ALL && locks.isHeld(row)) {
      return Optional.empty();
    }
    locks.await(row, process);
    Object taken = statement.run();
    hold(RowLocks.rows(taken), process);
    return taken;
  }

  /** As {@code for update skip locked}: {@link MemoryDatabase#skip} leaves out the locked ones. */
  private Object takeAll(List<?> taken, SimulatedThreads process) {
    hold(RowLocks.rows(taken), process);
    return taken;
  }

  private void hold(Collection<Object> rows, SimulatedThreads process) {
    boolean takesLong = slow || world.mutant() == Mutant.TAKES_UP_ALL;
    if (takesLong && !rows.isEmpty()) {
      world.coverage().count("fault ROWS_LOCKED");
      locks.hold(rows, delays.between(MILLI, 400 * MILLI), process);
    }
  }

  private void notice(String method, Object[] given) {
    switch (method) {
      case "seen" -> checker.seen(replica);
      case "claimOnce" -> world.requests().claimed();
      case "excludeWentBack" -> {
        checker.excluded((Integer) given[0]);
        world.checker().wentBackForCoordinator((Integer) given[0]);
      }
      case "exclude" -> excluded((Integer) given[1]);
      default -> {}
    }
  }

  private void excluded(int party) {
    checker.excluded(party);
    if (!world.setting().isCorrupt(party)) {
      world.checker().violated(Breach.HONEST_CONVICTED, Identities.party(party) + " by " + replica);
    }
  }

  private StoreUnavailableException unavailable() {
    world.coverage().count("fault DATABASE_AWAY");
    return new StoreUnavailableException(
        "the database is away", new IllegalStateException("by the schedule"));
  }
}
