package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The thread that writes a party's file. */
@Timeout(60)
class CommitThreadTest {
  private final CommitThread thread = new CommitThread("test");
  private final List<String> ran = new CopyOnWriteArrayList<>();

  @Test
  void the_last_task_runs_after_all_others_but_the_delayed_ones() throws Exception {
    thread.after(Duration.ofHours(1), () -> ran.add("delayed"));
    thread.execute(
        () -> {
          throw new AssertionError("a task that fails keeps no later one from running");
        });
    thread.execute(() -> ran.add("a task"));
    assertThat(thread.close(() -> ran.add("last"), Duration.ofSeconds(50))).isTrue();
    assertThat(ran).containsExactly("a task", "last");
  }

  @Test
  void a_last_task_that_has_not_run_in_time_is_told() throws Exception {
    CountDownLatch gate = new CountDownLatch(1);
    CountDownLatch done = new CountDownLatch(1);
    thread.execute(
        () -> {
          try {
            gate.await();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
        });
    assertThat(thread.close(done::countDown, Duration.ofMillis(1))).isFalse();
    gate.countDown();
    done.await();
  }
}
