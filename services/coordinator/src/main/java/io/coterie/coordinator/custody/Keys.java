package io.coterie.coordinator.custody;

import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.ShareMaking.End;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.Protocol;
import io.coterie.coordinator.session.SessionId;
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
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keys: created by all their parties together, and looked up. One request id gives one key.
 *
 * <p>An ACTIVE key changes with its epoch only, so it is remembered; what is excluded for it is
 * remembered with it. Another replica may change both, so what is in use is read again now and
 * then; what is done with what was true a moment before is refused by the parties.
 */
public final class Keys {
  private static final Logger log = LoggerFactory.getLogger(Keys.class);

  /** Keys remembered; when there are more, all are read again. */
  private static final int MAX_REMEMBERED = 10_000;

  /** Generation of the shares that key generation makes. */
  private static final int FIRST_EPOCH = 1;

  /** After which a key that is in use is read again, behind its use. */
  private static final Duration FRESH = Duration.ofSeconds(3);

  /**
   * A key as it was read.
   *
   * @param readAgain whether it is being read again
   */
  private record Remembered(
      KeyRecord record, Set<Integer> excluded, long readNanos, AtomicBoolean readAgain) {}

  private final ConcurrentHashMap<Run.Key, Run<KeyRecord>> runs = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<String, Remembered> active = new ConcurrentHashMap<>();
  private final KeyStore store;
  private final ShareMaking making;
  private final PresignaturePool presignatures;
  private final PartyLink link;
  private final IntentCheck intents;
  private final Executor threads;
  private final CoordinatorMetrics metrics;
  private final Clock clock;
  private final SecureRandom random;

  /**
   * The keys of one coordinator.
   *
   * @param threads starts a thread for each request; they wait most of the time
   */
  public Keys(
      KeyStore store,
      ShareMaking making,
      PresignaturePool presignatures,
      PartyLink link,
      IntentCheck intents,
      Executor threads,
      CoordinatorMetrics metrics,
      Clock clock,
      SecureRandom random) {
    this.store = store;
    this.making = making;
    this.presignatures = presignatures;
    this.link = link;
    this.intents = intents;
    this.threads = threads;
    this.metrics = metrics;
    this.clock = clock;
    this.random = random;
  }

  /**
   * Gets the key of an intent: the stored one, that of the work in progress, or a new one.
   *
   * @return ACTIVE or FAILED
   * @throws CustodyException if the request is refused, with nothing stored, or the caller's time
   *     is up; the work goes on then
   */
  public KeyRecord create(VerifiedIntent.KeyCreation intent, Caller caller)
      throws InterruptedException {
    Run.Key key = Run.Key.of(intent);
    return Run.joinOrStart(
        runs,
        key,
        intent.key(),
        caller,
        fresh -> {
          Claim claim = claim(intent);
          if (claim.record().state() != Key.State.CREATING) {
            fresh.finish(claim.record());
            return false;
          }
          begin(key, fresh, claim.record(), () -> intent, claim.mine());
          return true;
        });
  }

  /**
   * A stored request.
   *
   * @param mine it is known to be this replica's work, because it has just been stored
   */
  private record Claim(KeyRecord record, boolean mine) {}

  /** Stores the request, or finds it stored. */
  private Claim claim(VerifiedIntent.KeyCreation intent) {
    Instant now = clock.instant().truncatedTo(ChronoUnit.MICROS);
    if (now.isAfter(intent.notAfter())) {
      return known(
          intent,
          store
              .findRequest(intent.requester(), intent.requestId())
              .orElseThrow(() -> expired(intent, now)));
    }
    if (making.stopping().isDone()) {
      throw Trouble.of(ErrorReason.DRAINING, intent.key()).toException();
    }
    Optional<SecureChannel> channel = link.channel();
    if (channel.isEmpty()) {
      // Without a roster, party names mean nothing: what is stored can still be answered.
      return known(
          intent,
          store
              .findRequest(intent.requester(), intent.requestId())
              .orElseThrow(() -> Trouble.outOfReach(intent.key(), intent.parties()).toException()));
    }
    Protocol protocol =
        Protocol.of(intent.scheme(), Protocol.Operation.KEYGEN)
            .orElseThrow(
                () -> Trouble.of(ErrorReason.UNSUPPORTED_SCHEME, intent.key()).toException());
    if (intent.threshold() < protocol.leastThreshold()) {
      throw Trouble.of(ErrorReason.THRESHOLD_INVALID, intent.key()).toException();
    }
    KeyRecord attempt =
        new KeyRecord(
            0,
            intent.key(),
            intent.requester(),
            intent.requestId(),
            intent.digest(),
            intent.envelope(),
            intent.scheme(),
            intent.threshold(),
            holders(intent.key(), intent.parties(), channel.get().roster()),
            Key.State.CREATING,
            0,
            intent.notAfter(),
            now,
            null,
            null);
    return switch (store.create(attempt)) {
      case KeyStore.Creation.Stored s -> new Claim(s.record(), true);
      case KeyStore.Creation.Known k -> known(intent, k.record());
      case KeyStore.Creation.NameTaken t ->
          throw Trouble.of(ErrorReason.KEY_EXISTS, intent.key()).toException();
    };
  }

  private static Claim known(VerifiedIntent intent, KeyRecord stored) {
    if (!stored.intentDigest().equals(intent.digest())) {
      throw new CustodyException(
          ErrorReason.REQUEST_ID_REUSED, Map.of(StatusErrors.RESOURCE, stored.name()));
    }
    return new Claim(stored, false);
  }

  private static CustodyException expired(VerifiedIntent intent, Instant now) {
    try {
      intent.requireNotExpired(now);
      throw new IllegalStateException("the intent has not expired");
    } catch (IntentException e) {
      return e.toCustodyException();
    }
  }

  /**
   * The parties of a key.
   *
   * @throws CustodyException naming the one that is not in the roster
   */
  static List<KeyRecord.Holder> holders(String key, List<String> names, Roster roster) {
    List<KeyRecord.Holder> holders = new ArrayList<>();
    for (String name : names) {
      Member member =
          roster
              .byName(name)
              .filter(m -> m.role() == Member.Role.PARTY)
              .orElseThrow(
                  () ->
                      Trouble.parties(
                              ErrorReason.PARTY_UNKNOWN, key, List.of(name), 0, "not_in_roster")
                          .toException());
      holders.add(new KeyRecord.Holder(member.partyId(), name));
    }
    holders.sort(Comparator.comparingInt(KeyRecord.Holder::partyId));
    return holders;
  }

  /**
   * The running or successful attempt of that name, or else its last failed one; an ACTIVE one as
   * it was a few seconds ago at the latest, if it is in use.
   */
  Optional<KeyRecord> find(String name) {
    Remembered remembered = active.get(name);
    if (remembered == null) {
      return read(name);
    }
    if (System.nanoTime() - remembered.readNanos() > FRESH.toNanos()
        && remembered.readAgain().compareAndSet(false, true)) {
      threads.execute(() -> readAgain(name, remembered));
    }
    return Optional.of(remembered.record());
  }

  private void readAgain(String name, Remembered remembered) {
    try {
      read(name);
    } catch (StoreUnavailableException e) {
      log.warn("cannot read a key again: {}", e.getMessage());
      remembered.readAgain().set(false);
    }
  }

  /** The running or successful attempt of that name, or else its last failed one, as it is. */
  public Optional<KeyRecord> read(String name) {
    Optional<KeyRecord> stored = store.find(name);
    stored.filter(record -> record.state() == Key.State.ACTIVE).ifPresent(this::remember);
    return stored;
  }

  private void remember(KeyRecord record) {
    if (active.size() >= MAX_REMEMBERED) {
      active.clear();
    }
    String name = record.name();
    Set<Integer> excluded = store.excluded(name);
    Remembered read = new Remembered(record, excluded, System.nanoTime(), new AtomicBoolean());
    Remembered before = active.get(name);
    if (before != null && before.record().epoch() > record.epoch()) {
      return; // read before the switch, and late
    }
    active.put(name, read);
    if (before != null) {
      // What another replica has done.
      if (record.epoch() > before.record().epoch()) {
        presignatures.renewed(name);
      }
      excluded.stream()
          .filter(party -> !before.excluded().contains(party))
          .forEach(party -> presignatures.excluded(name, party));
    }
  }

  /** Keys in the order of their names: see {@link KeyStore#list}. */
  public List<KeyRecord> list(String afterName, Set<String> globs, int limit) {
    return store.list(afterName, globs, limit);
  }

  /** Party ids that are left out of the sessions of a key. */
  Set<Integer> excluded(String name) {
    Remembered remembered = active.get(name);
    return remembered != null ? remembered.excluded() : store.excluded(name);
  }

  /** The same as it is stored, or as it was last read if the database does not say. */
  Set<Integer> excludedByNow(String name) {
    try {
      read(name);
      return excluded(name);
    } catch (StoreUnavailableException e) {
      log.warn("cannot read a key again: {}", e.getMessage());
      Remembered remembered = active.get(name);
      return remembered == null ? Set.of() : remembered.excluded();
    }
  }

  /** Leaves a party out of every later session of a key. */
  void exclude(String name, int partyId, String cause, SessionId session) {
    store.exclude(name, partyId, cause, session.bytes().toByteArray(), clock.instant());
    active.remove(name);
    presignatures.excluded(name, partyId);
    log.error(
        "party {} is excluded from key {} for {} in session {}", partyId, name, cause, session);
  }

  /** Forgets what is remembered of a key: its shares are of another epoch, here or elsewhere. */
  void renewed(String name) {
    active.remove(name);
    presignatures.renewed(name);
  }

  /**
   * Takes up what is CREATING and nobody's work.
   *
   * @param own also what an earlier process of this replica has left
   * @return how many were another replica's, or nobody's
   */
  int takeOver(boolean own) {
    List<KeyRecord> taken = store.takeAll(own);
    if (!taken.isEmpty()) {
      log.info("taking up {} key creations", taken.size());
    }
    taken.forEach(this::resume);
    return taken.size();
  }

  private void resume(KeyRecord record) {
    Run.Key key = new Run.Key(record.requester(), record.requestId(), record.intentDigest());
    Run<KeyRecord> run =
        new Run<>(record.name(), new Caller(System.nanoTime(), TraceContext.create(random)));
    if (runs.putIfAbsent(key, run) == null) {
      begin(key, run, record, () -> recheck(record), true);
    }
  }

  private VerifiedIntent.KeyCreation recheck(KeyRecord record) {
    if (intents.check(record.intent()) instanceof VerifiedIntent.KeyCreation intent) {
      return intent;
    }
    throw new IllegalStateException("the stored intent of a key creation is another intent");
  }

  private void begin(
      Run.Key key,
      Run<KeyRecord> run,
      KeyRecord record,
      Supplier<VerifiedIntent.KeyCreation> intent,
      boolean mine) {
    threads.execute(
        () -> {
          try (LogScope scope = LogScope.open().trace(run.trace).request(record.requestId())) {
            work(key, run, record, intent, mine);
          } catch (RuntimeException e) {
            log.error("work on a key creation failed", e);
            run.fail(e);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            run.fail(Trouble.of(ErrorReason.DRAINING, record.name()).toException());
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
      store.take(id).ifPresent(this::resume);
    } catch (StoreUnavailableException e) {
      log.warn("cannot see whose work a key creation is: {}", e.getMessage());
    }
  }

  /** Works whenever the request is this replica's, and else waits. */
  private void work(
      Run.Key key,
      Run<KeyRecord> run,
      KeyRecord record,
      Supplier<VerifiedIntent.KeyCreation> intent,
      boolean mine)
      throws InterruptedException {
    boolean working = mine;
    do {
      if (!working
          && !run.awaitTurn(() -> look(key, run, record), () -> false, making.stopping())) {
        return;
      }
      VerifiedIntent.KeyCreation verified;
      try {
        verified = intent.get();
      } catch (CustodyException e) {
        // Resumed, and the configuration has changed: the requester is not known any more.
        end(
            key,
            run,
            record.failed(new Trouble(e.reason(), e.metadata()).toStatus(), record.sessions()),
            e.reason().name());
        return;
      }
      working = drive(key, run, record, verified);
    } while (!working);
  }

  private Run.Look look(Run.Key key, Run<KeyRecord> run, KeyRecord record) {
    if (store.take(record.id()).isPresent()) {
      metrics.takenOver(CoordinatorMetrics.KEY_CREATION_WORK, 1);
      return Run.Look.MINE;
    }
    KeyRecord stored = stored(record);
    if (stored.state() == Key.State.CREATING) {
      return Run.Look.ANOTHERS;
    }
    runs.remove(key, run);
    run.finish(stored);
    return Run.Look.OVER;
  }

  private KeyRecord stored(KeyRecord record) {
    return store
        .findRequest(record.requester(), record.requestId())
        .orElseThrow(() -> new IllegalStateException("a stored key creation is gone"));
  }

  private boolean isStillMine(KeyRecord record) {
    try {
      return store.take(record.id()).isPresent();
    } catch (StoreUnavailableException e) {
      log.warn("cannot see whose work a key creation is: {}", e.getMessage());
      return true;
    }
  }

  /** Works until the end; false if the request has become another replica's work. */
  private boolean drive(
      Run.Key key, Run<KeyRecord> run, KeyRecord record, VerifiedIntent.KeyCreation intent)
      throws InterruptedException {
    ShareMaking.Task task =
        new ShareMaking.Task(
            record.name(),
            intent.scheme(),
            null,
            List.of(),
            FIRST_EPOCH,
            intent.threshold(),
            intent.envelope(),
            intent.notAfter(),
            record.parties(),
            ErrorReason.KEY_CREATION_FAILED,
            () -> {},
            () -> isStillMine(record),
            false,
            false);
    switch (making.drive(task, run, record.sessions())) {
      case End.Lost lost -> {
        return false;
      }
      case End.Made made -> {
        end(key, run, record.active(made.keyPublic(), made.sessions()), CoordinatorMetrics.OK);
        log.info("key {} is active", record.name());
      }
      case End.Failed failed -> {
        if (!isStillMine(record)) {
          return false;
        }
        end(
            key,
            run,
            record.failed(failed.trouble().toStatus(), failed.sessions()),
            failed.trouble().reason().name());
      }
      case End.Stopped stopped ->
          run.fail(Trouble.of(ErrorReason.DRAINING, record.name()).toException());
    }
    return true;
  }

  /** Stores the end, however long the database takes to come back: it must not be lost. */
  private void end(Run.Key key, Run<KeyRecord> run, KeyRecord finished, String outcome)
      throws InterruptedException {
    Pace pace = new Pace(making.stopping());
    while (true) {
      try {
        KeyRecord stored = finished;
        if (!store.finish(
            finished.id(), finished.keyPublic(), finished.error(), finished.sessions())) {
          stored = stored(finished);
        }
        metrics.keyCreationEnded(finished.scheme(), outcome);
        runs.remove(key, run);
        run.finish(stored);
        return;
      } catch (StoreUnavailableException e) {
        if (making.stopping().isDone()) {
          throw e;
        }
        log.warn("cannot store the end of a key creation yet: {}", e.getMessage());
        pace.pause();
      }
    }
  }

  /** How many requests are being worked on. */
  public int running() {
    return runs.size();
  }

  /** Starts nothing new; what is running ends at its next step, and another replica goes on. */
  public void stop() {
    making.stop();
  }
}
