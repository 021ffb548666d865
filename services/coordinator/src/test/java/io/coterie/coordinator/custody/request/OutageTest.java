package io.coterie.coordinator.custody.request;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.coordinator.MemoryStores;
import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The requests of one replica after the database was away for all, by a clock of the test. */
@Timeout(60)
class OutageTest implements TestKind {
  private static final Duration GONE_AFTER = Duration.ofSeconds(5);
  private static final Duration OUTAGE = Duration.ofSeconds(6);

  /** The longest pause between two looks. */
  private static final Duration LOOK = Duration.ofMillis(250);

  private final TestTime time = new TestTime();
  private final MemoryStores database = new MemoryStores(time::nanos, GONE_AFTER);
  private final Replica here = database.replica("here");
  private final Replica other = database.replica("other");
  private final Stopping stopping = new Stopping();
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private final AtomicInteger works = new AtomicInteger();

  /** How often this replica has asked whether a request is its work. */
  private final AtomicInteger looks = new AtomicInteger();

  private final VerifiedIntent.Signing intent = newIntent();
  private final SigningRecord pending = prepare(intent, NOW);
  private final Requests<SigningRecord, VerifiedIntent.Signing, SigningRecord> requests =
      new Requests<>(
          this,
          new Requests.Services(
              _ -> intent,
              threads,
              stopping,
              new CoordinatorMetrics(new SimpleMeterRegistry()),
              Clock.fixed(NOW, ZoneOffset.UTC),
              time,
              new SecureRandom()),
          8);

  /** Time that passes only when the test says so. */
  private static final class TestTime implements ReplicaTime {
    private record Pause(long endNanos, CompletableFuture<Void> ended) {}

    private final List<Pause> pauses = new ArrayList<>();
    private long now = Long.MAX_VALUE - Duration.ofSeconds(10).toNanos();

    @Override
    public synchronized long nanos() {
      return now;
    }

    @Override
    public boolean await(CompletableFuture<?> event, long nanos) throws InterruptedException {
      CompletableFuture<Void> ended = new CompletableFuture<>();
      synchronized (this) {
        pauses.add(new Pause(now + nanos, ended));
      }
      boolean _ =
          ReplicaTime.ofMachine()
              .await(CompletableFuture.anyOf(event, ended), Duration.ofMinutes(1).toNanos());
      return event.isDone();
    }

    void pass(Duration passing) {
      List<Pause> over = new ArrayList<>();
      synchronized (this) {
        now += passing.toNanos();
        pauses.stream().filter(pause -> pause.endNanos - now <= 0).forEach(over::add);
        pauses.removeAll(over);
      }
      over.forEach(pause -> pause.ended.complete(null));
    }
  }

  private static VerifiedIntent.Signing newIntent() {
    String id = RequestId.next();
    return new VerifiedIntent.Signing(
        "wallet",
        ByteString.copyFromUtf8(id),
        SignedIntent.getDefaultInstance(),
        SigningIntent.newBuilder()
            .setRequestId(id)
            .setKey("keys/test")
            .setScheme(Scheme.SCHEME_ED25519)
            .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60))
            .build());
  }

  @Override
  public Claim<SigningRecord> store(SigningRecord prepared) {
    return here.signings()
        .claimOnce(prepared)
        .map(known -> new Claim<>(known, false))
        .orElseGet(() -> new Claim<>(prepared, true));
  }

  @Override
  public Optional<SigningRecord> find(String requester, String requestId) {
    return here.signings().find(SigningRecord.idOf(requester, requestId));
  }

  @Override
  public Optional<SigningRecord> take(SigningRecord request) {
    Optional<SigningRecord> taken = here.signings().take(request.id());
    looks.incrementAndGet();
    return taken;
  }

  @Override
  public boolean work(
      Run<SigningRecord> run, SigningRecord request, VerifiedIntent.Signing verified) {
    works.incrementAndGet();
    run.finish(here.signings().finish(TestKind.signed(request)));
    return true;
  }

  @Override
  public void refuse(Run<SigningRecord> run, SigningRecord request, Failure why) {
    throw new IllegalStateException("every intent is accepted");
  }

  /** The other replica works on the request, and both have been there for long. */
  @BeforeEach
  void begin() {
    for (int second = 0; second < 10; second++) {
      time.pass(Duration.ofSeconds(1));
      here.presence().seen();
      other.presence().seen();
    }
    assertThat(other.signings().claimOnce(pending)).isEmpty();
  }

  @AfterEach
  void stop() {
    stopping.begin();
    threads.shutdownNow();
    threads.close();
  }

  private Future<SigningRecord> ask() {
    Caller caller =
        new Caller(
            time.nanos() + Duration.ofMinutes(2).toNanos(),
            TraceContext.create(new SecureRandom()));
    Future<SigningRecord> answer = threads.submit(() -> requests.await(intent, caller));
    Awaitility.await().until(() -> looks.get() > 0);
    return answer;
  }

  /** This replica looks once more for the request, after its time has passed. */
  private void look(Duration passing) {
    int before = looks.get();
    time.pass(passing);
    Awaitility.await()
        .until(
            () -> {
              // Its thread may not have begun the pause yet that ends by this.
              time.pass(LOOK.dividedBy(10));
              return looks.get() > before || works.get() > 0;
            });
  }

  @Test
  void a_request_that_another_replica_works_on_after_the_outage_is_waited_for() throws Exception {
    Future<SigningRecord> answer = ask();
    look(OUTAGE);
    assertThat(works).as("the other one may be there").hasValue(0);
    here.presence().seen();
    look(LOOK);
    assertThat(works).as("it comes back later").hasValue(0);
    other.presence().seen();
    look(LOOK);
    SigningRecord end = other.signings().finish(TestKind.signed(pending));
    look(LOOK);
    assertThat(answer.get()).isEqualTo(end);
    assertThat(works).hasValue(0);
  }

  @Test
  void a_request_of_a_replica_that_stays_away_is_taken_over_in_bounded_time() throws Exception {
    Future<SigningRecord> answer = ask();
    look(OUTAGE);
    here.presence().seen();
    int seconds = 0;
    while (works.get() == 0) {
      look(LOOK);
      time.pass(Duration.ofSeconds(1));
      here.presence().seen();
      assertThat(++seconds).isLessThan(10);
    }
    assertThat(Duration.ofSeconds(seconds)).isGreaterThanOrEqualTo(GONE_AFTER.minusSeconds(1));
    assertThat(answer.get().state()).isEqualTo(Signing.State.SIGNED);
    assertThat(works).hasValue(1);
  }

  @Test
  void a_request_that_is_taken_up_after_the_outage_stays_with_the_other() {
    time.pass(OUTAGE);
    // As for a request that the database left alone.
    assertThat(requests.resume(pending, true)).isTrue();
    // Its own two looks, and one more when it leaves the request.
    Awaitility.await()
        .until(
            () -> {
              time.pass(LOOK);
              return looks.get() >= 3;
            });
    assertThat(requests.running()).isZero();
    assertThat(works).hasValue(0);
    other.presence().seen();
    assertThat(other.signings().take(pending.id())).contains(pending);
  }

  @Test
  void a_replica_that_starts_after_the_outage_resumes_its_own_work_alone() {
    SigningRecord own = prepare(newIntent(), NOW);
    assertThat(here.signings().claimOnce(own)).isEmpty();
    Set<UUID> taken = ConcurrentHashMap.newKeySet();
    AtomicInteger answered = new AtomicInteger();
    Handover handover =
        new Handover(
            here.presence(),
            List.of(
                new Handover.Work() {
                  @Override
                  public String metricLabel() {
                    return CoordinatorMetrics.SIGNING_WORK;
                  }

                  @Override
                  public int takeOver(boolean resuming) {
                    List<UUID> ids = here.signings().takeAll(resuming);
                    taken.addAll(ids);
                    answered.incrementAndGet();
                    return ids.size();
                  }
                }),
            threads,
            time,
            new CoordinatorMetrics(new SimpleMeterRegistry()));
    time.pass(OUTAGE);
    handover.start();
    handover.ready();
    Awaitility.await().until(() -> answered.get() > 0);
    assertThat(taken).containsExactly(own.id());
    Awaitility.await()
        .until(
            () -> {
              time.pass(LOOK);
              return taken.contains(pending.id());
            });
    handover.stop();
  }
}
