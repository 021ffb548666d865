package io.coterie.coordinator.custody.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The looks of one replica for work that nobody does. */
@Timeout(60)
class HandoverLooksTest implements Handover.Work {
  private final AtomicInteger unanswered = new AtomicInteger();

  /** Of each look, whether it was for this replica's own requests too. */
  private final List<Boolean> looks = new CopyOnWriteArrayList<>();

  private ExecutorService threads;
  private Handover handover;

  @BeforeEach
  void start() {
    threads = Executors.newVirtualThreadPerTaskExecutor();
    handover =
        new Handover(
            new ReplicaStore() {
              @Override
              public int seen() {
                return 1;
              }

              @Override
              public void leave() {}
            },
            List.of(this),
            Duration.ofSeconds(10),
            threads,
            ReplicaTime.ofMachine(),
            new CoordinatorMetrics(new SimpleMeterRegistry()));
  }

  @AfterEach
  void stop() {
    handover.stop();
    threads.close();
  }

  @Override
  public String metricLabel() {
    return CoordinatorMetrics.SIGNING_WORK;
  }

  @Override
  public int takeOver(boolean own) {
    looks.add(own);
    if (!own && unanswered.getAndSet(0) > 0) {
      throw new StoreUnavailableException("as told", new IllegalStateException());
    }
    return 0;
  }

  /** What that look has made this replica's would be left to nobody. */
  @Test
  void a_look_without_an_answer_is_followed_by_one_for_this_replicas_own_requests() {
    unanswered.set(1);
    handover.start();
    handover.ready();
    Awaitility.await().until(() -> looks.size() >= 4);
    assertThat(looks.subList(0, 4)).containsExactly(true, false, true, false);
  }
}
