package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.limit.Limits;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

class StoredLoadsTest {
  private static final int LOADS = 4;

  private final Limits limits =
      new Binder(new MapConfigurationPropertySource(Map.of())).bindOrCreate("none", Limits.class);
  private final StoredLoads loads = new StoredLoads(limits.loaded().toBytes());
  private final Phaser begun = new Phaser(LOADS);

  /** Each of them begins when all others have. */
  @Test
  void four_loads_run_at_once_with_the_default() throws Exception {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> running = new ArrayList<>();
      for (int i = 0; i < LOADS; i++) {
        running.add(threads.submit(() -> loads.run(DeliveryWindow.LOAD_BYTES, this::awaitOthers)));
      }
      for (Future<?> load : running) {
        load.get();
      }
    }
    assertThat(begun.getPhase()).isEqualTo(1);
  }

  private void awaitOthers() {
    try {
      begun.awaitAdvanceInterruptibly(begun.arrive(), 10, TimeUnit.SECONDS);
    } catch (InterruptedException | TimeoutException e) {
      throw new IllegalStateException("the others do not run", e);
    }
  }
}
