package io.coterie.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Threads of the coordinator as steps of a schedule. */
class SimulatedThreadsTest {
  private static final long SECOND = 1_000_000_000L;

  private final Timeline timeline = new Timeline(0);
  private final SimulatedThreads threads = new SimulatedThreads(timeline, Chance.of(1));
  private final List<String> done = new ArrayList<>();

  private void pass(long seconds) {
    timeline.runUntil(timeline.nanos() + seconds * SECOND);
  }

  @Test
  void thread_waits_in_the_time_of_the_schedule() {
    threads.execute(
        () -> {
          done.add("begun");
          done.add("over " + threads.await(new CompletableFuture<>(), 10 * SECOND));
        });
    assertThat(done).isEmpty();
    pass(9);
    assertThat(done).containsExactly("begun");
    pass(2);
    assertThat(done).containsExactly("begun", "over false");
  }

  @Test
  void event_ends_a_wait_once_and_before_its_time() {
    CompletableFuture<Void> event = new CompletableFuture<>();
    threads.execute(
        () -> {
          done.add("first " + threads.await(event, 10 * SECOND));
          done.add("second " + threads.await(new CompletableFuture<>(), 60 * SECOND));
        });
    threads.execute(() -> event.complete(null));
    pass(1);
    assertThat(done).containsExactly("first true");
    pass(30);
    assertThat(done).containsExactly("first true");
    pass(30);
    assertThat(done).containsExactly("first true", "second false");
  }

  @Test
  void killed_process_does_nothing_further() {
    CompletableFuture<Void> event = new CompletableFuture<>();
    threads.execute(
        () -> {
          try {
            threads.await(event, 10 * SECOND);
            done.add("after the kill");
          } finally {
            done.add("unwound");
          }
        });
    pass(1);
    threads.execute(() -> done.add("never begun"));
    threads.kill();
    event.complete(null);
    pass(60);
    assertThat(done).containsExactly("unwound");
  }
}
