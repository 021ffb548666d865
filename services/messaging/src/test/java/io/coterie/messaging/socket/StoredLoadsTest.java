package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.limit.Limits;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

class StoredLoadsTest {
  private static final long LOAD = 256 * 1024;

  /** Room for three loads, and not for a fourth. */
  private final StoredLoads loads = new StoredLoads(StoredLoads.COPIES * LOAD * 4 - 1);

  private final AtomicInteger loading = new AtomicInteger();
  private final CountDownLatch answer = new CountDownLatch(1);
  private final List<Thread> connections = new ArrayList<>();

  private void load(long bytes) {
    connections.add(
        Thread.ofPlatform()
            .start(
                () ->
                    loads.run(
                        bytes,
                        () -> {
                          loading.incrementAndGet();
                          try {
                            answer.await();
                          } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                          }
                        })));
  }

  /** Until none of them goes on before the database answers. */
  private void awaitStandstill() {
    Awaitility.await()
        .until(() -> connections.stream().allMatch(c -> c.getState() == Thread.State.WAITING));
  }

  private void answerAll() throws InterruptedException {
    answer.countDown();
    for (Thread connection : connections) {
      connection.join();
    }
    assertThat(loading).hasValue(connections.size());
  }

  @Test
  void connections_that_load_at_once_wait_for_their_turn() throws Exception {
    for (int i = 0; i < 20; i++) {
      load(LOAD);
    }
    awaitStandstill();
    assertThat(loading).hasValue(3);
    answerAll();
  }

  @Test
  void a_load_of_more_than_there_is_room_for_has_all_of_it() throws Exception {
    load(100 * LOAD);
    load(LOAD);
    awaitStandstill();
    assertThat(loading).hasValue(1);
    answerAll();
  }

  private static final int LOADS = 4;

  private final Limits limits =
      new Binder(new MapConfigurationPropertySource(Map.of())).bindOrCreate("none", Limits.class);
  private final StoredLoads byDefault = new StoredLoads(limits.loaded().toBytes());
  private final Phaser together = new Phaser(LOADS);

  /** Each of them begins when all others have. */
  @Test
  void four_loads_run_at_once_with_the_default() throws Exception {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> running = new ArrayList<>();
      for (int i = 0; i < LOADS; i++) {
        running.add(
            threads.submit(() -> byDefault.run(DeliveryWindow.LOAD_BYTES, this::awaitOthers)));
      }
      for (Future<?> load : running) {
        load.get();
      }
    }
    assertThat(together.getPhase()).isEqualTo(1);
  }

  private void awaitOthers() {
    try {
      together.awaitAdvanceInterruptibly(together.arrive(), 10, TimeUnit.SECONDS);
    } catch (InterruptedException | TimeoutException e) {
      throw new IllegalStateException("the others do not run", e);
    }
  }
}
