package io.coterie.coordinator.custody.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.rpc.Status;
import io.coterie.coordinator.MemoryStores;
import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
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
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The life cycle of requests, with stores in memory and work that the test scripts. */
@Timeout(60)
class RequestsTest {

  /** Works on a request; the contract is that of {@link RequestKind#work}. */
  @FunctionalInterface
  private interface Work<Q, V, R> {
    boolean on(Run<R> run, Q request, V intent) throws InterruptedException;
  }

  private static final Instant NOW = TestKind.NOW;

  /** Requests that one replica works on. */
  private static final int MOST = 64;

  private final MemoryStores database = new MemoryStores();
  private final Coordinator here = new Coordinator("here");
  private final Coordinator other = new Coordinator("other");
  private ExecutorService callers;

  /** One replica. */
  private final class Coordinator implements TestKind {
    final AtomicInteger works = new AtomicInteger();
    final AtomicInteger unavailable = new AtomicInteger();
    final Stopping stopping = new Stopping();

    /** Whether a crash of the database has lost all requests. */
    volatile boolean lost;

    /** Runs before a request is looked for. */
    volatile Runnable looking = () -> {};

    volatile Consumer<Throwable> uncaught = failure -> {};
    final ExecutorService threads =
        Executors.newThreadPerTaskExecutor(
            Thread.ofVirtual()
                .uncaughtExceptionHandler((thread, failure) -> uncaught.accept(failure))
                .factory());

    /** Begins the work on a request. */
    volatile Executor beginning = threads;

    final Replica stores;
    final Requests<SigningRecord, VerifiedIntent.Signing, SigningRecord> requests;
    volatile Supplier<RuntimeException> refusal = () -> null;
    volatile Work<SigningRecord, VerifiedIntent.Signing, SigningRecord> work =
        (run, request, intent) -> sign(run, request);

    Coordinator(String name) {
      stores = database.replica(name);
      stores.presence().seen();
      requests =
          new Requests<>(
              this,
              new Requests.Services(
                  signed -> intent(signed.getPayload().toStringUtf8()),
                  task -> beginning.execute(task),
                  stopping,
                  new CoordinatorMetrics(new SimpleMeterRegistry()),
                  Clock.fixed(NOW, ZoneOffset.UTC),
                  ReplicaTime.ofMachine(),
                  new SecureRandom()),
              MOST);
    }

    boolean sign(Run<SigningRecord> run, SigningRecord request) throws InterruptedException {
      SigningRecord signed = TestKind.signed(request);
      run.finish(
          requests.persistently(
              () -> {
                requireDatabase();
                return stores.signings().finish(signed);
              }));
      return true;
    }

    private void requireDatabase() {
      if (unavailable.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
        throw new StoreUnavailableException("as told", new IllegalStateException());
      }
    }

    @Override
    public String resource(VerifiedIntent.Signing intent) {
      return intent.key();
    }

    @Override
    public SigningRecord prepare(VerifiedIntent.Signing intent, Instant now) {
      RuntimeException refused = refusal.get();
      if (refused != null) {
        throw refused;
      }
      return TestKind.super.prepare(intent, now);
    }

    @Override
    public Claim<SigningRecord> store(SigningRecord prepared) {
      requests.requirePlace(prepared);
      return stores
          .signings()
          .claimOnce(prepared)
          .map(known -> new Claim<>(known, false))
          .orElseGet(() -> new Claim<>(prepared, true));
    }

    @Override
    public Optional<SigningRecord> find(String requester, String requestId) {
      looking.run();
      return lost
          ? Optional.empty()
          : stores.signings().find(SigningRecord.idOf(requester, requestId));
    }

    @Override
    public Optional<SigningRecord> take(SigningRecord request) {
      requireDatabase();
      return stores.signings().take(request.id());
    }

    @Override
    public boolean work(
        Run<SigningRecord> run, SigningRecord request, VerifiedIntent.Signing intent)
        throws InterruptedException {
      works.incrementAndGet();
      return work.on(run, request, intent);
    }

    @Override
    public void refuse(Run<SigningRecord> run, SigningRecord request, Failure why) {
      run.finish(stores.signings().finish(request.unknown(why.toStatus(), 0, NOW)));
    }
  }

  private final Map<String, VerifiedIntent.Signing> known = new ConcurrentHashMap<>();

  private VerifiedIntent.Signing intent(String payload) {
    VerifiedIntent.Signing intent = known.get(payload);
    if (intent == null) {
      throw new CustodyException(ErrorReason.UNKNOWN_REQUESTER);
    }
    return intent;
  }

  private VerifiedIntent.Signing intent(String requestId, String payload, Instant notAfter) {
    return intent("wallet", requestId, payload, notAfter);
  }

  private VerifiedIntent.Signing intent(
      String requester, String requestId, String payload, Instant notAfter) {
    SigningIntent intent =
        SigningIntent.newBuilder()
            .setRequestId(requestId)
            .setKey("keys/test")
            .setScheme(Scheme.SCHEME_ED25519)
            .setNotAfter(Timestamp.newBuilder().setSeconds(notAfter.getEpochSecond()))
            .build();
    VerifiedIntent.Signing verified =
        new VerifiedIntent.Signing(
            requester,
            ByteString.copyFromUtf8(payload),
            SignedIntent.newBuilder().setPayload(ByteString.copyFromUtf8(payload)).build(),
            intent);
    known.put(payload, verified);
    return verified;
  }

  private VerifiedIntent.Signing intent() {
    String id = RequestId.next();
    return intent(id, id, NOW.plusSeconds(60));
  }

  private static Caller caller(Duration patience) {
    return new Caller(
        System.nanoTime() + patience.toNanos(), TraceContext.create(new SecureRandom()));
  }

  private static Caller patient() {
    return caller(Duration.ofSeconds(50));
  }

  /** A call at that replica, which is in the middle of such work on it. */
  private Future<SigningRecord> begins(
      Coordinator at,
      VerifiedIntent.Signing intent,
      Work<SigningRecord, VerifiedIntent.Signing, SigningRecord> work)
      throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    at.work =
        (run, request, verified) -> {
          begun.countDown();
          return work.on(run, request, verified);
        };
    Future<SigningRecord> call = callers.submit(() -> at.requests.await(intent, patient()));
    begun.await();
    return call;
  }

  private static void refuses(ErrorReason reason, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            CustodyException.class, e -> assertThat(e.reason()).isEqualTo(reason));
  }

  /** Work waits for it. */
  private CountDownLatch held = new CountDownLatch(0);

  @BeforeEach
  void open() {
    callers = Executors.newVirtualThreadPerTaskExecutor();
  }

  @AfterEach
  void close() {
    // Else the work of a test that has failed would never end.
    held.countDown();
    here.stopping.begin();
    other.stopping.begin();
    callers.shutdownNow();
    here.threads.close();
    other.threads.close();
  }

  /** A replica that was suspended comes back with a failure, and another one works by then. */
  @Test
  void a_late_replica_ends_nothing_that_another_one_works_on() throws Exception {
    VerifiedIntent.Signing intent = intent();
    UUID id = SigningRecord.idOf(intent.requester(), intent.requestId());
    CountDownLatch late = new CountDownLatch(1);
    Future<SigningRecord> answer =
        begins(
            here,
            intent,
            (run, request, verified) -> {
              here.stores.presence().leave();
              assertThat(other.stores.signings().take(id)).isPresent();
              Status why = Failure.of(ErrorReason.DRAINING, request.resource()).toStatus();
              SigningRecord failed = request.unknown(why, 1, NOW);
              here.requests.end(
                  run,
                  failed,
                  () -> {
                    boolean ended = here.stores.signings().finish(failed).equals(failed);
                    late.countDown();
                    return ended;
                  },
                  () -> run.finish(failed));
              return true;
            });
    late.await();
    other.requests.resume(other.stores.signings().find(id).orElseThrow(), true);
    assertThat(answer.get().state()).isEqualTo(Signing.State.SIGNED);
    assertThat(other.works.get()).isEqualTo(1);
  }

  /** The database lost the request, and another intent came under its id. */
  @Test
  void the_end_of_another_intent_is_nobody_elses() throws Exception {
    String id = RequestId.next();
    VerifiedIntent.Signing lost = intent(id, "lost " + id, NOW.plusSeconds(60));
    VerifiedIntent.Signing next = intent(id, "next " + id, NOW.plusSeconds(60));
    other.requests.await(next, patient());
    SigningRecord pending = here.prepare(lost, NOW);
    Run<SigningRecord> run =
        new Run<>(pending.resource(), patient(), ReplicaTime.ofMachine(), ended -> {});
    SigningRecord failed =
        pending.unknown(Failure.of(ErrorReason.DRAINING, pending.resource()).toStatus(), 1, NOW);
    here.requests.end(
        run,
        failed,
        () -> here.stores.signings().finish(failed).equals(failed),
        () -> run.finish(failed));
    refuses(ErrorReason.REQUEST_ID_REUSED, () -> run.await(patient()));
  }

  @Test
  void a_requester_leaves_places_to_others() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    held = go;
    here.work =
        (run, request, verified) -> {
          go.await();
          return here.sign(run, request);
        };
    List<Future<SigningRecord>> answers = new ArrayList<>();
    for (int i = 0; i < MOST * 7 / 8; i++) {
      VerifiedIntent.Signing intent = intent();
      answers.add(callers.submit(() -> here.requests.await(intent, patient())));
      int running = i + 1;
      Awaitility.await().until(() -> here.requests.running("wallet") == running);
    }
    VerifiedIntent.Signing more = intent();
    refuses(ErrorReason.REQUESTER_OVERLOADED, () -> here.requests.await(more, patient()));
    VerifiedIntent.Signing others =
        intent("treasury", RequestId.next(), "of another", NOW.plusSeconds(60));
    answers.add(callers.submit(() -> here.requests.await(others, patient())));
    Awaitility.await().until(() -> here.works.get() == answers.size());
    assertThat(here.requests.running("treasury")).isEqualTo(1);
    go.countDown();
    for (Future<SigningRecord> answer : answers) {
      assertThat(answer.get().state()).isEqualTo(Signing.State.SIGNED);
    }
    assertThat(here.requests.running("wallet")).isZero();
    assertThat(here.requests.await(more, patient()).state()).isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void callers_with_one_request_share_one_work_and_its_end() throws Exception {
    VerifiedIntent.Signing intent = intent();
    CountDownLatch go = new CountDownLatch(1);
    here.work =
        (run, request, verified) -> {
          go.await();
          return here.sign(run, request);
        };
    List<Future<SigningRecord>> answers = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      answers.add(callers.submit(() -> here.requests.await(intent, patient())));
    }
    go.countDown();
    for (Future<SigningRecord> answer : answers) {
      assertThat(answer.get()).isEqualTo(answers.getFirst().get());
    }
    assertThat(here.requests.await(intent, patient())).isEqualTo(answers.getFirst().get());
    assertThat(here.works).hasValue(1);
    assertThat(here.requests.running()).isZero();
  }

  @Test
  void another_intent_under_a_known_request_id_is_refused() throws Exception {
    VerifiedIntent.Signing intent = intent();
    here.requests.await(intent, patient());
    VerifiedIntent.Signing different = intent(intent.requestId(), "different", NOW.plusSeconds(60));
    refuses(ErrorReason.REQUEST_ID_REUSED, () -> here.requests.await(different, patient()));
    here.refusal = () -> new CustodyException(ErrorReason.KEY_NOT_FOUND);
    refuses(ErrorReason.REQUEST_ID_REUSED, () -> here.requests.await(different, patient()));
    assertThat(here.works).hasValue(1);
  }

  @Test
  void a_stored_request_is_answered_even_if_it_would_not_be_accepted_any_more() throws Exception {
    VerifiedIntent.Signing intent = intent();
    SigningRecord signed = here.requests.await(intent, patient());
    here.refusal = () -> new CustodyException(ErrorReason.KEY_NOT_FOUND);
    assertThat(here.requests.await(intent, patient())).isEqualTo(signed);
    VerifiedIntent.Signing expired =
        intent(intent.requestId(), intent.requestId(), NOW.minusSeconds(60));
    assertThat(here.requests.await(expired, patient())).isEqualTo(signed);
    here.stopping.begin();
    assertThat(here.requests.await(intent, patient())).isEqualTo(signed);
  }

  @Test
  void a_request_that_is_refused_is_not_stored() {
    String id = RequestId.next();
    refuses(
        ErrorReason.INTENT_EXPIRED,
        () -> here.requests.await(intent(id, id, NOW.minusSeconds(60)), patient()));
    VerifiedIntent.Signing intent = intent();
    here.refusal = () -> new CustodyException(ErrorReason.KEY_NOT_FOUND);
    refuses(ErrorReason.KEY_NOT_FOUND, () -> here.requests.await(intent, patient()));
    here.refusal = () -> null;
    here.stopping.begin();
    refuses(ErrorReason.DRAINING, () -> here.requests.await(intent, patient()));
    assertThat(here.stores.signings().takeAll(true)).isEmpty();
    assertThat(here.requests.running()).isZero();
  }

  @Test
  void a_caller_whose_time_is_up_learns_the_last_failure_and_the_work_goes_on() throws Exception {
    VerifiedIntent.Signing intent = intent();
    CountDownLatch failed = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    here.work =
        (run, request, verified) -> {
          run.failedFor(Failure.outOfReach(run.resource, List.of("p2")));
          failed.countDown();
          go.await();
          return here.sign(run, request);
        };
    Future<SigningRecord> patient = callers.submit(() -> here.requests.await(intent, patient()));
    failed.await();
    refuses(
        ErrorReason.QUORUM_UNAVAILABLE, () -> here.requests.await(intent, caller(Duration.ZERO)));
    go.countDown();
    assertThat(patient.get().state()).isEqualTo(Signing.State.SIGNED);
    assertThat(here.works).hasValue(1);
  }

  @Test
  void a_replica_waits_for_the_end_of_anothers_work() throws Exception {
    VerifiedIntent.Signing intent = intent();
    CountDownLatch go = new CountDownLatch(1);
    Future<SigningRecord> there =
        begins(
            other,
            intent,
            (run, request, verified) -> {
              go.await();
              return other.sign(run, request);
            });
    Future<SigningRecord> waiting = callers.submit(() -> here.requests.await(intent, patient()));
    go.countDown();
    assertThat(waiting.get()).isEqualTo(there.get());
    assertThat(here.works).hasValue(0);
  }

  @Test
  void a_request_that_is_only_waited_for_takes_no_place() throws Exception {
    VerifiedIntent.Signing intent = intent();
    CountDownLatch go = new CountDownLatch(1);
    held = go;
    Future<SigningRecord> there =
        begins(
            other,
            intent,
            (run, request, verified) -> {
              go.await();
              return other.sign(run, request);
            });
    SigningRecord pending = other.find(intent.requester(), intent.requestId()).orElseThrow();
    CompletableFuture<Integer> places = new CompletableFuture<>();
    here.beginning =
        task -> {
          places.complete(here.requests.running("wallet"));
          here.threads.execute(task);
        };
    Future<SigningRecord> waiting = callers.submit(() -> here.requests.await(pending, patient()));
    assertThat(places.get()).isZero();
    go.countDown();
    assertThat(waiting.get()).isEqualTo(there.get());
  }

  @Test
  void a_replica_takes_the_work_over_when_the_other_has_left() throws Exception {
    VerifiedIntent.Signing intent = intent();
    Future<SigningRecord> lost =
        begins(
            other,
            intent,
            (run, request, verified) -> {
              new CountDownLatch(1).await();
              return true;
            });
    CompletableFuture<Integer> places = new CompletableFuture<>();
    here.work =
        (run, request, verified) -> {
          places.complete(here.requests.running("wallet"));
          return here.sign(run, request);
        };
    Future<SigningRecord> waiting = callers.submit(() -> here.requests.await(intent, patient()));
    Awaitility.await()
        .until(() -> here.requests.running() == 1 && here.requests.running("wallet") == 0);
    other.threads.shutdownNow();
    other.stores.presence().leave();
    assertThat(waiting.get().state()).isEqualTo(Signing.State.SIGNED);
    assertThat(here.works).hasValue(1);
    assertThat(places.get()).as("work has a place, other than waiting").isEqualTo(1);
    assertThat(here.requests.running("wallet")).isZero();
    assertThatThrownBy(lost::get)
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOfSatisfying(
            CustodyException.class, e -> assertThat(e.reason()).isEqualTo(ErrorReason.DRAINING));
  }

  @Test
  void work_that_was_lost_to_another_replica_becomes_waiting() throws Exception {
    VerifiedIntent.Signing intent = intent();
    here.work =
        (run, request, verified) -> {
          // This process was suspended for so long that the other one has taken its work.
          here.stores.presence().leave();
          assertThat(other.stores.signings().take(request.id())).isPresent();
          assertThat(here.requests.isMine(request)).isFalse();
          other.requests.resume(request, true);
          return false;
        };
    assertThat(here.requests.await(intent, patient()).state()).isEqualTo(Signing.State.SIGNED);
    assertThat(here.works).hasValue(1);
    assertThat(other.works).hasValue(1);
  }

  @Test
  void an_end_waits_for_the_database_to_come_back() throws Exception {
    VerifiedIntent.Signing intent = intent();
    here.unavailable.set(3);
    assertThat(here.requests.await(intent, patient()).state()).isEqualTo(Signing.State.SIGNED);
    assertThat(here.unavailable).hasValue(0);
  }

  @Test
  void an_end_that_the_database_refuses_gives_way_to_the_one_that_is_stored() throws Exception {
    VerifiedIntent.Signing intent = intent();
    here.work =
        (run, request, verified) -> {
          // Suspended before it could store its end: the other replica has ended the request.
          here.stores.presence().leave();
          other.requests.resume(other.take(request).orElseThrow(), true);
          SigningRecord theirs = other.requests.await(request, patient());
          here.requests.end(
              run,
              request,
              () ->
                  !here.find(request.requester(), request.requestId()).equals(Optional.of(theirs)),
              () -> run.fail(new IllegalStateException("an end that was not stored")));
          return true;
        };
    SigningRecord end = here.requests.await(intent, patient());
    assertThat(end.state()).isEqualTo(Signing.State.SIGNED);
    assertThat(other.requests.await(intent, patient())).isEqualTo(end);
  }

  @Test
  void a_request_that_the_database_has_lost_before_its_end_is_stored_again() throws Exception {
    VerifiedIntent.Signing intent = intent();
    AtomicInteger ended = new AtomicInteger();
    here.work =
        (run, request, verified) -> {
          if (here.works.get() > 1) {
            return here.sign(run, request);
          }
          here.lost = true;
          here.requests.end(run, request, () -> false, ended::incrementAndGet);
          here.lost = false;
          return true;
        };
    assertThat(here.requests.await(intent, patient()).state()).isEqualTo(Signing.State.SIGNED);
    assertThat(ended).hasValue(0);
    assertThat(here.works).hasValue(2);
  }

  /** Else its caller would look for it without a pause. */
  @Test
  void a_request_that_the_database_has_lost_is_not_waited_for() {
    SigningRecord lost = here.prepare(intent(), NOW);
    refuses(
        ErrorReason.END_UNKNOWN, () -> here.requests.await(lost, caller(Duration.ofSeconds(5))));
    assertThat(here.requests.running()).isZero();
  }

  /** That caller brings the intent with which it is stored again. */
  @Test
  void a_lost_request_is_stored_again_by_a_caller_who_joins_while_it_is_looked_for()
      throws Exception {
    VerifiedIntent.Signing intent = intent();
    CompletableFuture<Thread> joining = new CompletableFuture<>();
    CompletableFuture<SigningRecord> joined = new CompletableFuture<>();
    here.looking =
        () -> {
          here.looking = () -> {};
          callers.execute(
              () -> {
                joining.complete(Thread.currentThread());
                try {
                  joined.complete(here.requests.await(intent, patient()));
                } catch (InterruptedException | RuntimeException e) {
                  joined.completeExceptionally(e);
                }
              });
          Thread caller = joining.join();
          Awaitility.await().until(() -> caller.getState() == Thread.State.TIMED_WAITING);
        };
    refuses(
        ErrorReason.END_UNKNOWN, () -> here.requests.await(here.prepare(intent, NOW), patient()));
    assertThat(joined.get().state()).isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void work_that_an_error_of_the_machine_ends_is_told_and_not_taken_up_again() throws Exception {
    VerifiedIntent.Signing intent = intent();
    CompletableFuture<Throwable> thrown = new CompletableFuture<>();
    here.uncaught = thrown::complete;
    here.work =
        (run, request, verified) -> {
          throw new StackOverflowError("as told");
        };
    assertThatThrownBy(() -> here.requests.await(intent, patient()))
        .isInstanceOf(IllegalStateException.class)
        .hasRootCauseInstanceOf(StackOverflowError.class);
    assertThat(thrown.get()).as("the machine hears of it too").isInstanceOf(Error.class);
    here.threads.shutdown();
    assertThat(here.threads.awaitTermination(50, TimeUnit.SECONDS)).isTrue();
    assertThat(here.works).hasValue(1);
    assertThat(here.requests.running()).isZero();
  }

  @Test
  void a_request_is_taken_up_once_the_database_answers() throws Exception {
    VerifiedIntent.Signing intent = intent();
    SigningRecord pending = other.prepare(intent, NOW);
    assertThat(other.stores.signings().claimOnce(pending)).isEmpty();
    CountDownLatch worked = new CountDownLatch(1);
    here.work =
        (run, request, verified) -> {
          worked.countDown();
          return here.sign(run, request);
        };
    other.stores.presence().leave();
    // The caller is told so; the next two looks at the store fail as well.
    here.unavailable.set(3);
    assertThatThrownBy(() -> here.requests.await(intent, patient()))
        .isInstanceOf(StoreUnavailableException.class);
    assertThat(worked.await(50, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void a_resumed_request_whose_intent_is_not_accepted_any_more_has_failed() throws Exception {
    VerifiedIntent.Signing intent = intent();
    SigningRecord pending = here.prepare(intent, NOW);
    here.stores.signings().claimOnce(pending);
    known.clear();
    here.requests.resume(pending, true);
    SigningRecord failed = here.requests.await(pending, patient());
    assertThat(failed.state()).isEqualTo(Signing.State.UNKNOWN);
    assertThat(here.works).hasValue(0);
  }

  @Test
  void callers_of_a_replica_that_stops_are_sent_to_another_one() throws Exception {
    VerifiedIntent.Signing intent = intent();
    Future<SigningRecord> answer =
        begins(
            here,
            intent,
            (run, request, verified) -> {
              while (!here.stopping.hasBegun()) {
                new Pace(here.stopping, ReplicaTime.ofMachine()).pause();
              }
              run.drain();
              return true;
            });
    here.stopping.begin();
    assertThatThrownBy(answer::get)
        .cause()
        .isInstanceOfSatisfying(
            CustodyException.class, e -> assertThat(e.reason()).isEqualTo(ErrorReason.DRAINING));
    here.stores.presence().leave();
    assertThat(other.requests.await(intent, patient()).state()).isEqualTo(Signing.State.SIGNED);
  }
}
