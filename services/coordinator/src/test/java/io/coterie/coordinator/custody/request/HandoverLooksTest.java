package io.coterie.coordinator.custody.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.List;
import java.util.concurrent.CompletableFuture;
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

  private final AtomicInteger heartbeats = new AtomicInteger();

  /** A look has its answer only then. */
  private volatile CompletableFuture<Void> answers = CompletableFuture.completedFuture(null);

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
                heartbeats.incrementAndGet();
                return 1;
              }

              @Override
              public void leave() {}
            },
            List.of(this),
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
    answers.join();
    if (!own && unanswered.getAndSet(0) > 0) {
      throw new StoreUnavailableException("as told", new IllegalStateException());
    }
    return 0;
  }

  /** Else nobody would do the work that the lost look has made this replica's. */
  @Test
  void a_look_without_an_answer_is_followed_by_two_for_this_replicas_own_requests() {
    unanswered.set(1);
    handover.start();
    handover.ready();
    Awaitility.await().until(() -> looks.size() >= 5);
    assertThat(looks.subList(0, 5))
        .as("while the first looks, the lost statement may still have the rows locked")
        .containsExactly(true, false, true, true, false);
  }

  @Test
  void a_replica_that_waits_for_the_work_of_others_is_there_meanwhile() {
    CompletableFuture<Void> answer = new CompletableFuture<>();
    answers = answer;
    handover.start();
    handover.ready();
    Awaitility.await().until(() -> looks.size() == 1);
    int before = heartbeats.get();
    Awaitility.await().until(() -> heartbeats.get() >= before + 2);
    assertThat(looks).as("one look at a time").hasSize(1);
    answer.complete(null);
    Awaitility.await().until(() -> looks.size() >= 2);
  }
}
