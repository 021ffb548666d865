package io.coterie.coordinator.custody;

import com.google.protobuf.ByteString;
import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.QuorumChooser.Choice;
import io.coterie.coordinator.session.RefusalScope;
import io.coterie.coordinator.session.Session;
import io.coterie.coordinator.session.SessionId;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.SessionFailures;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.party.v1.RefusalReason;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keys: created by all their parties together, and looked up. One request id gives one key.
 *
 * <p>An ACTIVE key never changes, so it is remembered; what is excluded for it is remembered with
 * it.
 */
public final class Keys {
  private static final Logger log = LoggerFactory.getLogger(Keys.class);

  /** Keys remembered; when there are more, all are read again. */
  private static final int MAX_REMEMBERED = 10_000;

  /** Generation of the shares that key generation makes. */
  private static final int FIRST_EPOCH = 1;

  private record RunKey(String requester, String requestId, ByteString digest) {}

  private record Remembered(KeyRecord record, Set<Integer> excluded) {}

  private final ConcurrentHashMap<RunKey, Run<KeyRecord>> runs = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<String, Remembered> active = new ConcurrentHashMap<>();
  private final CompletableFuture<Void> stopping = new CompletableFuture<>();
  private final KeyStore store;
  private final Sessions sessions;
  private final QuorumChooser chooser;
  private final AdaptiveTimeout timeout;
  private final PartyLink link;
  private final IntentCheck intents;
  private final RunLimits limits;
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
      Sessions sessions,
      QuorumChooser chooser,
      AdaptiveTimeout timeout,
      PartyLink link,
      IntentCheck intents,
      RunLimits limits,
      Executor threads,
      CoordinatorMetrics metrics,
      Clock clock,
      SecureRandom random) {
    this.store = store;
    this.sessions = sessions;
    this.chooser = chooser;
    this.timeout = timeout;
    this.link = link;
    this.intents = intents;
    this.limits = limits;
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
    RunKey key = new RunKey(intent.requester(), intent.requestId(), intent.digest());
    Run<KeyRecord> fresh = new Run<>(intent.key(), caller);
    Run<KeyRecord> run = runs.putIfAbsent(key, fresh);
    if (run != null) {
      run.join(caller);
      return run.await(caller);
    }
    boolean started = false;
    try {
      KeyRecord stored = claim(intent);
      if (stored.state() != Key.State.CREATING) {
        fresh.finish(stored);
        return stored;
      }
      begin(key, fresh, stored, () -> intent);
      started = true;
    } catch (RuntimeException e) {
      fresh.fail(e);
      throw e;
    } finally {
      if (!started) {
        runs.remove(key, fresh);
      }
    }
    return fresh.await(caller);
  }

  /** Stores the request, or finds it stored. */
  private KeyRecord claim(VerifiedIntent.KeyCreation intent) {
    Instant now = clock.instant().truncatedTo(ChronoUnit.MICROS);
    if (now.isAfter(intent.notAfter())) {
      return same(
          intent,
          store
              .findRequest(intent.requester(), intent.requestId())
              .orElseThrow(() -> expired(intent, now)));
    }
    if (stopping.isDone()) {
      throw Trouble.of(ErrorReason.DRAINING, intent.key()).toException();
    }
    Optional<SecureChannel> channel = link.channel();
    if (channel.isEmpty()) {
      // Without a roster, party names mean nothing: what is stored can still be answered.
      return same(
          intent,
          store
              .findRequest(intent.requester(), intent.requestId())
              .orElseThrow(() -> Trouble.outOfReach(intent.key(), intent.parties()).toException()));
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
            holders(intent, channel.get().roster()),
            Key.State.CREATING,
            0,
            intent.notAfter(),
            now,
            null,
            null);
    return switch (store.create(attempt)) {
      case KeyStore.Creation.Stored s -> s.record();
      case KeyStore.Creation.Known k -> same(intent, k.record());
      case KeyStore.Creation.NameTaken t ->
          throw Trouble.of(ErrorReason.KEY_EXISTS, intent.key()).toException();
    };
  }

  private static KeyRecord same(VerifiedIntent intent, KeyRecord stored) {
    if (!stored.intentDigest().equals(intent.digest())) {
      throw new CustodyException(
          ErrorReason.REQUEST_ID_REUSED, Map.of(StatusErrors.RESOURCE, stored.name()));
    }
    return stored;
  }

  private static CustodyException expired(VerifiedIntent intent, Instant now) {
    try {
      intent.requireNotExpired(now);
      throw new IllegalStateException("the intent has not expired");
    } catch (IntentException e) {
      return e.toCustodyException();
    }
  }

  private static List<KeyRecord.Holder> holders(VerifiedIntent.KeyCreation intent, Roster roster) {
    List<KeyRecord.Holder> holders = new ArrayList<>();
    for (String name : intent.parties()) {
      Member member =
          roster
              .byName(name)
              .filter(m -> m.role() == Member.Role.PARTY)
              .orElseThrow(
                  () ->
                      Trouble.parties(
                              ErrorReason.PARTY_UNKNOWN,
                              intent.key(),
                              List.of(name),
                              0,
                              "not_in_roster")
                          .toException());
      holders.add(new KeyRecord.Holder(member.partyId(), name));
    }
    holders.sort(Comparator.comparingInt(KeyRecord.Holder::partyId));
    return holders;
  }

  /** The running or successful attempt of that name, or else its last failed one. */
  public Optional<KeyRecord> find(String name) {
    Remembered remembered = active.get(name);
    return remembered != null
        ? Optional.of(remembered.record())
        : store.find(name).map(this::remember);
  }

  private KeyRecord remember(KeyRecord record) {
    if (record.state() == Key.State.ACTIVE) {
      if (active.size() >= MAX_REMEMBERED) {
        active.clear();
      }
      active.put(record.name(), new Remembered(record, store.excluded(record.name())));
    }
    return record;
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

  /** Leaves a party out of every later session of a key. */
  void exclude(String name, int partyId, String cause, SessionId session) {
    store.exclude(name, partyId, cause, session.bytes().toByteArray(), clock.instant());
    active.remove(name);
    log.error(
        "party {} is excluded from key {} for {} in session {}", partyId, name, cause, session);
  }

  /** Takes up what was CREATING when this replica, or the one before it, stopped. */
  public void resume() {
    List<KeyRecord> creating = store.creating();
    if (!creating.isEmpty()) {
      log.info("resuming {} key creations", creating.size());
    }
    for (KeyRecord record : creating) {
      RunKey key = new RunKey(record.requester(), record.requestId(), record.intentDigest());
      Run<KeyRecord> run =
          new Run<>(record.name(), new Caller(System.nanoTime(), TraceContext.create(random)));
      if (runs.putIfAbsent(key, run) == null) {
        begin(key, run, record, () -> recheck(record));
      }
    }
  }

  private VerifiedIntent.KeyCreation recheck(KeyRecord record) {
    if (intents.check(record.intent()) instanceof VerifiedIntent.KeyCreation intent) {
      return intent;
    }
    throw new IllegalStateException("the stored intent of a key creation is another intent");
  }

  private void begin(
      RunKey key,
      Run<KeyRecord> run,
      KeyRecord record,
      Supplier<VerifiedIntent.KeyCreation> intent) {
    threads.execute(
        () -> {
          try (LogScope scope = LogScope.open().trace(run.trace).request(record.requestId())) {
            VerifiedIntent.KeyCreation verified;
            try {
              verified = intent.get();
            } catch (CustodyException e) {
              // Resumed, and the configuration has changed: the requester is not known any more.
              end(
                  key,
                  run,
                  record.failed(
                      new Trouble(e.reason(), e.metadata()).toStatus(), record.sessions()),
                  e.reason().name());
              return;
            }
            new Work(key, run, record, verified).drive();
          } catch (RuntimeException e) {
            log.error("work on a key creation failed", e);
            run.fail(e);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            run.fail(Trouble.of(ErrorReason.DRAINING, record.name()).toException());
          } finally {
            runs.remove(key, run);
          }
        });
  }

  /** Stores the end, however long the database takes to come back: it must not be lost. */
  private void end(RunKey key, Run<KeyRecord> run, KeyRecord finished, String outcome)
      throws InterruptedException {
    Pace pace = new Pace(stopping);
    while (true) {
      try {
        KeyRecord stored = finished;
        if (!store.finish(
            finished.id(), finished.keyPublic(), finished.error(), finished.sessions())) {
          stored =
              store
                  .findRequest(finished.requester(), finished.requestId())
                  .orElseThrow(() -> new IllegalStateException("a stored key creation is gone"));
        }
        metrics.keyCreationEnded(finished.scheme(), outcome);
        runs.remove(key, run);
        run.finish(stored);
        return;
      } catch (StoreUnavailableException e) {
        if (stopping.isDone()) {
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

  /** Starts nothing new; what is running ends at its next step and is resumed after the restart. */
  public void stop() {
    stopping.complete(null);
  }

  /** The work on one request: a thread's state. */
  private final class Work {
    private final RunKey key;
    private final Run<KeyRecord> run;
    private final KeyRecord record;
    private final VerifiedIntent.KeyCreation intent;
    private final Pace pace = new Pace(stopping);
    private int tried;
    private int attempt;

    Work(RunKey key, Run<KeyRecord> run, KeyRecord record, VerifiedIntent.KeyCreation intent) {
      this.key = key;
      this.run = run;
      this.record = record;
      this.intent = intent;
      this.tried = record.sessions();
    }

    void drive() throws InterruptedException {
      while (!stopping.isDone()) {
        if (clock.instant().isAfter(intent.notAfter())) {
          fail(lastTrouble().as(ErrorReason.INTENT_EXPIRED));
          return;
        }
        if (tried >= limits.maxSessions()) {
          fail(lastTrouble().as(ErrorReason.KEY_CREATION_FAILED));
          return;
        }
        Optional<SecureChannel> channel = link.channel();
        if (channel.isEmpty()) {
          run.troubled(
              Trouble.outOfReach(
                  run.resource, record.parties().stream().map(KeyRecord.Holder::name).toList()));
          pace.pause();
          continue;
        }
        List<Member> members = new ArrayList<>();
        for (KeyRecord.Holder holder : record.parties()) {
          channel.get().roster().byPartyId(holder.partyId()).ifPresent(members::add);
        }
        // All of them: a key has a share for each.
        switch (chooser.choose(
            record.parties().size(), members, channel.get().reachable(), new HashMap<>())) {
          case Choice.Exhausted e -> {
            fail(
                Trouble.parties(
                    ErrorReason.PARTY_UNKNOWN,
                    run.resource,
                    record.parties().stream()
                        .filter(h -> members.stream().noneMatch(m -> m.partyId() == h.partyId()))
                        .map(KeyRecord.Holder::name)
                        .toList(),
                    0,
                    "not_in_roster"));
            return;
          }
          case Choice.OutOfReach o -> {
            run.troubled(Trouble.outOfReach(run.resource, Trouble.names(o.unreachable())));
            pace.pauseUntilReachable(channel.get(), o.unreachable());
          }
          case Choice.Chosen chosen -> {
            if (attempt > 0) {
              pace.pause();
            }
            if (tryWith(channel.get(), chosen.parties())) {
              return;
            }
          }
        }
      }
      run.fail(Trouble.of(ErrorReason.DRAINING, run.resource).toException());
    }

    /** One session; true if the request has ended. */
    private boolean tryWith(SecureChannel channel, List<Member> parties)
        throws InterruptedException {
      Instant now = clock.instant();
      Duration time = timeout.next(attempt);
      Duration untilExpiry = Duration.between(now, intent.notAfter());
      if (time.compareTo(untilExpiry) > 0) {
        time = untilExpiry;
      }
      Instant deadline = now.plus(time).plus(limits.clockSkew());
      Session session =
          sessions.start(
              channel,
              new SessionPlan(
                  new SessionPlan.Work.Keygen(),
                  intent.scheme(),
                  intent.key(),
                  FIRST_EPOCH,
                  intent.threshold(),
                  intent.envelope(),
                  parties,
                  deadline.isAfter(intent.notAfter()) ? intent.notAfter() : deadline,
                  run.trace));
      tried++;
      attempt++;
      run.trying(session);
      long started = System.nanoTime();
      SessionOutcome outcome = session.await(time);
      if (outcome instanceof SessionOutcome.Created created) {
        timeout.succeeded(System.nanoTime() - started);
        succeed(created.keyPublic());
        return true;
      }
      if (outcome instanceof SessionOutcome.Stopped) {
        run.fail(Trouble.of(ErrorReason.DRAINING, run.resource).toException());
        return true;
      }
      Trouble trouble = Trouble.of(run.resource, session, outcome);
      run.troubled(trouble);
      try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
        log.warn("key generation without key: {} {}", trouble.reason(), trouble.metadata());
      }
      Trouble end = lasting(session, outcome, trouble);
      if (end != null) {
        fail(end);
        return true;
      }
      if (outcome instanceof SessionOutcome.Unsent) {
        tried--;
      }
      return false;
    }

    /**
     * Why no later session of this request can succeed; null if one may. All parties are needed.
     */
    private @Nullable Trouble lasting(Session session, SessionOutcome outcome, Trouble trouble) {
      return switch (outcome) {
        case SessionOutcome.Refused refused -> {
          for (Map.Entry<Integer, RefusalReason> e : refused.by().entrySet()) {
            if (RefusalScope.of(e.getValue()) != RefusalScope.PARTY) {
              yield Trouble.parties(
                  SessionFailures.reason(e.getValue()),
                  run.resource,
                  session.names(List.of(e.getKey())),
                  0,
                  e.getValue().name());
            }
          }
          yield null;
        }
        case SessionOutcome.Aborted aborted -> {
          if (!aborted.culprits().isEmpty()) {
            yield trouble;
          }
          yield aborted.hopeless() ? trouble.as(ErrorReason.KEY_CREATION_FAILED) : null;
        }
        case SessionOutcome.TimedOut t -> null;
        case SessionOutcome.Unsent u -> null;
        case SessionOutcome.Stopped s -> null;
        case SessionOutcome.Created c -> null;
        case SessionOutcome.Signed s ->
            throw new IllegalStateException("a key generation session made a signature");
      };
    }

    private Trouble lastTrouble() {
      Trouble last = run.trouble();
      return last != null ? last : Trouble.of(ErrorReason.INTENT_EXPIRED, run.resource);
    }

    private void succeed(KeyPublic keyPublic) throws InterruptedException {
      end(key, run, record.active(keyPublic, tried), CoordinatorMetrics.OK);
      log.info("key {} is active", record.name());
    }

    private void fail(Trouble trouble) throws InterruptedException {
      end(key, run, record.failed(trouble.toStatus(), tried), trouble.reason().name());
    }
  }
}
