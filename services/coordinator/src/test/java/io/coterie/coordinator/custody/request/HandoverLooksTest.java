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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A replica takes up what the database left alone. */
@Timeout(60)
class HandoverLooksTest implements Handover.Work {
  private final AtomicLong unanswered = new AtomicLong();
  private final AtomicInteger failing = new AtomicInteger();

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
    handover.start();
    handover.ready();
    Awaitility.await().until(() -> !looks.isEmpty());
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
    if (own && failing.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
      throw new StoreUnavailableException("as told", new IllegalStateException());
    }
    looks.add(own);
    return 0;
  }

  @Override
  public long unanswered() {
    return unanswered.get();
  }

  private long ownLooks() {
    return looks.stream().filter(own -> own).count();
  }

  @Test
  void what_the_database_has_stored_without_an_answer_is_looked_for_until_it_answers_and_once() {
    assertThat(ownLooks()).as("at the start").isEqualTo(1);
    failing.set(1);
    unanswered.set(3);
    Awaitility.await().atMost(20, TimeUnit.SECONDS).until(() -> ownLooks() == 2);
    int then = looks.size();
    Awaitility.await().atMost(20, TimeUnit.SECONDS).until(() -> looks.size() >= then + 2);
    assertThat(ownLooks()).isEqualTo(2);
  }
}
