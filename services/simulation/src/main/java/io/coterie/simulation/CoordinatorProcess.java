package io.coterie.simulation;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRenewals;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.key.ShareSessions;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.coordinator.custody.ledger.PartyLedgers;
import io.coterie.coordinator.custody.presignature.PresignatureStock;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.ReplicaStore;
import io.coterie.coordinator.custody.request.Requests;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.custody.signing.CancelQuestions;
import io.coterie.coordinator.custody.signing.CancelledSigning;
import io.coterie.coordinator.custody.signing.SessionTurns;
import io.coterie.coordinator.custody.signing.SigningAttempts;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.custody.signing.Signings;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyHealth;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.SessionTimer;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Member;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * One process of a replica of the coordinator: the life cycle of signing requests as it ships, from
 * the call of a client to the orders, wired as in production but for its means.
 */
final class CoordinatorProcess {
  /** How long a replica counts as there after it was seen. */
  static final Duration GONE_AFTER = Duration.ofSeconds(3);

  private static final RunLimits LIMITS = new RunLimits(64, 16, 24, SimulatedParty.CLOCK_SKEW);

  /** It makes no presignatures of its own: a maker would need threads that nobody calls. */
  private static final PresignatureStock.Limits NO_PRESIGNATURES =
      new PresignatureStock.Limits(0, 0, 0, 1, 1, Duration.ofMinutes(1), Duration.ofMinutes(1), 64);

  private final SimulatedThreads threads;
  private final SecureChannel channel;
  private final Signings signings;
  private final Handover handover;
  private final SecureRandom random;

  /**
   * A process that has begun to start.
   *
   * @param means draws its steps and random numbers
   */
  CoordinatorProcess(World world, ReplicaDatabase database, Member self, Chance means) {
    this.threads = new SimulatedThreads(world.timeline(), means.part("threads"));
    this.random = new Replica.Drawn(means.part("random"));
    this.channel = WeakenedCoordinator.channel(world.requests().channel(self), world.mutant());
    CoordinatorMetrics metrics = new CoordinatorMetrics(new CompositeMeterRegistry());
    Clock clock = Replica.clock(world);
    PartyLink link = () -> Optional.of(channel);
    Stopping stopping = new Stopping();
    PartyHealth health = new PartyHealth(threads::nanos);
    QuorumChooser chooser = new QuorumChooser(health);
    KeyDirectory keys =
        new KeyDirectory(
            database.of(KeyStore.class, threads),
            new Replica.NoObserver(),
            threads::soon,
            clock,
            threads::nanos);
    CancelQuestions questions = new CancelQuestions(link, metrics, CancelQuestions.WAIT, threads);
    Sessions sessions =
        new Sessions(
            WeakenedCoordinator.observer(world.requests().observer(self), world.mutant()),
            (_, _, _, verdict) -> world.coverage().count("evidence " + verdict),
            new PartyLedgers(
                database.of(LedgerStore.class, threads),
                keys,
                link,
                threads::soon,
                metrics,
                threads::nanos),
            (_, _) -> {},
            WeakenedCoordinator.answers(questions, world),
            Replica.verifiers(world),
            health,
            threads::soon,
            new Timer(threads),
            Replica.ROUNDS,
            metrics,
            random);
    Requests.Services services =
        new Requests.Services(
            CoordinatorProcess::verified,
            threads,
            stopping,
            metrics,
            clock,
            WeakenedCoordinator.time(threads, world.mutant()),
            random);
    KeyRenewals renewals =
        new KeyRenewals(
            database.of(RenewalStore.class, threads),
            keys,
            new ShareSessions(
                sessions,
                chooser,
                new AdaptiveTimeout(
                    Duration.ofSeconds(5), Duration.ofSeconds(15), Duration.ofSeconds(60)),
                link,
                LIMITS,
                stopping,
                clock),
            services);
    this.signings =
        new Signings(
            WeakenedCoordinator.signings(database.of(SigningStore.class, threads), world.mutant()),
            questions,
            new SigningAttempts.Services(
                keys,
                renewals,
                new PresignatureStock(NO_PRESIGNATURES, metrics, threads::nanos),
                sessions,
                chooser,
                new AdaptiveTimeout(
                    Duration.ofMillis(500), Duration.ofSeconds(1), Duration.ofSeconds(5)),
                link,
                LIMITS,
                new SessionTurns(LIMITS.atOnce(), threads),
                stopping,
                clock),
            services);
    this.handover =
        new Handover(
            database.of(ReplicaStore.class, threads),
            List.of(renewals, signings),
            threads,
            threads,
            metrics);
    channel.onMessage(sessions::receive);
    threads.execute(
        () -> {
          handover.start();
          channel.start();
          handover.ready();
        });
  }

  /** Its timers, beside the waits of its threads. */
  private record Timer(SimulatedThreads threads) implements SessionTimer {
    @Override
    public long nanos() {
      return threads.nanos();
    }

    @Override
    public boolean await(CompletableFuture<?> event, long nanos) {
      return threads.await(event, nanos);
    }

    @Override
    public void after(Duration delay, Runnable task) {
      threads.after(delay.toNanos(), task);
    }
  }

  /** The early check of intents; parties check again. */
  private static VerifiedIntent verified(SignedIntent intent) {
    try {
      return IntentVerifier.verify(intent, Identities.requesters());
    } catch (IntentException e) {
      throw e.toCustodyException();
    }
  }

  /** Runs the call of a client on a thread of its own, unless the process is gone by then. */
  void call(Runnable call) {
    threads.execute(call);
  }

  /** Does the work of the call {@code Sign}. */
  SigningRecord sign(SignedIntent intent, Duration patience) throws InterruptedException {
    return signings.sign((VerifiedIntent.Signing) verified(intent), List.of(), caller(patience));
  }

  /** Does the work of the call {@code CancelSigning}. */
  CancelledSigning cancel(SignedIntent intent, Duration patience) throws InterruptedException {
    return signings.cancel((VerifiedIntent.Cancellation) verified(intent), caller(patience));
  }

  private Caller caller(Duration patience) {
    return new Caller(threads.nanos() + patience.toNanos(), TraceContext.create(random));
  }

  /** Ends abruptly. */
  void kill() {
    channel.close();
    threads.kill();
  }
}
