package io.coterie.coordinator.custody.presignature;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.MemoryStores;
import io.coterie.coordinator.TestEvidence;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Combination;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.session.PartyHealth;
import io.coterie.coordinator.session.SessionTimer;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.mpc.MpcCore;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.reflect.Proxy;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Pairs that prepare nothing keep nobody else from making presignatures. */
class PresignatureMakerTest {
  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final Duration LONG = Duration.ofMinutes(10);
  private static final String EXACT = "keys/exact";
  private static final String FROST = "keys/frost";

  /** Nothing of a presignature is observed. */
  private static final MpcCore NO_CORE =
      (MpcCore)
          Proxy.newProxyInstance(
              MpcCore.class.getClassLoader(),
              new Class<?>[] {MpcCore.class},
              (_, method, _) -> {
                throw new AssertionError(method + " was called");
              });

  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private final CoordinatorMetrics metrics = new CoordinatorMetrics(registry);
  private final Member coordinator = member("coordinator", 0);
  private final List<Member> parties = List.of(member("p1", 1), member("p2", 2));
  private final Semaphore toPairs = new Semaphore(0);
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private final PresignatureStock stock =
      new PresignatureStock(
          new PresignatureStock.Limits(64, 2, 64, 512, 128, LONG, LONG, 4),
          metrics,
          System::nanoTime);

  private final Sessions sessions =
      new Sessions(
          NO_CORE,
          (_, _, _, _) -> {},
          (_, _) -> {},
          (_, _) -> {},
          (_, _) -> {},
          Map.of(),
          new PartyHealth(System::nanoTime),
          Runnable::run,
          new UntimedSessions(),
          new ProtocolMetrics(registry, "coordinator", "local"),
          metrics,
          new SecureRandom());

  private static Member member(String name, int partyId) {
    return new Member(
        name,
        partyId == 0 ? Member.Role.COORDINATOR : Member.Role.PARTY,
        partyId,
        "local",
        new UUID(1, partyId),
        1,
        new byte[33],
        partyId == 0 ? new byte[0] : TestEvidence.publicKey(partyId));
  }

  /** Sessions have time for an answer as long as the test lasts. */
  private static final class UntimedSessions implements SessionTimer {
    @Override
    public long nanos() {
      return 0;
    }

    @Override
    public boolean await(CompletableFuture<?> event, long nanos) {
      event.join();
      return true;
    }

    @Override
    public void after(Duration delay, Runnable task) {}
  }

  /** Parties that make presignatures at once, and prepare nothing in pairs. */
  private final class Parties implements SecureChannel {
    @Override
    public Member self() {
      return coordinator;
    }

    @Override
    public Roster roster() {
      return new Roster("test", 1, List.of(coordinator, parties.get(0), parties.get(1)));
    }

    @Override
    public void onMessage(Consumer<InboundMessage> receiver) {}

    @Override
    public void start() {}

    @Override
    public CompletionStage<Void> established(Collection<Member> members) {
      return CompletableFuture.completedFuture(null);
    }

    @Override
    public Set<Member> reachable() {
      return Set.copyOf(parties);
    }

    @Override
    public CompletionStage<Void> broadcast(
        Collection<Member> recipients, byte[] body, SendOptions options) {
      try {
        ByteString order = PartyMessage.parseFrom(body).getOrder();
        if (!order.isEmpty()) {
          ordered(order, Order.parseFrom(order));
        }
        return CompletableFuture.completedFuture(null);
      } catch (InvalidProtocolBufferException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    public CompletionStage<Void> send(Member recipient, byte[] body, SendOptions options) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void close() {}
  }

  private void ordered(ByteString bytes, Order order) {
    if (order.getProtocol() == ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE) {
      toPairs.release();
      return;
    }
    ByteString session = SessionId.ofOrder(bytes).bytes();
    Completed.Builder made = Completed.newBuilder();
    for (byte each = 0; each < order.getPresignatureCount(); each++) {
      made.addPresignatureIds(session.substring(1).concat(ByteString.copyFrom(new byte[] {each})));
    }
    byte[] report =
        PartyMessage.newBuilder()
            .setReport(SessionReport.newBuilder().setSessionId(session).setCompleted(made))
            .build()
            .toByteArray();
    parties.forEach(party -> sessions.receive(new InboundMessage(party, report, true, 0, null)));
  }

  private static void create(KeyStore keys, String name, Scheme scheme) {
    Instant now = Instant.now();
    RequestHeader header =
        new RequestHeader(
            "wallet",
            RequestId.next(),
            ByteString.EMPTY,
            SignedIntent.getDefaultInstance(),
            now,
            now);
    List<KeyRecord.Holder> holders =
        List.of(new KeyRecord.Holder(1, "p1"), new KeyRecord.Holder(2, "p2"));
    KeyRecord attempt = KeyRecord.creating(header, name, scheme, 2, holders);
    KeyStore.Creation.Stored stored = (KeyStore.Creation.Stored) keys.create(attempt);
    KeyPublic made = KeyPublic.newBuilder().setEpoch(1).setThreshold(2).build();
    keys.finish(stored.record().id(), TestEvidence.unattested(made), null, 1);
  }

  private PresignatureMaker maker() {
    KeyStore store = new MemoryStores().replica("here").keys();
    create(store, EXACT, Scheme.SCHEME_ED25519_EXACT);
    create(store, FROST, Scheme.SCHEME_ED25519);
    Clock clock = Clock.systemUTC();
    return new PresignatureMaker(
        stock,
        new KeyDirectory(store, stock, threads, clock, System::nanoTime),
        sessions,
        () -> Optional.of(new Parties()),
        new PresignatureMaker.Limits(4, LONG),
        () -> 0,
        (_, _) -> true,
        threads,
        clock,
        new SecureRandom());
  }

  @AfterEach
  void stop() {
    sessions.stop();
    threads.shutdownNow();
  }

  private static Combination combination(String key, int blocks, Integer... set) {
    return new Combination(key, 1, List.of(set), KeyTarget.SELF, blocks);
  }

  private static void until(BooleanSupplier condition) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean() && System.nanoTime() - end < 0) {
      LockSupport.parkNanos(Duration.ofMillis(5).toNanos());
    }
    assertThat(condition.getAsBoolean()).isTrue();
  }

  @Test
  void a_pair_that_never_answers_leaves_the_places_of_others_alone() throws Exception {
    PresignatureMaker maker = maker();
    stock.want(combination(EXACT, 1, 1, 2), 1);
    stock.want(combination(EXACT, 2, 1, 2), 1);
    maker.start();
    assertThat(toPairs.tryAcquire(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    stock.want(combination(FROST, 0, 1, 2), 16);
    until(() -> stock.ready() == 4);
    stock.want(combination(FROST, 0, 1, 2), 16);
    until(() -> stock.ready() == 8);
    assertThat(toPairs.availablePermits()).as("one at a time with a pair").isZero();
    maker.stop();
  }

  @Test
  void pairs_that_fail_share_one_place_and_leave_one_to_those_that_do_not() {
    for (int most = 1; most <= 8; most++) {
      MakingPlaces places = new MakingPlaces(most);
      Combination good = combination(EXACT, 1, 1, 2);
      Combination silent = combination(EXACT, 1, 1, 3);
      Combination silentToo = combination(EXACT, 1, 2, 3);
      for (Combination each : List.of(silent, silentToo)) {
        assertThat(places.isFree(each)).isTrue();
        places.begun(each);
        places.ended(each, false);
      }
      places.begun(silent);
      assertThat(places.isFree(combination(FROST, 2, 1, 3))).as("the same pair").isFalse();
      assertThat(places.isFree(silentToo)).isFalse();
      assertThat(places.isFree(good)).isTrue();
      places.begun(good);
      assertThat(places.isFree(combination(FROST, 0, 1, 2))).as("of others").isTrue();
      places.ended(good, true);
      places.ended(silent, true);
      places.begun(silent);
      assertThat(places.isFree(silentToo)).as("the other one has succeeded").isTrue();
    }
  }

  @Test
  void others_have_one_more_after_each_success_and_one_after_a_failure_of_theirs() {
    Combination frost = combination(FROST, 0, 1, 2);
    Combination pair = combination(EXACT, 1, 1, 2);
    MakingPlaces places = new MakingPlaces(4);
    places.begun(frost);
    assertThat(places.isFree(frost)).isFalse();
    for (int success = 0; success < 10; success++) {
      places.ended(frost, true);
      places.begun(frost);
    }
    places.begun(pair);
    places.ended(pair, false);
    places.begun(frost);
    places.begun(frost);
    assertThat(places.isFree(frost)).as("a pair has failed, and they have not").isTrue();
    places.begun(pair);
    assertThat(places.isFree(frost)).as("all of the four are taken").isFalse();
    places.ended(pair, true);
    places.ended(frost, false);
    assertThat(places.isFree(frost)).isFalse();
  }
}
