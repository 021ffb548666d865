package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

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
}
