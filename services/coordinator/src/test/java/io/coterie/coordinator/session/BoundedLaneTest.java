package io.coterie.coordinator.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class BoundedLaneTest {
  @Test
  void tasks_run_one_after_another_in_order_whatever_they_throw() throws Exception {
    AtomicInteger running = new AtomicInteger();
    List<Integer> order = new ArrayList<>();
    CountDownLatch done = new CountDownLatch(1);
    try (ExecutorService pool = Executors.newFixedThreadPool(4)) {
      BoundedLane lane = new BoundedLane(pool, 1000);
      for (int i = 0; i < 500; i++) {
        int n = i;
        assertThat(
                lane.offer(
                    () -> {
                      assertThat(running.incrementAndGet()).isEqualTo(1);
                      order.add(n);
                      running.decrementAndGet();
                      if (n % 100 == 99) {
                        throw new IllegalStateException("as told");
                      }
                    }))
            .isTrue();
      }
      lane.last(done::countDown);
      done.await();
    }
    assertThat(order).hasSize(500).isSorted();
  }

  @Test
  void an_error_of_the_jvm_ends_a_task_and_not_the_lane() {
    List<Runnable> pool = new ArrayList<>();
    BoundedLane lane = new BoundedLane(pool::add, 2);
    AtomicInteger released = new AtomicInteger();
    lane.offer(
        () -> {
          throw new StackOverflowError();
        });
    lane.last(released::incrementAndGet);
    pool.getFirst().run();
    assertThat(released).hasValue(1);
  }

  @Test
  void a_full_lane_refuses_but_always_takes_the_last_task() {
    List<Runnable> pool = new ArrayList<>();
    BoundedLane lane = new BoundedLane(pool::add, 2);
    AtomicInteger ran = new AtomicInteger();
    assertThat(lane.offer(ran::incrementAndGet)).isTrue();
    assertThat(lane.offer(ran::incrementAndGet)).isTrue();
    assertThat(lane.offer(ran::incrementAndGet)).isFalse();
    lane.last(ran::incrementAndGet);
    assertThat(pool).hasSize(1);
    pool.getFirst().run();
    assertThat(ran).hasValue(3);
  }
}
