package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyObserver;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.coordinator.custody.ledger.PartyLedgers;
import io.coterie.coordinator.session.ObservedSession;
import io.coterie.coordinator.session.PartyHealth;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.session.SessionTimer;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.session.Signature;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.coordinator.verification.Bip340Verifier;
import io.coterie.coordinator.verification.BlstVerifier;
import io.coterie.coordinator.verification.EcdsaVerifier;
import io.coterie.coordinator.verification.Ed25519Verifier;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.trust.Member;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * One replica of the coordinator: of the classes that ship those that talk with parties, on the
 * timeline and the network of the simulation. They give the orders, combine and verify, judge who
 * deviated, and remember ledgers. {@link SimulatedCoordinator} decides what is ordered.
 */
final class Replica {
  private static final long MAX_STEP_NANOS = 300_000;

  /** Metrics of all schedules; nobody reads them. */
  private static final CoordinatorMetrics METRICS =
      new CoordinatorMetrics(new SimpleMeterRegistry());

  static final ProtocolMetrics ROUNDS =
      new ProtocolMetrics(new SimpleMeterRegistry(), "coordinator", "here");

  /** The verifiers of the core that ships. */
  private static final class Verifiers {
    static final Map<Scheme, ResultVerifier> SHIPPED =
        Map.of(
            Scheme.SCHEME_BLS12381,
            new BlstVerifier(),
            Scheme.SCHEME_ECDSA_SECP256K1,
            new EcdsaVerifier(),
            Scheme.SCHEME_ED25519,
            new Ed25519Verifier(),
            Scheme.SCHEME_BIP340_SECP256K1,
            new Bip340Verifier());

    static final Map<Scheme, ResultVerifier> FAST = fast();
  }

  /** Verifies the signatures that {@link FastRun} makes, of the same schemes together as ships. */
  private record Fast(boolean verifiesTogether) implements ResultVerifier {
    @Override
    public boolean verifies(ByteString publicKey, ByteString payload, Signature signature) {
      return FastRun.signs(payload, signature.bytes());
    }

    @Override
    public boolean isSound(KeyPublic key) {
      return true;
    }
  }

  private final World world;
  private final SecureChannel channel;
  private final Sessions sessions;

  /**
   * @param wentBack told the ids of parties whose store went back, as the replica sees it
   */
  Replica(World world, Member self, LedgerStore ledgers, Consumer<Integer> wentBack) {
    Chance chance = world.chance().part(self.name());
    this.world = world;
    this.channel = world.network().channel(self);
    Timeline timeline = world.timeline();
    Chance steps = chance.part("pool");
    Executor pool = task -> timeline.in(steps.between(0, MAX_STEP_NANOS), task);
    KeyStore store =
        Port.only(
            KeyStore.class,
            Map.of(
                "excludeWentBack",
                given -> {
                  wentBack.accept((Integer) given[0]);
                  return Set.of();
                }));
    KeyDirectory keys =
        new KeyDirectory(store, new NoObserver(), pool, clock(world), timeline::nanos);
    this.sessions =
        new Sessions(
            Weakened.observer(world.cores().observer(), world.mutant()),
            (_, _, _, verdict) -> world.coverage().count("evidence " + verdict),
            new PartyLedgers(
                ledgers, keys, () -> Optional.of(channel), pool, METRICS, timeline::nanos),
            (_, _) -> {},
            (_, _) -> {},
            verifiers(world),
            new PartyHealth(timeline::nanos),
            pool,
            new SessionTimer() {
              @Override
              public long nanos() {
                return timeline.nanos();
              }

              @Override
              public boolean await(CompletableFuture<?> event, long nanos) {
                throw new IllegalStateException("no thread of the workload waits");
              }

              @Override
              public void after(Duration delay, Runnable task) {
                if (world.mutant() != Mutant.WAITS_FOREVER) {
                  timeline.in(delay.toNanos() + steps.between(1, MAX_STEP_NANOS), task);
                }
              }
            },
            ROUNDS,
            METRICS,
            new Drawn(chance.part("random")));
  }

  /** The verifiers of signatures of a schedule's core. */
  static Map<Scheme, ResultVerifier> verifiers(World world) {
    return world.setting().nativeCore() ? Verifiers.SHIPPED : Verifiers.FAST;
  }

  private static Map<Scheme, ResultVerifier> fast() {
    return Arrays.stream(Scheme.values())
        .collect(
            Collectors.toMap(
                scheme -> scheme, scheme -> new Fast(scheme == Scheme.SCHEME_BLS12381)));
  }

  record NoObserver() implements KeyObserver {
    @Override
    public void renewed(String key) {}

    @Override
    public void excluded(String key, int partyId) {}
  }

  static Clock clock(World world) {
    return new Clock() {
      @Override
      public ZoneId getZone() {
        return ZoneOffset.UTC;
      }

      @Override
      public Clock withZone(ZoneId zone) {
        return this;
      }

      @Override
      public Instant instant() {
        return world.now();
      }
    };
  }

  /** The numbers of the seed, where the type says that they are secure. */
  static final class Drawn extends SecureRandom {
    private static final long serialVersionUID = 1L;
    private final transient Chance chance;

    Drawn(Chance chance) {
      this.chance = chance;
    }

    @Override
    public void nextBytes(byte[] bytes) {
      chance.nextBytes(bytes);
    }
  }

  SecureChannel channel() {
    return channel;
  }

  /**
   * Connects it.
   *
   * @param also hears every message too
   */
  void start(Consumer<InboundMessage> also) {
    channel.onMessage(
        message -> {
          WeakenedCoordinator.alsoHeard(world, message).forEach(sessions::receive);
          sessions.receive(message);
          also.accept(message);
        });
    channel.start();
  }

  /** Gives the order of a session and follows it. */
  ObservedSession start(SessionPlan plan) {
    return sessions.start(channel, plan);
  }
}
