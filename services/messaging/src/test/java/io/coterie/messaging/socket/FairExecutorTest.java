package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.limit.Source;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

class FairExecutorTest {
  private static final Source GREEDY = new Source.OfNetwork("192.0.2.1");
  private static final Source MODEST = new Source.OfNetwork("192.0.2.2");

  private static final Duration NEVER = Duration.ofHours(1);

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void sources_take_turns_and_their_tasks_keep_their_order() {
    try (FairExecutor executor = new FairExecutor("test", 1, 1, NEVER)) {
      List<String> ran = new CopyOnWriteArrayList<>();
      CountDownLatch begin = new CountDownLatch(1);
      CountDownLatch end = new CountDownLatch(5);
      CountDownLatch begun = new CountDownLatch(1);
      executor.execute(
          GREEDY,
          () -> {
            begun.countDown();
            await(begin);
          });
      await(begun);
      for (String task : List.of("greedy 1", "greedy 2", "greedy 3", "modest 1", "modest 2")) {
        executor.execute(
            task.startsWith("greedy") ? GREEDY : MODEST,
            () -> {
              ran.add(task);
              end.countDown();
            });
      }
      assertThat(executor.waiting()).isEqualTo(5);
      begin.countDown();
      await(end);
      assertThat(ran).containsExactly("modest 1", "greedy 1", "modest 2", "greedy 2", "greedy 3");
      assertThat(executor.waiting()).isZero();
    }
  }

  @Test
  void a_source_that_pauses_has_no_turn_until_its_time_is_over() {
    List<String> ran = new CopyOnWriteArrayList<>();
    try (FairExecutor executor = new FairExecutor("test", 1, 1, NEVER)) {
      executor.pause(GREEDY, NEVER);
      executor.execute(GREEDY, () -> ran.add("greedy"));
      CompletableFuture<Void> modest = new CompletableFuture<>();
      executor.execute(
          MODEST,
          () -> {
            ran.add("modest");
            modest.complete(null);
          });
      modest.orTimeout(60, TimeUnit.SECONDS).join();
      assertThat(ran).containsExactly("modest");
      assertThat(executor.waiting()).isEqualTo(1);

      executor.pause(MODEST, Duration.ofNanos(1));
      CompletableFuture<Void> again = new CompletableFuture<>();
      executor.execute(MODEST, () -> again.complete(null));
      again.orTimeout(60, TimeUnit.SECONDS).join();
    }
    Awaitility.await("nothing that was taken is lost").until(() -> ran.contains("greedy"));
  }

  @Test
  void a_task_that_has_more_to_do_waits_for_its_next_turn() {
    try (FairExecutor executor = new FairExecutor("test", 1, 1, NEVER)) {
      List<String> ran = new CopyOnWriteArrayList<>();
      CountDownLatch begin = new CountDownLatch(1);
      CountDownLatch end = new CountDownLatch(5);
      executor.repeat(
          GREEDY,
          () -> {
            await(begin);
            ran.add("greedy");
            end.countDown();
            return ran.size() < 5;
          });
      for (int i = 0; i < 2; i++) {
        executor.execute(
            MODEST,
            () -> {
              ran.add("modest");
              end.countDown();
            });
      }
      begin.countDown();
      await(end);
      assertThat(ran).containsExactly("greedy", "modest", "greedy", "modest", "greedy");
    }
  }

  @Test
  void a_task_hears_whether_others_wait_for_its_thread() {
    try (FairExecutor executor = new FairExecutor("test", 1, 1, NEVER)) {
      List<Boolean> heard = new CopyOnWriteArrayList<>();
      CountDownLatch begin = new CountDownLatch(1);
      CountDownLatch end = new CountDownLatch(2);
      executor.execute(
          GREEDY,
          () -> {
            heard.add(executor.turnsWait());
            await(begin);
            heard.add(executor.turnsWait());
            end.countDown();
          });
      Awaitility.await().until(() -> !heard.isEmpty());
      executor.execute(
          MODEST,
          () -> {
            heard.add(executor.turnsWait());
            end.countDown();
          });
      begin.countDown();
      await(end);
      assertThat(heard).containsExactly(false, true, false);
    }
  }

  @Test
  void a_task_that_has_more_to_do_needs_no_second_thread() {
    try (FairExecutor executor = new FairExecutor("test", 8, 8, NEVER)) {
      Set<Thread> threads = ConcurrentHashMap.newKeySet();
      AtomicInteger turns = new AtomicInteger();
      CompletableFuture<Void> end = new CompletableFuture<>();
      executor.repeat(
          GREEDY,
          () -> {
            threads.add(Thread.currentThread());
            if (turns.incrementAndGet() < 1_000) {
              return true;
            }
            end.complete(null);
            return false;
          });
      end.orTimeout(60, TimeUnit.SECONDS).join();
      assertThat(threads).hasSize(1);
    }
  }

  @Test
  void tasks_that_wait_when_it_is_closed_run_and_none_of_them_again() {
    CountDownLatch begin = new CountDownLatch(1);
    CountDownLatch ran = new CountDownLatch(3);
    try (FairExecutor executor = new FairExecutor("test", 1, 1, NEVER)) {
      for (Source source : List.of(GREEDY, GREEDY, MODEST)) {
        executor.repeat(
            source,
            () -> {
              await(begin);
              ran.countDown();
              return true;
            });
      }
    }
    begin.countDown();
    await(ran);
  }

  @Test
  void source_whose_task_took_long_still_has_one_share() {
    try (FairExecutor executor = new FairExecutor("test", 1, 1, Duration.ofMillis(200))) {
      CountDownLatch slow = new CountDownLatch(1);
      CountDownLatch begun = new CountDownLatch(1);
      CompletableFuture<Void> end = new CompletableFuture<>();
      AtomicInteger greedy = new AtomicInteger();
      AtomicInteger modest = new AtomicInteger();
      executor.repeat(
          GREEDY,
          () -> {
            begun.countDown();
            await(slow);
            greedy.incrementAndGet();
            return !end.isDone();
          });
      await(begun);
      // The line of the source has nothing but the task that does not count any more.
      for (Source source : List.of(GREEDY, MODEST)) {
        CountDownLatch ran = new CountDownLatch(1);
        executor.execute(source, ran::countDown);
        await(ran);
      }
      slow.countDown();
      executor.repeat(
          GREEDY,
          () -> {
            greedy.incrementAndGet();
            return !end.isDone();
          });
      Awaitility.await().until(() -> greedy.get() > 10);
      executor.repeat(
          MODEST,
          () -> {
            if (modest.incrementAndGet() == 1) {
              greedy.set(0);
            }
            if (modest.get() < 1_000) {
              return true;
            }
            end.complete(null);
            return false;
          });
      end.orTimeout(60, TimeUnit.SECONDS).join();
      assertThat(greedy.get()).isLessThan(1_100);
    }
  }

  @Test
  void task_that_gets_no_thread_waits_for_one() {
    AtomicInteger refused = new AtomicInteger(2);
    ThreadFactory factory =
        task -> {
          if (refused.getAndDecrement() > 0) {
            throw new OutOfMemoryError("unable to create native thread");
          }
          return new Thread(task);
        };
    try (FairExecutor executor = new FairExecutor("test", factory, 2, 1, Duration.ofMillis(20))) {
      List<String> ran = new CopyOnWriteArrayList<>();
      CountDownLatch end = new CountDownLatch(2);
      for (String task : List.of("first", "second")) {
        executor.execute(
            GREEDY,
            () -> {
              ran.add(task);
              end.countDown();
            });
      }
      await(end);
      assertThat(ran).containsExactly("first", "second");
      assertThat(executor.waiting()).isZero();
    }
  }

  @Test
  void tasks_that_do_not_end_leave_threads_to_other_sources() {
    try (FairExecutor executor = new FairExecutor("test", 3, 2, NEVER)) {
      CountDownLatch stuck = new CountDownLatch(1);
      for (int i = 0; i < 10; i++) {
        executor.execute(GREEDY, () -> await(stuck));
      }
      CompletableFuture<Void> ran = new CompletableFuture<>();
      executor.execute(MODEST, () -> ran.complete(null));
      ran.orTimeout(60, TimeUnit.SECONDS).join();
      Awaitility.await().until(() -> executor.waiting() == 8);
      stuck.countDown();
    }
  }

  @Test
  void tasks_that_keep_their_threads_for_long_keep_nobody_from_theirs() {
    try (FairExecutor executor = new FairExecutor("test", 2, 1, Duration.ofMillis(1))) {
      CountDownLatch stuck = new CountDownLatch(1);
      CountDownLatch begun = new CountDownLatch(6);
      for (int i = 0; i < 3; i++) {
        for (Source source : List.of(GREEDY, MODEST)) {
          executor.execute(
              source,
              () -> {
                begun.countDown();
                await(stuck);
              });
        }
      }
      await(begun);
      stuck.countDown();
    }
  }

  @Test
  void goes_on_after_a_task_that_fails() {
    try (FairExecutor executor = new FairExecutor("test", 1, 1, NEVER)) {
      CompletableFuture<Void> ran = new CompletableFuture<>();
      executor.execute(
          GREEDY,
          () -> {
            throw new IllegalStateException("as a test wants it");
          });
      executor.execute(GREEDY, () -> ran.complete(null));
      ran.orTimeout(60, TimeUnit.SECONDS).join();
    }
  }

  @Test
  void takes_nothing_when_it_is_closed() {
    FairExecutor executor = new FairExecutor("test", 1, 1, NEVER);
    executor.close();
    assertThatThrownBy(() -> executor.execute(GREEDY, () -> {}))
        .isInstanceOf(RejectedExecutionException.class);
  }
}
