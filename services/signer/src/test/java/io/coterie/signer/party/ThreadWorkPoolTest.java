package io.coterie.signer.party;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.signer.party.WorkPool.Lane;
import io.coterie.signer.party.WorkPool.Priority;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Work that takes long has threads of its own, with an order of its own. */
class ThreadWorkPoolTest {
  private static final int PATIENCE_SECONDS = 60;

  private final ThreadWorkPool pool = new ThreadWorkPool("test", 1, Duration.ZERO);
  private final LinkedBlockingQueue<String> done = new LinkedBlockingQueue<>();
  private final CountDownLatch release = new CountDownLatch(1);

  @AfterEach
  void close() {
    release.countDown();
    pool.close();
  }

  private Lane lane(Priority priority) {
    Lane lane = pool.lane();
    lane.priority(priority);
    return lane;
  }

  private String next() throws InterruptedException {
    String next = done.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
    assertThat(next).as("nothing was done").isNotNull();
    return next;
  }

  /** A task of that priority that ends when the test says so. */
  private void hold(Priority priority) throws InterruptedException {
    lane(priority)
        .execute(
            () -> {
              done.add("held");
              try {
                release.await();
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
              done.add("released");
            });
    assertThat(next()).isEqualTo("held");
  }

  @Test
  void long_work_delays_nothing_else() throws InterruptedException {
    hold(Priority.LONG);
    for (Priority each : new Priority[] {Priority.URGENT, Priority.BACKGROUND, Priority.LEISURE}) {
      lane(each).execute(() -> done.add(each.name()));
      assertThat(next()).isEqualTo(each.name());
    }
    // Nor does other work delay it.
    release.countDown();
    assertThat(next()).isEqualTo("released");
  }

  @Test
  void long_work_that_somebody_waits_for_comes_before_other_long_work()
      throws InterruptedException {
    hold(Priority.LONG_BACKGROUND);
    lane(Priority.LONG_BACKGROUND).execute(() -> done.add("nobody waits"));
    lane(Priority.LONG).execute(() -> done.add("somebody waits"));
    release.countDown();
    assertThat(next()).isEqualTo("released");
    assertThat(next()).isEqualTo("somebody waits");
    assertThat(next()).isEqualTo("nobody waits");
  }

  @Test
  void a_lane_keeps_its_order_when_it_changes_its_threads() throws InterruptedException {
    Lane lane = pool.lane();
    for (int i = 0; i < 6; i++) {
      Priority now = i % 2 == 0 ? Priority.LONG : Priority.URGENT;
      int number = i;
      lane.execute(
          () -> {
            done.add(number + " " + Thread.currentThread().getName().contains("-long-"));
            lane.priority(now);
          });
    }
    for (int i = 0; i < 6; i++) {
      assertThat(next()).isEqualTo(i + " " + (i % 2 == 1));
    }
  }
}
