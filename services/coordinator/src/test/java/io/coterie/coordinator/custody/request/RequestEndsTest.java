package io.coterie.coordinator.custody.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
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
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests that the database left alone have an end, and nobody asks for them again. */
@Timeout(60)
class RequestEndsTest implements TestKind {

  /** Requests that are worked on at once. */
  private static final int MOST = 8;

  /** Of these, the most that one requester may have. */
  private static final int MOST_OF_ONE = 7;

  /** The pauses before looks. */
  private static final Set<Duration> LOOKS =
      Set.of(
          Duration.ofSeconds(1),
          Duration.ofSeconds(2),
          Duration.ofSeconds(4),
          Duration.ofSeconds(8));

  private final List<Long> paused = new CopyOnWriteArrayList<>();

  /** Looks that fail in another way. */
  private final AtomicInteger broken = new AtomicInteger();

  /** Another replica works on all requests. */
  private volatile boolean others;

  /** Pauses are that much shorter here. */
  private static final int FASTER = 20;

  private final Replica stores = new MemoryStores().replica("here");
  private final Stopping stopping = new Stopping();
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private final Map<String, VerifiedIntent.Signing> known = new ConcurrentHashMap<>();
  private final AtomicInteger works = new AtomicInteger();

  /** Claims that are stored without an answer, claims that are not, and works that are stopped. */
  private final AtomicInteger unanswered = new AtomicInteger();

  private final AtomicInteger away = new AtomicInteger();
  private final AtomicInteger stopped = new AtomicInteger();

  /** A pause ends only then. */
  private volatile CompletableFuture<Void> pauses = CompletableFuture.completedFuture(null);

  private final Requests<SigningRecord, VerifiedIntent.Signing, SigningRecord> requests =
      new Requests<>(
          this,
          new Requests.Services(
              signed -> Objects.requireNonNull(known.get(signed.getPayload().toStringUtf8())),
              threads,
              stopping,
              new CoordinatorMetrics(new SimpleMeterRegistry()),
              Clock.fixed(NOW, ZoneOffset.UTC),
              new Fast(),
              new SecureRandom()),
          MOST);

  /** The time of this machine, in which pauses are short. */
  private final class Fast implements ReplicaTime {
    @Override
    public long nanos() {
      return System.nanoTime();
    }

    @Override
    public boolean await(CompletableFuture<?> event, long nanos) throws InterruptedException {
      if (LOOKS.contains(Duration.ofNanos(nanos))) {
        paused.add(nanos);
        CompletableFuture<Object> go = CompletableFuture.anyOf(pauses, stopping.event());
        boolean _ = ReplicaTime.ofMachine().await(go, Duration.ofMinutes(1).toNanos());
        return ReplicaTime.ofMachine().await(event, nanos / FASTER);
      }
      return ReplicaTime.ofMachine().await(event, nanos);
    }
  }

  private static void fails(AtomicInteger times) {
    if (times.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
      throw new StoreUnavailableException("as told", new IllegalStateException());
    }
  }

  @Override
  public Claim<SigningRecord> store(SigningRecord prepared) {
    requests.requirePlace(prepared);
    fails(away);
    Optional<SigningRecord> stored = stores.signings().claimOnce(prepared);
    fails(unanswered);
    return new Claim<>(stored.orElse(prepared), stored.isEmpty());
  }

  @Override
  public Optional<SigningRecord> find(String requester, String requestId) {
    if (broken.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
      throw new IllegalStateException("as told");
    }
    return stores.signings().find(SigningRecord.idOf(requester, requestId));
  }

  @Override
  public Optional<SigningRecord> take(SigningRecord request) {
    return others ? Optional.empty() : stores.signings().take(request.id());
  }

  @Override
  public boolean work(
      Run<SigningRecord> run, SigningRecord request, VerifiedIntent.Signing intent) {
    works.incrementAndGet();
    fails(stopped);
    run.finish(stores.signings().finish(TestKind.signed(request)));
    return true;
  }

  @Override
  public void refuse(Run<SigningRecord> run, SigningRecord request, Failure why) {
    throw new IllegalStateException("every intent is accepted");
  }

  private VerifiedIntent.Signing intent() {
    return intent("wallet");
  }

  private VerifiedIntent.Signing intent(String requester) {
    String id = RequestId.next();
    SigningIntent intent =
        SigningIntent.newBuilder()
            .setRequestId(id)
            .setKey("keys/test")
            .setScheme(Scheme.SCHEME_ED25519)
            .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60))
            .build();
    VerifiedIntent.Signing verified =
        new VerifiedIntent.Signing(
            requester,
            ByteString.copyFromUtf8(id),
            SignedIntent.newBuilder().setPayload(ByteString.copyFromUtf8(id)).build(),
            intent);
    known.put(id, verified);
    return verified;
  }

  private SigningRecord ask(VerifiedIntent.Signing intent) throws InterruptedException {
    long until = System.nanoTime() + Duration.ofSeconds(50).toNanos();
    return requests.await(intent, new Caller(until, TraceContext.create(new SecureRandom())));
  }

  private void isUnanswered(VerifiedIntent.Signing intent) {
    assertThatThrownBy(() -> ask(intent)).isInstanceOf(StoreUnavailableException.class);
  }

  private Optional<Signing.State> state(VerifiedIntent.Signing intent) {
    return stores
        .signings()
        .find(SigningRecord.idOf(intent.requester(), intent.requestId()))
        .map(SigningRecord::state);
  }

  private void isSigned(VerifiedIntent.Signing intent) {
    Awaitility.await()
        .untilAsserted(() -> assertThat(state(intent)).contains(Signing.State.SIGNED));
  }

  @AfterEach
  void stop() {
    stopping.begin();
    threads.close();
  }

  @Test
  void a_request_whose_claim_had_no_answer_has_an_end() {
    VerifiedIntent.Signing intent = intent();
    unanswered.set(1);
    isUnanswered(intent);
    isSigned(intent);
    assertThat(works).hasValue(1);
  }

  @Test
  void a_request_whose_work_the_database_stopped_has_an_end() {
    VerifiedIntent.Signing intent = intent();
    stopped.set(3);
    isUnanswered(intent);
    isSigned(intent);
    assertThat(works).hasValue(4);
  }

  @Test
  void a_request_that_a_client_repeats_before_the_look_is_worked_on_once() throws Exception {
    CompletableFuture<Void> go = new CompletableFuture<>();
    pauses = go;
    VerifiedIntent.Signing intent = intent();
    unanswered.set(1);
    isUnanswered(intent);
    assertThat(ask(intent).state()).isEqualTo(Signing.State.SIGNED);
    go.complete(null);
    VerifiedIntent.Signing later = intent();
    unanswered.set(1);
    isUnanswered(later);
    isSigned(later);
    assertThat(works).hasValue(2);
  }

  /** It was this replica's when it was read, and ended before its run began. */
  @Test
  void a_request_that_has_ended_meanwhile_is_not_worked_on_again() throws Exception {
    VerifiedIntent.Signing intent = intent();
    assertThat(ask(intent).state()).isEqualTo(Signing.State.SIGNED);
    assertThat(requests.resume(prepare(intent, NOW), true)).isTrue();
    Awaitility.await().until(() -> requests.running() == 0);
    assertThat(works).hasValue(1);
  }

  private void isRefused(VerifiedIntent.Signing intent, ErrorReason reason) {
    assertThatThrownBy(() -> ask(intent))
        .isInstanceOfSatisfying(
            CustodyException.class, e -> assertThat(e.reason()).isEqualTo(reason));
  }

  @Test
  void no_requester_has_all_places_of_requests_that_are_left_alone() throws Exception {
    CompletableFuture<Void> go = new CompletableFuture<>();
    pauses = go;
    away.set(MOST_OF_ONE);
    for (int i = 0; i < MOST_OF_ONE; i++) {
      isUnanswered(intent("greedy"));
    }
    isRefused(intent("greedy"), ErrorReason.REQUESTER_OVERLOADED);
    assertThat(ask(intent("modest")).state()).isEqualTo(Signing.State.SIGNED);
    away.set(1);
    isUnanswered(intent("modest"));
    VerifiedIntent.Signing more = intent("third");
    isRefused(more, ErrorReason.OVERLOADED);
    go.complete(null);
    Awaitility.await().ignoreExceptions().until(() -> ask(more) != null);
  }

  /** It is stored, and while a caller waits for another replica's work, it is not looked for on. */
  @Test
  void a_request_that_another_replica_works_on_is_looked_for_ever_more_rarely_and_not_for_ever() {
    CompletableFuture<Void> go = new CompletableFuture<>();
    pauses = go;
    VerifiedIntent.Signing intent = intent();
    unanswered.set(1);
    isUnanswered(intent);
    others = true;
    threads.execute(() -> assertThatThrownBy(() -> ask(intent)).isInstanceOf(Exception.class));
    Awaitility.await().until(() -> requests.running() == 1);
    go.complete(null);
    List<Long> seconds = List.of(1L, 2L, 4L, 8L, 8L);
    Awaitility.await().until(() -> paused.size() == seconds.size());
    assertThat(paused).isEqualTo(seconds.stream().map(s -> s * 1_000_000_000L).toList());
    // All places are free again.
    pauses = new CompletableFuture<>();
    away.set(MOST);
    for (int i = 0; i < MOST_OF_ONE; i++) {
      Awaitility.await().untilAsserted(() -> isUnanswered(intent("greedy")));
    }
    Awaitility.await().untilAsserted(() -> isUnanswered(intent("modest")));
  }

  @Test
  void a_look_that_fails_is_not_the_last() {
    VerifiedIntent.Signing intent = intent();
    unanswered.set(1);
    broken.set(2);
    isUnanswered(intent);
    isSigned(intent);
  }

  @Test
  void a_replica_that_stops_leaves_the_request_to_the_others() {
    pauses = new CompletableFuture<>();
    VerifiedIntent.Signing intent = intent();
    unanswered.set(1);
    isUnanswered(intent);
    stopping.begin();
    threads.close();
    assertThat(state(intent)).contains(Signing.State.PENDING);
    assertThat(works).hasValue(0);
  }
}
