package io.coterie.coordinator.custody.signing;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.custody.signing.SessionTurns.Turn;
import io.coterie.coordinator.session.ReplicaTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A greedy requester costs others little. Sessions take a number of steps here, and callers ask
 * again as soon as theirs has ended; turns are counted, and no time.
 */
@Timeout(60)
class TurnFairnessTest {
  private static final int MOST = 64;
  private static final int STEPS = 300;

  /** Sessions take from 3 to 7. */
  private static final int FEWEST_STEPS = 3;

  private static final int MORE_STEPS = 5;

  /** Many more than there are places. */
  private static final int GREEDY = 6 * MOST;

  /** The parties of most sessions. */
  private static final List<Integer> BOTH = List.of(1, 2);

  /** Callers of one requester that each wait for one signing at a time. */
  private record Callers(String requester, int count, List<Integer> parties) {}

  /** A session that runs. */
  private record Running(Callers of, int untilStep, CountDownLatch end) {}

  /** A coordinator's turns, and callers of them. */
  private static final class World implements AutoCloseable {
    final SessionTurns turns = new SessionTurns(MOST, ReplicaTime.ofMachine());
    final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    final AtomicLong requests = new AtomicLong();
    final List<Running> running = new ArrayList<>();
    final Map<Callers, Integer> granted = new HashMap<>();
    final boolean growing;
    int callers;
    int step;
    int sessions;
    volatile boolean over;

    /**
     * @param growing whether the windows of parties grow while all goes well
     */
    World(boolean growing) {
      this.growing = growing;
    }

    void add(Callers more) {
      callers += more.count();
      for (int i = 0; i < more.count(); i++) {
        threads.submit(() -> ask(more));
      }
      settle();
    }

    private Void ask(Callers of) throws InterruptedException {
      while (!over) {
        try (Turn turn =
            turns
                .await(
                    of.requester(),
                    requests.incrementAndGet(),
                    of.parties(),
                    () -> true,
                    () -> over)
                .orElse(null)) {
          if (turn == null) {
            return null;
          }
          Running session = began(of);
          session.end().await();
          if (growing) {
            turn.succeeded();
          }
        }
      }
      return null;
    }

    private synchronized Running began(Callers of) {
      int steps = FEWEST_STEPS + sessions++ % MORE_STEPS;
      Running session = new Running(of, step + steps, new CountDownLatch(1));
      running.add(session);
      granted.merge(of, 1, Integer::sum);
      if (over) {
        session.end().countDown();
      }
      return session;
    }

    private synchronized int running() {
      return running.size();
    }

    /** Every caller waits for a turn, or has one. */
    private void settle() {
      Awaitility.await()
          .pollDelay(Duration.ZERO)
          .pollInterval(Duration.ofMillis(1))
          .until(() -> turns.waiting() + running() == callers);
    }

    private synchronized void endOld() {
      step++;
      Iterator<Running> all = running.iterator();
      while (all.hasNext()) {
        Running session = all.next();
        if (session.untilStep() <= step) {
          all.remove();
          session.end().countDown();
        }
      }
    }

    /** Turns that callers get in some time. */
    int turnsOf(Callers of) {
      // The windows have found their size by then, and those who came last have had a turn.
      run(STEPS);
      synchronized (this) {
        granted.clear();
      }
      run(STEPS);
      synchronized (this) {
        return granted.getOrDefault(of, 0);
      }
    }

    private void run(int steps) {
      for (int i = 0; i < steps; i++) {
        endOld();
        settle();
      }
    }

    synchronized int granted(Callers of) {
      return granted.getOrDefault(of, 0);
    }

    @Override
    public void close() {
      synchronized (this) {
        over = true;
        running.forEach(session -> session.end().countDown());
        running.clear();
      }
      threads.close();
    }
  }

  private static int alone(Callers callers) {
    try (World world = new World(true)) {
      world.add(callers);
      return world.turnsOf(callers);
    }
  }

  @Test
  void one_greedy_requester_costs_another_at_most_a_fifth_of_its_rate() {
    Callers modest = new Callers("modest", MOST / 4, BOTH);
    Callers greedy = new Callers("greedy", GREEDY, BOTH);
    int before = alone(modest);
    try (World world = new World(true)) {
      world.add(greedy);
      world.add(modest);
      int beside = world.turnsOf(modest);
      assertThat(before).as("all that it asks for").isBetween(800, 1200);
      assertThat(beside).isGreaterThanOrEqualTo(before * 4 / 5);
      assertThat(world.granted(greedy)).as("the rest is its").isGreaterThan(2 * beside);
    }
  }

  @Test
  void three_greedy_requesters_cost_another_no_more() {
    Callers modest = new Callers("modest", MOST / 8, BOTH);
    int before = alone(modest);
    try (World world = new World(true)) {
      for (String greedy : List.of("a", "b", "c")) {
        world.add(new Callers(greedy, GREEDY / 3, BOTH));
      }
      world.add(modest);
      assertThat(world.turnsOf(modest)).isGreaterThanOrEqualTo(before * 4 / 5);
    }
  }

  @Test
  void requesters_that_want_more_than_there_is_get_equal_parts() {
    Callers many = new Callers("many", GREEDY, BOTH);
    Callers few = new Callers("few", MOST, BOTH);
    try (World world = new World(true)) {
      world.add(many);
      world.add(few);
      int ofFew = world.turnsOf(few);
      int all = ofFew + world.granted(many);
      assertThat(ofFew).isBetween(all * 45 / 100, all * 55 / 100);
    }
  }

  /** The parts are those of each party: requests elsewhere do not count against a requester. */
  @Test
  void a_requester_with_much_elsewhere_keeps_its_part_of_a_slow_party() throws Exception {
    Callers elsewhere = new Callers("busy", MOST / 2, List.of(1, 4));
    Callers withSlow = new Callers("busy", 2, List.of(1, 3));
    Callers greedy = new Callers("greedy", GREEDY, List.of(2, 3));
    try (World world = new World(false)) {
      for (int i = 0; i < 8; i++) {
        try (Turn turn =
            world.turns.await("busy", 0, List.of(3), () -> true, () -> false).orElseThrow()) {
          turn.overloaded(Set.of(3));
        }
      }
      world.add(greedy);
      world.add(elsewhere);
      world.add(withSlow);
      int ofSlow = world.turnsOf(withSlow);
      assertThat(ofSlow).isGreaterThanOrEqualTo((ofSlow + world.granted(greedy)) / 3);
      assertThat(world.granted(elsewhere)).isGreaterThan(ofSlow);
    }
  }

  @Test
  void whoever_comes_finds_a_place_as_long_as_others_are_there() {
    Callers modest = new Callers("modest", 1, BOTH);
    try (World world = new World(true)) {
      world.add(modest);
      world.add(new Callers("greedy", GREEDY, BOTH));
      world.turnsOf(modest);
      int before = world.granted(modest);
      world.add(modest);
      assertThat(world.granted(modest)).as("no session had to end for it").isEqualTo(before + 1);
    }
  }
}
