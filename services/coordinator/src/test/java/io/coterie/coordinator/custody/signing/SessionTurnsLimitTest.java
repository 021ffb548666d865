package io.coterie.coordinator.custody.signing;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.custody.signing.SessionTurns.Turn;
import io.coterie.coordinator.session.ReplicaTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** How many sessions run at once follows what the parties can do, and who is next. */
class SessionTurnsLimitTest {
  private static final int MOST = 64;

  /** The parties of most sessions. */
  private static final List<Integer> BOTH = List.of(1, 2);

  private final SessionTurns turns = new SessionTurns(MOST, ReplicaTime.ofMachine());

  private Turn turn() throws InterruptedException {
    return turn(BOTH);
  }

  private Turn turn(List<Integer> parties) throws InterruptedException {
    return turns.await("wallet", 0, parties, () -> true, () -> false).orElseThrow();
  }

  private static void late(Turn turn) {
    turn.overloaded(Set.of());
  }

  /** All turns that there are. */
  private List<Turn> all() throws InterruptedException {
    List<Turn> all = new ArrayList<>();
    for (int i = turns.limit(); i > 0; i--) {
      all.add(turn());
    }
    return all;
  }

  /** All sessions that may run at once run, and end well. */
  private void succeed() throws InterruptedException {
    List<Turn> all = all();
    all.getFirst().succeeded();
    all.forEach(Turn::close);
  }

  @Test
  void it_doubles_until_sessions_run_out_of_time() throws InterruptedException {
    assertThat(turns.limit()).isEqualTo(16);
    List<Turn> all = all();
    all.forEach(Turn::succeeded);
    all.forEach(Turn::close);
    assertThat(turns.limit()).as("only what is made use of counts").isEqualTo(17);
    for (int i = 0; i < 2 * MOST; i++) {
      succeed();
    }
    assertThat(turns.limit()).isEqualTo(MOST);
  }

  @Test
  void all_that_ran_at_once_halve_it_once() throws InterruptedException {
    List<Turn> all = all();
    all.forEach(SessionTurnsLimitTest::late);
    assertThat(turns.limit()).isEqualTo(8);
    all.forEach(Turn::close);
    Turn next = turn();
    late(next);
    next.close();
    assertThat(turns.limit()).isEqualTo(4);
    all.forEach(SessionTurnsLimitTest::late);
    assertThat(turns.limit()).as("they began before").isEqualTo(4);
  }

  @Test
  void it_grows_slowly_after_that_and_never_ends() throws InterruptedException {
    for (int i = 0; i < 10; i++) {
      Turn turn = turn();
      late(turn);
      turn.close();
    }
    assertThat(turns.limit()).isEqualTo(2);
    int rounds = 0;
    while (turns.limit() < 6) {
      succeed();
      rounds++;
    }
    assertThat(rounds).as("2 + 3 + 4 + 5 sessions, about").isBetween(12, 20);
  }

  @Test
  void what_was_not_made_use_of_shows_nothing() throws InterruptedException {
    for (int i = 0; i < MOST; i++) {
      Turn one = turn();
      one.succeeded();
      one.close();
    }
    assertThat(turns.limit()).isEqualTo(16);
  }

  @Test
  void the_oldest_request_is_next() throws Exception {
    List<Turn> all = all();
    List<Integer> order = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> waiting = new ArrayList<>();
      for (int since : new int[] {3, 1, 2}) {
        waiting.add(
            threads.submit(
                () -> {
                  Turn turn =
                      turns.await("wallet", since, BOTH, () -> true, () -> false).orElseThrow();
                  synchronized (order) {
                    order.add(since);
                  }
                  turn.close();
                  return null;
                }));
      }
      Awaitility.await().until(() -> turns.waiting() == 3);
      all.removeFirst().close();
      for (Future<?> each : waiting) {
        each.get();
      }
    }
    all.forEach(Turn::close);
    assertThat(turns.waiting()).isZero();
    assertThat(order).containsExactly(1, 2, 3);
  }

  @Test
  void requests_that_nobody_waits_for_take_a_quarter() throws Exception {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Turn> unattended = new ArrayList<>();
      List<Future<?>> waiting = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        waiting.add(
            threads.submit(
                () -> {
                  Turn turn =
                      turns.await("wallet", 0, BOTH, () -> false, () -> false).orElseThrow();
                  synchronized (unattended) {
                    unattended.add(turn);
                  }
                  return null;
                }));
      }
      Awaitility.await()
          .until(
              () -> {
                synchronized (unattended) {
                  return unattended.size() == 4 && turns.waiting() == 4;
                }
              });
      List<Turn> attended = new ArrayList<>();
      for (int i = 0; i < 12; i++) {
        attended.add(turn());
      }
      attended.forEach(Turn::close);
      for (int i = 0; i < 8; i++) {
        Awaitility.await()
            .until(
                () -> {
                  synchronized (unattended) {
                    return !unattended.isEmpty();
                  }
                });
        synchronized (unattended) {
          unattended.removeFirst().close();
        }
      }
      for (Future<?> each : waiting) {
        each.get();
      }
    }
    assertThat(turns.waiting()).isZero();
  }

  @Test
  void who_is_over_leaves() throws InterruptedException {
    List<Turn> all = all();
    assertThat(turns.await("wallet", 0, BOTH, () -> true, () -> true)).isEmpty();
    assertThat(turns.waiting()).isZero();
    all.forEach(Turn::close);
  }

  @Test
  void a_silent_party_takes_nothing_from_sessions_without_it() throws Exception {
    List<Integer> withSilent = List.of(1, 2, 3);
    for (int i = 0; i < 5; i++) {
      Turn turn = turn(withSilent);
      turn.overloaded(Set.of(3));
      turn.close();
    }
    assertThat(turns.limit()).as("of the party that is waited for").isEqualTo(2);
    assertThat(turns.hasRoom(withSilent)).isTrue();
    List<Turn> held = new ArrayList<>(List.of(turn(withSilent), turn(withSilent)));
    assertThat(turns.hasRoom(withSilent)).isFalse();
    assertThat(turns.hasRoom(BOTH)).isTrue();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<Turn> third = threads.submit(() -> turn(withSilent));
      Awaitility.await().until(() -> turns.waiting() == 1);
      // Younger, and not behind it.
      for (int i = 0; i < 14; i++) {
        held.add(turns.await("wallet", 1, BOTH, () -> true, () -> false).orElseThrow());
      }
      assertThat(third).isNotDone();
      held.removeFirst().close();
      held.add(third.get());
    }
    held.forEach(Turn::close);
    assertThat(turns.waiting()).isZero();
  }

  @Test
  void no_more_run_at_once_than_may_over_all_parties() throws InterruptedException {
    SessionTurns few = new SessionTurns(3, ReplicaTime.ofMachine());
    List<Turn> all = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      all.add(few.await("wallet", 0, List.of(i, i + 10), () -> true, () -> false).orElseThrow());
    }
    AtomicBoolean over = new AtomicBoolean();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<Optional<Turn>> fourth =
          threads.submit(() -> few.await("wallet", 0, List.of(7, 8), () -> true, over::get));
      Awaitility.await().until(() -> few.waiting() == 1);
      assertThat(few.hasRoom(List.of(7, 8))).isFalse();
      over.set(true);
      assertThat(fourth.get()).isEmpty();
    } catch (ExecutionException e) {
      throw new AssertionError(e);
    }
    all.forEach(Turn::close);
  }
}
