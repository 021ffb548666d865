package io.coterie.coordinator.custody;

import io.coterie.coordinator.custody.ShareMaking.End;
import io.coterie.coordinator.session.Protocol;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.custody.v1.Key;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Refreshes of keys: all parties get new shares, and the key its next epoch. One request id gives
 * one epoch.
 *
 * <p>The parties switch when each of them knows that all have stored their new share, which may be
 * before this coordinator knows it, or while it is not running. So a refresh is not given up before
 * a party has shown that it holds no share of it, and when parties turn out to be at another epoch,
 * they are asked about the refreshes that were given up.
 */
public final class Refreshes {
  private static final Logger log = LoggerFactory.getLogger(Refreshes.class);

  private final ConcurrentHashMap<Run.Key, Run<KeyRecord>> runs = new ConcurrentHashMap<>();
  private final RefreshStore store;
  private final Keys keys;
  private final ShareMaking making;
  private final IntentCheck intents;
  private final Executor threads;
  private final CoordinatorMetrics metrics;
  private final Clock clock;
  private final SecureRandom random;

  /**
   * The refreshes of one coordinator.
   *
   * @param threads starts a thread for each request; they wait most of the time
   */
  public Refreshes(
      RefreshStore store,
      Keys keys,
      ShareMaking making,
      IntentCheck intents,
      Executor threads,
      CoordinatorMetrics metrics,
      Clock clock,
      SecureRandom random) {
    this.store = store;
    this.keys = keys;
    this.making = making;
    this.intents = intents;
    this.threads = threads;
    this.metrics = metrics;
    this.clock = clock;
    this.random = random;
  }

  /**
   * Refreshes the key of an intent, unless that was done, or joins the work in progress.
   *
   * @return the key as it is then
   * @throws CustodyException if the request is refused, with nothing stored; if it failed; or if
   *     the caller's time is up: the work goes on then
   */
  public KeyRecord refresh(VerifiedIntent.KeyRefresh intent, Caller caller)
      throws InterruptedException {
    Run.Key key = Run.Key.of(intent);
    Run<KeyRecord> fresh = new Run<>(intent.key(), caller);
    return Run.joinOrStart(
        runs,
        key,
        fresh,
        caller,
        () -> {
          RefreshRecord stored = claim(intent);
          switch (stored.state()) {
            case DONE -> fresh.finish(current(stored.key()));
            case FAILED ->
                fresh.fail(Trouble.of(Objects.requireNonNull(stored.error())).toException());
            case RUNNING -> begin(key, fresh, stored, () -> intent, false);
          }
          return stored.state() == RefreshRecord.State.RUNNING;
        });
  }

  /** Stores the request, or finds it stored. */
  private RefreshRecord claim(VerifiedIntent.KeyRefresh intent) {
    Optional<RefreshRecord> known = store.findRequest(intent.requester(), intent.requestId());
    if (known.isPresent()) {
      return same(intent, known.get());
    }
    Instant now = clock.instant().truncatedTo(ChronoUnit.MICROS);
    try {
      intent.requireNotExpired(now);
    } catch (IntentException e) {
      throw e.toCustodyException();
    }
    if (making.stopping().isDone()) {
      throw Trouble.of(ErrorReason.DRAINING, intent.key()).toException();
    }
    requireRefreshable(intent);
    RefreshRecord attempt =
        new RefreshRecord(
            0,
            intent.key(),
            intent.requester(),
            intent.requestId(),
            intent.digest(),
            intent.envelope(),
            intent.epoch(),
            RefreshRecord.State.RUNNING,
            0,
            intent.notAfter(),
            now,
            null);
    return switch (store.start(attempt)) {
      case RefreshStore.Start.Stored s -> s.record();
      case RefreshStore.Start.Known k -> same(intent, k.record());
      case RefreshStore.Start.Refused r ->
          throw Trouble.of(
                  store.isRunning(intent.key())
                      ? ErrorReason.REFRESH_RUNNING
                      : ErrorReason.EPOCH_MISMATCH,
                  intent.key())
              .toException();
    };
  }

  private static RefreshRecord same(VerifiedIntent intent, RefreshRecord stored) {
    if (!stored.intentDigest().equals(intent.digest())) {
      throw new CustodyException(
          ErrorReason.REQUEST_ID_REUSED, Map.of(StatusErrors.RESOURCE, stored.key()));
    }
    return stored;
  }

  private void requireRefreshable(VerifiedIntent.KeyRefresh intent) {
    KeyRecord key =
        keys.find(intent.key())
            .orElseThrow(() -> Trouble.of(ErrorReason.KEY_NOT_FOUND, intent.key()).toException());
    if (key.state() != Key.State.ACTIVE) {
      throw Trouble.of(ErrorReason.KEY_NOT_ACTIVE, intent.key()).toException();
    }
    if (key.scheme() != intent.scheme()
        || Protocol.of(key.scheme(), Protocol.Operation.REFRESH).isEmpty()) {
      throw Trouble.of(ErrorReason.UNSUPPORTED_SCHEME, intent.key()).toException();
    }
  }

  private KeyRecord current(String key) {
    return keys.find(key)
        .orElseThrow(() -> new IllegalStateException("a key that was refreshed is gone"));
  }

  /**
   * Reads a key again, because a party says that its shares are not of that epoch. If they are by
   * what is stored here, a refresh may have succeeded that was given up here: the parties are asked
   * about it.
   */
  KeyRecord learn(String key, int epoch) {
    keys.renewed(key);
    KeyRecord stored = current(key);
    if (stored.epoch() == epoch && !making.stopping().isDone()) {
      store
          .reopen(key, epoch)
          .ifPresent(
              record -> {
                log.warn("key {} may have the next epoch at its parties: asking them", key);
                resume(record, true);
              });
    }
    return stored;
  }

  /** Takes up what was RUNNING when this replica, or the one before it, stopped. */
  public void resume() {
    for (RefreshRecord record : store.running()) {
      log.info("resuming the refresh of key {}", record.key());
      resume(record, false);
    }
  }

  private void resume(RefreshRecord record, boolean asking) {
    Run.Key key = new Run.Key(record.requester(), record.requestId(), record.intentDigest());
    Run<KeyRecord> run =
        new Run<>(record.key(), new Caller(System.nanoTime(), TraceContext.create(random)));
    if (runs.putIfAbsent(key, run) == null) {
      begin(key, run, record, () -> recheck(record), asking);
    }
  }

  private VerifiedIntent.KeyRefresh recheck(RefreshRecord record) {
    if (intents.check(record.intent()) instanceof VerifiedIntent.KeyRefresh intent) {
      return intent;
    }
    throw new IllegalStateException("the stored intent of a refresh is another intent");
  }

  private void begin(
      Run.Key key,
      Run<KeyRecord> run,
      RefreshRecord record,
      Supplier<VerifiedIntent.KeyRefresh> intent,
      boolean asking) {
    threads.execute(
        () -> {
          try (LogScope scope = LogScope.open().trace(run.trace).request(record.requestId())) {
            VerifiedIntent.KeyRefresh verified;
            try {
              verified = intent.get();
            } catch (CustodyException e) {
              // Resumed, and the configuration has changed: the requester is not known any more.
              fail(run, record, new Trouble(e.reason(), e.metadata()), record.sessions());
              return;
            }
            drive(run, record, verified, asking);
          } catch (RuntimeException e) {
            log.error("work on a refresh failed", e);
            run.fail(e);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            run.fail(Trouble.of(ErrorReason.DRAINING, record.key()).toException());
          } finally {
            runs.remove(key, run);
          }
        });
  }

  private void drive(
      Run<KeyRecord> run, RefreshRecord record, VerifiedIntent.KeyRefresh intent, boolean asking)
      throws InterruptedException {
    KeyRecord key = current(record.key());
    if (key.epoch() != record.fromEpoch()) {
      // Another replica has ended it.
      run.finish(key);
      return;
    }
    ShareMaking.Task task =
        new ShareMaking.Task(
            key.name(),
            key.scheme(),
            new SessionPlan.Work.Refresh(Objects.requireNonNull(key.keyPublic())),
            record.fromEpoch(),
            key.threshold(),
            intent.envelope(),
            intent.notAfter(),
            key.parties(),
            ErrorReason.REFRESH_FAILED,
            asking,
            true);
    switch (making.drive(task, run, record.sessions())) {
      case End.Made made -> {
        boolean switched =
            stored(() -> store.switchEpoch(record.id(), made.keyPublic(), made.sessions()));
        keys.renewed(record.key());
        if (switched) {
          metrics.keyRefreshEnded(key.scheme(), CoordinatorMetrics.OK);
          log.info("key {} has epoch {}", record.key(), made.keyPublic().getEpoch());
        }
        run.finish(current(record.key()));
      }
      case End.Failed failed -> fail(run, record, failed.trouble(), failed.sessions());
      case End.Stopped stopped ->
          run.fail(Trouble.of(ErrorReason.DRAINING, record.key()).toException());
    }
  }

  private void fail(Run<KeyRecord> run, RefreshRecord record, Trouble trouble, int sessions)
      throws InterruptedException {
    if (stored(() -> store.fail(record.id(), trouble.toStatus(), sessions))) {
      metrics.keyRefreshEnded(current(record.key()).scheme(), trouble.reason().name());
    }
    run.fail(trouble.toException());
  }

  /** Stores the end, however long the database takes to come back: it must not be lost. */
  private boolean stored(Supplier<Boolean> write) throws InterruptedException {
    Pace pace = new Pace(making.stopping());
    while (true) {
      try {
        return write.get();
      } catch (StoreUnavailableException e) {
        if (making.stopping().isDone()) {
          throw e;
        }
        log.warn("cannot store the end of a refresh yet: {}", e.getMessage());
        pace.pause();
      }
    }
  }

  /** How many requests are being worked on. */
  public int running() {
    return runs.size();
  }
}
