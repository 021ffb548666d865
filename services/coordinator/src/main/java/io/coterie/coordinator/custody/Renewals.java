package io.coterie.coordinator.custody;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.ShareMaking.End;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.Protocol;
import io.coterie.coordinator.session.Protocol.Operation;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Renewals of keys: new shares, and the key its next epoch; for the same parties (refresh), or for
 * others or with another threshold (reshare). One request id gives one epoch.
 *
 * <p>The parties switch when each of them knows that all have stored their new share, which may be
 * before this coordinator knows it, or while it is not running. So a renewal is not given up before
 * a party has shown that it holds no share of it, and when parties turn out to be at another epoch,
 * they are asked about the renewals that were given up.
 */
public final class Renewals {
  private static final Logger log = LoggerFactory.getLogger(Renewals.class);

  private final ConcurrentHashMap<Run.Key, Run<KeyRecord>> runs = new ConcurrentHashMap<>();
  private final RenewalStore store;
  private final Keys keys;
  private final ShareMaking making;
  private final PartyLink link;
  private final IntentCheck intents;
  private final Executor threads;
  private final CoordinatorMetrics metrics;
  private final Clock clock;
  private final SecureRandom random;

  /**
   * The renewals of one coordinator.
   *
   * @param threads starts a thread for each request; they wait most of the time
   */
  public Renewals(
      RenewalStore store,
      Keys keys,
      ShareMaking making,
      PartyLink link,
      IntentCheck intents,
      Executor threads,
      CoordinatorMetrics metrics,
      Clock clock,
      SecureRandom random) {
    this.store = store;
    this.keys = keys;
    this.making = making;
    this.link = link;
    this.intents = intents;
    this.threads = threads;
    this.metrics = metrics;
    this.clock = clock;
    this.random = random;
  }

  /**
   * Renews the key of an intent, unless that was done, or joins the work in progress.
   *
   * @return the key as it is then
   * @throws CustodyException if the request is refused, with nothing stored; if it failed; or if
   *     the caller's time is up: the work goes on then
   */
  public KeyRecord renew(VerifiedIntent.NextEpoch intent, Caller caller)
      throws InterruptedException {
    Run.Key key = Run.Key.of(intent);
    return Run.joinOrStart(
        runs,
        key,
        intent.key(),
        caller,
        fresh -> {
          Claim claim = claim(intent);
          if (hasEnded(claim.record(), fresh)) {
            return false;
          }
          begin(key, fresh, claim.record(), () -> intent, claim.mine(), false);
          return true;
        });
  }

  /** Gives whoever waits the stored end of a renewal, if it has ended. */
  private boolean hasEnded(Renewal stored, Run<KeyRecord> run) {
    switch (stored.state()) {
      case DONE -> run.finish(current(stored.key()));
      case FAILED -> run.fail(Trouble.of(Objects.requireNonNull(stored.error())).toException());
      case RUNNING -> {
        return false;
      }
    }
    return true;
  }

  /**
   * Ends a renewal that runs, unless its parties use the new shares already. It ends when a party
   * has shown that it holds no share of it, so it needs one that answers, if any was asked.
   *
   * @param mayCancel throws if the caller may not do this for that requester
   * @return the key as it is
   * @throws CustodyException if there is no such renewal, it has ended, or the caller's time is up:
   *     the end is waited for on
   */
  public KeyRecord cancel(String key, String requestId, Consumer<String> mayCancel, Caller caller)
      throws InterruptedException {
    Renewal record = isUuid(requestId) ? store.findOfKey(key, requestId).orElse(null) : null;
    if (record == null) {
      throw Trouble.of(ErrorReason.OPERATION_NOT_RUNNING, key).toException();
    }
    mayCancel.accept(record.requester());
    if (!store.cancel(record.id())) {
      return ended(store.findOfKey(key, requestId).orElse(record));
    }
    log.info("the {} of key {} is to come to nothing", operation(record), key);
    Run.Key id = new Run.Key(record.requester(), record.requestId(), record.intentDigest());
    Run<KeyRecord> running = runs.get(id);
    if (running != null) {
      running.cancel();
    }
    CustodyException why;
    try {
      Run.joinOrStart(
          runs,
          id,
          key,
          caller,
          fresh -> {
            begin(id, fresh, record, () -> recheck(record), false, false);
            return true;
          });
      why = Trouble.of(ErrorReason.DEADLINE_TOO_SHORT, key).toException();
    } catch (CustodyException e) {
      why = e;
    }
    Renewal end = store.findOfKey(key, requestId).orElse(record);
    if (end.state() == Renewal.State.RUNNING) {
      // The caller's time is up.
      throw why;
    }
    return ended(end);
  }

  /** What to answer to who wanted a renewal cancelled that has ended. */
  private KeyRecord ended(Renewal record) {
    return switch (record.state()) {
      case DONE -> throw Trouble.of(ErrorReason.OPERATION_DECIDED, record.key()).toException();
      case FAILED, RUNNING -> {
        if (!record.cancelled()) {
          throw Trouble.of(ErrorReason.OPERATION_NOT_RUNNING, record.key()).toException();
        }
        yield current(record.key());
      }
    };
  }

  private static boolean isUuid(String text) {
    try {
      return UUID.fromString(text).toString().equals(text);
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * A stored request.
   *
   * @param mine it is known to be this replica's work, because it has just been stored
   */
  private record Claim(Renewal record, boolean mine) {}

  /** Stores the request, or finds it stored. */
  private Claim claim(VerifiedIntent.NextEpoch intent) {
    Optional<Renewal> known = store.findRequest(intent.requester(), intent.requestId());
    if (known.isPresent()) {
      return known(intent, known.get());
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
    KeyRecord key = requireRenewable(intent);
    Renewal attempt =
        new Renewal(
            0,
            intent.key(),
            intent.requester(),
            intent.requestId(),
            intent.digest(),
            intent.envelope(),
            intent.epoch(),
            intent instanceof VerifiedIntent.KeyReshare reshare
                ? reshare.threshold()
                : key.threshold(),
            intent instanceof VerifiedIntent.KeyReshare reshare ? holders(reshare) : key.parties(),
            false,
            Renewal.State.RUNNING,
            0,
            intent.notAfter(),
            now,
            null);
    return switch (store.start(attempt)) {
      case RenewalStore.Start.Stored s -> new Claim(s.record(), true);
      case RenewalStore.Start.Known k -> known(intent, k.record());
      case RenewalStore.Start.Refused r ->
          throw Trouble.of(
                  store.isRunning(intent.key())
                      ? ErrorReason.REFRESH_RUNNING
                      : ErrorReason.EPOCH_MISMATCH,
                  intent.key())
              .toException();
    };
  }

  private static Claim known(VerifiedIntent intent, Renewal stored) {
    if (!stored.intentDigest().equals(intent.digest())) {
      throw new CustodyException(
          ErrorReason.REQUEST_ID_REUSED, Map.of(StatusErrors.RESOURCE, stored.key()));
    }
    return new Claim(stored, false);
  }

  private List<KeyRecord.Holder> holders(VerifiedIntent.KeyReshare intent) {
    // Without a roster, party names mean nothing.
    SecureChannel channel =
        link.channel()
            .orElseThrow(() -> Trouble.outOfReach(intent.key(), intent.parties()).toException());
    return Keys.holders(intent.key(), intent.parties(), channel.roster());
  }

  private static Operation operation(VerifiedIntent.NextEpoch intent) {
    return switch (intent) {
      case VerifiedIntent.KeyRefresh _ -> Operation.REFRESH;
      case VerifiedIntent.KeyReshare _ -> Operation.RESHARE;
    };
  }

  private KeyRecord requireRenewable(VerifiedIntent.NextEpoch intent) {
    KeyRecord key =
        keys.read(intent.key())
            .orElseThrow(() -> Trouble.of(ErrorReason.KEY_NOT_FOUND, intent.key()).toException());
    if (key.state() != Key.State.ACTIVE) {
      throw Trouble.of(ErrorReason.KEY_NOT_ACTIVE, intent.key()).toException();
    }
    Optional<Protocol> protocol = Protocol.of(key.scheme(), operation(intent));
    if (key.scheme() != intent.scheme() || protocol.isEmpty()) {
      throw Trouble.of(ErrorReason.UNSUPPORTED_SCHEME, intent.key()).toException();
    }
    KeyPublic current = Objects.requireNonNull(key.keyPublic());
    int threshold =
        switch (intent) {
          case VerifiedIntent.KeyRefresh _ -> current.getThreshold();
          case VerifiedIntent.KeyReshare reshare -> reshare.threshold();
        };
    // Where one party is enough, every share is the key itself, and no other share can replace it.
    if (threshold < 2) {
      throw Trouble.of(ErrorReason.THRESHOLD_INVALID, intent.key()).toException();
    }
    if (intent instanceof VerifiedIntent.KeyReshare reshare) {
      if (!reshare.publicKey().equals(current.getPublicKey())) {
        throw new IntentException(IntentProblem.PUBLIC_KEY_OTHER).toCustodyException();
      }
    }
    return key;
  }

  private KeyRecord current(String key) {
    return keys.read(key)
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
                resume(record, true, true);
              });
    }
    return stored;
  }

  /**
   * Takes up what is RUNNING and nobody's work.
   *
   * @param own also what an earlier process of this replica has left
   * @return how many were another replica's, or nobody's
   */
  int takeOver(boolean own) {
    List<Renewal> taken = store.takeAll(own);
    for (Renewal record : taken) {
      log.info("taking up the renewal of key {}", record.key());
      resume(record, true, false);
    }
    return taken.size();
  }

  /** Ends what somebody has cancelled at another replica. */
  void heedCancellations() {
    for (Renewal record : store.cancelled()) {
      Run<KeyRecord> run =
          runs.get(new Run.Key(record.requester(), record.requestId(), record.intentDigest()));
      if (run != null && !run.isCancelled()) {
        run.cancel();
      }
    }
  }

  private void resume(Renewal record, boolean mine, boolean asking) {
    Run.Key key = new Run.Key(record.requester(), record.requestId(), record.intentDigest());
    Run<KeyRecord> run =
        new Run<>(record.key(), new Caller(System.nanoTime(), TraceContext.create(random)));
    if (runs.putIfAbsent(key, run) == null) {
      begin(key, run, record, () -> recheck(record), mine, asking);
    }
  }

  private VerifiedIntent.NextEpoch recheck(Renewal record) {
    if (intents.check(record.intent()) instanceof VerifiedIntent.NextEpoch intent) {
      return intent;
    }
    throw new IllegalStateException("the stored intent of a renewal is another intent");
  }

  private void begin(
      Run.Key key,
      Run<KeyRecord> run,
      Renewal record,
      Supplier<VerifiedIntent.NextEpoch> intent,
      boolean mine,
      boolean asking) {
    threads.execute(
        () -> {
          try (LogScope scope = LogScope.open().trace(run.trace).request(record.requestId())) {
            work(run, record, intent, mine, asking);
          } catch (RuntimeException e) {
            log.error("work on a renewal failed", e);
            run.fail(e);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            run.fail(Trouble.of(ErrorReason.DRAINING, record.key()).toException());
          } finally {
            runs.remove(key, run);
            if (run.leave()) {
              // It may have become this replica's while the last one who waited for it went.
              threads.execute(() -> takeUp(record.id()));
            }
          }
        });
  }

  private void takeUp(long id) {
    try {
      store.take(id).ifPresent(record -> resume(record, true, false));
    } catch (StoreUnavailableException e) {
      log.warn("cannot see whose work a renewal is: {}", e.getMessage());
    }
  }

  /** Works whenever the request is this replica's, and else waits. */
  private void work(
      Run<KeyRecord> run,
      Renewal claimed,
      Supplier<VerifiedIntent.NextEpoch> intent,
      boolean mine,
      boolean asking)
      throws InterruptedException {
    // How far another replica has come with it counts.
    AtomicReference<Renewal> record = new AtomicReference<>(claimed);
    boolean working = mine;
    do {
      if (!working && !run.awaitTurn(() -> look(run, record), () -> false, making.stopping())) {
        return;
      }
      if (record.get().cancelled()) {
        run.cancel();
      }
      VerifiedIntent.NextEpoch verified;
      try {
        verified = intent.get();
      } catch (CustodyException e) {
        // Resumed, and the configuration has changed: the requester is not known any more.
        fail(run, record.get(), new Trouble(e.reason(), e.metadata()), record.get().sessions());
        return;
      }
      working = drive(run, record.get(), verified, asking);
    } while (!working);
  }

  private Run.Look look(Run<KeyRecord> run, AtomicReference<Renewal> record) {
    Renewal before = record.get();
    Optional<Renewal> taken = store.take(before.id());
    if (taken.isPresent()) {
      record.set(taken.get());
      metrics.takenOver(CoordinatorMetrics.KEY_RENEWAL_WORK, 1);
      return Run.Look.MINE;
    }
    Renewal stored =
        store
            .findRequest(before.requester(), before.requestId())
            .orElseThrow(() -> new IllegalStateException("a stored renewal is gone"));
    return hasEnded(stored, run) ? Run.Look.OVER : Run.Look.ANOTHERS;
  }

  private boolean isStillMine(Renewal record) {
    try {
      return store.take(record.id()).isPresent();
    } catch (StoreUnavailableException e) {
      log.warn("cannot see whose work a renewal is: {}", e.getMessage());
      return true;
    }
  }

  /** Works until the end; false if the request has become another replica's work. */
  private boolean drive(
      Run<KeyRecord> run, Renewal record, VerifiedIntent.NextEpoch intent, boolean asking)
      throws InterruptedException {
    KeyRecord key = current(record.key());
    if (key.epoch() != record.fromEpoch()) {
      // Another replica has ended it.
      run.finish(key);
      return true;
    }
    boolean reshare = operation(intent) == Operation.RESHARE;
    ShareMaking.Task task =
        new ShareMaking.Task(
            key.name(),
            key.scheme(),
            Objects.requireNonNull(key.keyPublic()),
            reshare ? key.parties() : List.of(),
            record.fromEpoch(),
            record.threshold(),
            intent.envelope(),
            intent.notAfter(),
            record.parties(),
            reshare ? ErrorReason.RESHARE_FAILED : ErrorReason.REFRESH_FAILED,
            () -> store.ordering(record.id()),
            () -> isStillMine(record),
            asking,
            true);
    switch (making.drive(task, run, record.sessions())) {
      case End.Lost lost -> {
        return false;
      }
      case End.Made made -> {
        boolean switched =
            persistently(() -> store.switchEpoch(record.id(), made.keyPublic(), made.sessions()));
        keys.renewed(record.key());
        if (switched) {
          metrics.keyRenewalEnded(key.scheme(), operation(record), CoordinatorMetrics.OK);
          log.info("key {} has epoch {}", record.key(), made.keyPublic().getEpoch());
        }
        run.finish(persistently(() -> current(record.key())));
      }
      case End.Failed failed -> {
        if (!isStillMine(record)) {
          return false;
        }
        fail(run, record, failed.trouble(), failed.sessions());
      }
      case End.Stopped stopped ->
          run.fail(Trouble.of(ErrorReason.DRAINING, record.key()).toException());
    }
    return true;
  }

  private void fail(Run<KeyRecord> run, Renewal record, Trouble trouble, int sessions)
      throws InterruptedException {
    if (persistently(() -> store.fail(record.id(), trouble.toStatus(), sessions))) {
      KeyRecord key = persistently(() -> current(record.key()));
      metrics.keyRenewalEnded(key.scheme(), operation(record), trouble.reason().name());
    }
    run.fail(trouble.toException());
  }

  /** Stores or reads the end, however long the database takes to come back: it must not be lost. */
  private <T> T persistently(Supplier<T> access) throws InterruptedException {
    Pace pace = new Pace(making.stopping());
    while (true) {
      try {
        return access.get();
      } catch (StoreUnavailableException e) {
        if (making.stopping().isDone()) {
          throw e;
        }
        log.warn("the end of a renewal waits for the database: {}", e.getMessage());
        pace.pause();
      }
    }
  }

  /** As in metrics and logs. */
  private static String operation(Renewal record) {
    return record.intent().getPayloadType().contains("reshare") ? "reshare" : "refresh";
  }

  /** How many requests are being worked on. */
  public int running() {
    return runs.size();
  }
}
