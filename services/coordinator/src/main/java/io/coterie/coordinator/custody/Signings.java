package io.coterie.coordinator.custody;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.Member;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.PresignaturePool.Combination;
import io.coterie.coordinator.custody.PresignaturePool.Presignature;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.Protocol;
import io.coterie.coordinator.session.Protocol.Operation;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.QuorumChooser.Choice;
import io.coterie.coordinator.session.RefusalScope;
import io.coterie.coordinator.session.Session;
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
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Signatures for requesters: one request id gives one signature, whatever is repeated or killed.
 *
 * <p>Each request is worked on by one thread, which tries one quorum after another until there is a
 * verified signature, the request can never succeed, or its intent has expired.
 */
public final class Signings {
  private static final Logger log = LoggerFactory.getLogger(Signings.class);

  /**
   * When parties know of a session that it may not become a signature any more, in multiples of the
   * clock skew after its deadline.
   */
  private static final int SETTLING_SKEWS = 5;

  /** For differences: {@link System#nanoTime} may overflow. */
  private static final long BEGINNING = System.nanoTime();

  private final ConcurrentHashMap<Run.Key, Run<SigningRecord>> runs = new ConcurrentHashMap<>();
  private final CompletableFuture<Void> stopping = new CompletableFuture<>();
  private final Changes changes = new Changes();
  private final SigningStore store;
  private final Keys keys;
  private final Renewals renewals;
  private final PresignaturePool presignatures;
  private final Sessions sessions;
  private final QuorumChooser chooser;
  private final AdaptiveTimeout timeout;
  private final PartyLink link;
  private final IntentCheck intents;
  private final RunLimits limits;
  private final SessionTurns turns;
  private final Executor threads;
  private final CoordinatorMetrics metrics;
  private final Clock clock;
  private final SecureRandom random;

  /**
   * The signings of one coordinator.
   *
   * @param threads starts a thread for each request; they wait most of the time
   */
  public Signings(
      SigningStore store,
      Keys keys,
      Renewals renewals,
      PresignaturePool presignatures,
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
    this.keys = keys;
    this.renewals = renewals;
    this.presignatures = presignatures;
    this.sessions = sessions;
    this.chooser = chooser;
    this.timeout = timeout;
    this.link = link;
    this.intents = intents;
    this.limits = limits;
    this.turns = new SessionTurns(limits.atOnce());
    this.threads = threads;
    this.metrics = metrics;
    this.clock = clock;
    this.random = random;
  }

  /**
   * Gets the signature for an intent: the stored one, that of the work in progress, or a new one.
   *
   * @return SIGNED or FAILED
   * @throws CustodyException if the request is refused, with nothing stored, or the caller's time
   *     is up; the work goes on then
   */
  public SigningRecord sign(VerifiedIntent.Signing intent, Caller caller)
      throws InterruptedException {
    Run.Key key = Run.Key.of(intent);
    UUID id = SigningRecord.idOf(intent.requester(), intent.requestId());
    return Run.joinOrStart(
        runs,
        key,
        intent.key() + "/signings/" + id,
        caller,
        fresh -> {
          Claim claim = claim(intent, id);
          if (claim.record().state() != Signing.State.PENDING) {
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
  private record Claim(SigningRecord record, boolean mine) {}

  /** Stores the request, or finds it stored. */
  private Claim claim(VerifiedIntent.Signing intent, UUID id) {
    Instant now = clock.instant().truncatedTo(ChronoUnit.MICROS);
    Optional<SigningRecord> known;
    if (now.isAfter(intent.notAfter())) {
      known = store.find(id);
      if (known.isEmpty()) {
        throw expired(intent, now);
      }
    } else if (stopping.isDone()) {
      throw Trouble.of(ErrorReason.DRAINING, intent.key()).toException();
    } else {
      SigningSubject subject;
      try {
        subject = SigningSubject.of(intent, requireUsable(intent));
      } catch (CustodyException e) {
        // What was stored is answered, even if it would not be accepted any more.
        return new Claim(same(intent, store.find(id).orElseThrow(() -> e)), false);
      }
      SigningRecord pending =
          new SigningRecord(
              id,
              intent.requester(),
              intent.requestId(),
              intent.key(),
              intent.digest(),
              intent.envelope(),
              intent.scheme(),
              Signing.State.PENDING,
              0,
              List.of(),
              intent.notAfter(),
              now,
              subject.digest(),
              subject.decoded(),
              null,
              null,
              null);
      if (runs.size() > limits.maxRuns()) {
        throw Trouble.of(ErrorReason.OVERLOADED, intent.key()).toException();
      }
      known = store.claimOnce(pending);
      if (known.isEmpty()) {
        return new Claim(pending, true);
      }
    }
    return new Claim(same(intent, known.get()), false);
  }

  private static SigningRecord same(VerifiedIntent.Signing intent, SigningRecord stored) {
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

  private KeyRecord requireUsable(VerifiedIntent.Signing intent) {
    KeyRecord key =
        keys.find(intent.key())
            .orElseThrow(() -> Trouble.of(ErrorReason.KEY_NOT_FOUND, intent.key()).toException());
    if (key.state() != Key.State.ACTIVE) {
      throw Trouble.of(ErrorReason.KEY_NOT_ACTIVE, intent.key()).toException();
    }
    if (key.scheme() != intent.scheme()) {
      throw Trouble.of(ErrorReason.UNSUPPORTED_SCHEME, intent.key()).toException();
    }
    return key;
  }

  /** The signing of that id. */
  public Optional<SigningRecord> find(UUID id) {
    return store.find(id);
  }

  /**
   * Tells {@code watcher} about every change of the signing from now on.
   *
   * @return ends the watching
   */
  public Runnable watch(UUID id, SigningWatcher watcher) {
    return changes.watch(id, watcher);
  }

  /** Watches for the end of a signing that is not worked on here, while somebody wants to know. */
  public void follow(SigningRecord record) {
    resume(record, false);
  }

  /**
   * Takes up what is PENDING and nobody's work.
   *
   * @param own also what an earlier process of this replica has left
   * @return how many were another replica's, or nobody's
   */
  int takeOver(boolean own) {
    List<UUID> taken = store.takeAll(own);
    if (!taken.isEmpty()) {
      log.info("taking up {} pending signings", taken.size());
      threads.execute(() -> takeUp(taken));
    }
    return taken.size();
  }

  /** One after the other, so that what waits here takes no memory but its ids. */
  private void takeUp(List<UUID> ids) {
    try {
      for (UUID id : ids) {
        Pace pace = Pace.ofLooks(stopping);
        while (runs.size() >= limits.maxRuns() / 2 && !stopping.isDone()) {
          pace.pause();
        }
        takeUp(id);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Begins the work on a request that has become this replica's. */
  private void takeUp(UUID id) throws InterruptedException {
    Pace pace = new Pace(stopping);
    while (!stopping.isDone()) {
      try {
        store.take(id).ifPresent(record -> resume(record, true));
        return;
      } catch (StoreUnavailableException e) {
        log.warn("cannot take a signing up yet: {}", e.getMessage());
      }
      pace.pause();
    }
  }

  private void resume(SigningRecord record, boolean mine) {
    if (record.state() != Signing.State.PENDING) {
      return;
    }
    Run.Key key = new Run.Key(record.requester(), record.requestId(), record.intentDigest());
    Run<SigningRecord> run =
        new Run<>(record.name(), new Caller(System.nanoTime(), TraceContext.create(random)));
    if (runs.putIfAbsent(key, run) == null) {
      begin(key, run, record, () -> recheck(record), mine);
    }
  }

  private VerifiedIntent.Signing recheck(SigningRecord record) {
    if (intents.check(record.intent()) instanceof VerifiedIntent.Signing intent) {
      return intent;
    }
    throw new IllegalStateException("the stored intent of a signing is another intent");
  }

  private void begin(
      Run.Key key,
      Run<SigningRecord> run,
      SigningRecord record,
      Supplier<VerifiedIntent.Signing> intent,
      boolean mine) {
    threads.execute(
        () -> {
          try (LogScope scope = LogScope.open().trace(run.trace).request(record.requestId())) {
            work(key, run, record, intent, mine);
          } catch (StoreUnavailableException e) {
            log.warn("work on a signing stopped: {}", e.getMessage());
            run.fail(e);
          } catch (RuntimeException e) {
            log.error("work on a signing failed", e);
            run.fail(e);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            run.fail(Trouble.of(ErrorReason.DRAINING, record.name()).toException());
          } finally {
            runs.remove(key, run);
            if (run.leave()) {
              // It may have become this replica's while the last one who waited for it went.
              threads.execute(() -> takeUp(List.of(record.id())));
            }
          }
        });
  }

  /** Works whenever the request is this replica's, and else waits. */
  private void work(
      Run.Key key,
      Run<SigningRecord> run,
      SigningRecord claimed,
      Supplier<VerifiedIntent.Signing> intent,
      boolean mine)
      throws InterruptedException {
    boolean working = mine;
    do {
      if (!working
          && !run.awaitTurn(
              () -> look(key, run, claimed.id()),
              () -> changes.isWatched(claimed.id()),
              stopping)) {
        return;
      }
      Work work;
      try {
        work = new Work(key, run, claimed, intent.get());
      } catch (CustodyException e) {
        // Resumed, and the configuration has changed: the requester is not known any more.
        end(key, run, claimed, new Trouble(e.reason(), e.metadata()), claimed.sessions());
        return;
      }
      working = work.drive();
    } while (!working);
  }

  private Run.Look look(Run.Key key, Run<SigningRecord> run, UUID id) {
    if (store.take(id).isPresent()) {
      metrics.takenOver(CoordinatorMetrics.SIGNING_WORK, 1);
      return Run.Look.MINE;
    }
    Optional<SigningRecord> stored = store.find(id);
    if (stored.isPresent() && stored.get().state() == Signing.State.PENDING) {
      return Run.Look.ANOTHERS;
    }
    // If it is not there, a crash of the database has lost it: whoever waits stores it again.
    stored.ifPresent(
        ended -> {
          runs.remove(key, run);
          run.finish(ended);
          changes.publish(ended);
        });
    return Run.Look.OVER;
  }

  /** Stores a result, however long the database takes to come back: it must not be lost. */
  private SigningRecord finish(SigningRecord finished) throws InterruptedException {
    Pace pace = new Pace(stopping);
    while (true) {
      try {
        return store.finish(finished);
      } catch (StoreUnavailableException e) {
        if (stopping.isDone()) {
          throw e;
        }
        log.warn("cannot store the end of a signing yet: {}", e.getMessage());
        pace.pause();
      }
    }
  }

  private void end(
      Run.Key key, Run<SigningRecord> run, SigningRecord record, Trouble trouble, int tried)
      throws InterruptedException {
    Instant now = clock.instant().truncatedTo(ChronoUnit.MICROS);
    SigningRecord stored = finish(record.failed(trouble.toStatus(), tried, now));
    metrics.signingEnded(
        record.scheme(),
        trouble.reason().name(),
        Duration.ofNanos(System.nanoTime() - run.startedNanos));
    changes.publish(stored);
    runs.remove(key, run);
    run.finish(stored);
  }

  /** How many requests are being worked on. */
  public int running() {
    return runs.size();
  }

  /** How many of them wait until a session may begin. */
  public int waiting() {
    return turns.waiting();
  }

  /** Whether each of these parties could do more than it has to do now. */
  public boolean hasRoom(List<Integer> parties) {
    return turns.hasRoom(parties);
  }

  /** How many signing sessions may run at once now with the slowest party. */
  public int atOnce() {
    return turns.limit();
  }

  /** Whoever watches a signing is told to do so elsewhere. */
  public void endWatching() {
    changes.stop();
  }

  /** Starts nothing new; what is running ends at its next step, and another replica goes on. */
  public void stop() {
    stopping.complete(null);
    changes.stop();
  }

  /**
   * A session that may still become the signature of its request.
   *
   * @param bytes of the order, as the parties had them
   * @param claimant the party that says it has given its part in it; 0: this run has ordered it
   */
  private record Unsettled(Order order, ByteString bytes, int claimant) {
    static Unsettled own(ByteString bytes) {
      try {
        return new Unsettled(Order.parseFrom(bytes), bytes, 0);
      } catch (InvalidProtocolBufferException e) {
        throw new IllegalStateException("an order of this coordinator is damaged", e);
      }
    }
  }

  /** The work on one request: a thread's state. */
  private final class Work {
    private final Run.Key key;
    private final Run<SigningRecord> run;
    private final SigningRecord record;
    private final VerifiedIntent.Signing intent;
    private final Pace pace = new Pace(stopping);
    private final Map<Integer, Integer> failures = new HashMap<>();
    private final Map<Integer, RefusalReason> refusals = new HashMap<>();
    private final SigningSubject subject;
    private final boolean presignable;
    private Set<Integer> excluded;
    private KeyRecord signingKey;
    private KeyPublic keyPublic;
    private int tried;
    private int attempt;

    /** A session that may still become the signature: its order is to be given again first. */
    private @Nullable Unsettled unsettled;

    /**
     * Parties that have given their part in a session that may still become a signature. They alone
     * know when it may not any more: one of them takes part in whatever comes next, until they must
     * know.
     */
    private Set<Integer> witnesses = Set.of();

    private Instant witnessesUntil = Instant.MIN;

    /** Parties that said in the last session that their shares are of another epoch. */
    private final Set<Integer> otherEpoch = new HashSet<>();

    Work(Run.Key key, Run<SigningRecord> run, SigningRecord record, VerifiedIntent.Signing intent) {
      this.key = key;
      this.run = run;
      this.record = record;
      this.intent = intent;
      this.tried = record.sessions();
      this.signingKey = requireUsable(intent);
      this.keyPublic = Objects.requireNonNull(signingKey.keyPublic());
      this.excluded = new HashSet<>(keys.excluded(intent.key()));
      this.subject = SigningSubject.of(intent, signingKey);
      this.presignable = Protocol.of(intent.scheme(), Operation.SIGN_PRESIGNED).isPresent();
    }

    /** Works until the end; false if the request has become another replica's work. */
    boolean drive() throws InterruptedException {
      while (!stopping.isDone()) {
        if (attempt > 0 && !isStillMine()) {
          log.warn("another replica works on this request now");
          return false;
        }
        if (isExpired()) {
          fail(lastTrouble().as(ErrorReason.INTENT_EXPIRED));
          return true;
        }
        if (tried >= limits.maxSessions()) {
          fail(lastTrouble());
          return true;
        }
        Optional<SecureChannel> channel = link.channel();
        if (channel.isEmpty()) {
          run.troubled(Trouble.outOfReach(run.resource, List.of()));
          pace.pause();
          continue;
        }
        if (unsettled != null) {
          Unsettled session = unsettled;
          unsettled = null;
          if (tryAgain(channel.get(), session)) {
            return true;
          }
          continue;
        }
        Collection<Member> candidates = candidates(channel.get());
        Set<Member> reachable = channel.get().reachable();
        Optional<Presignature> presignature = presignature(candidates, reachable);
        if (presignature.isPresent()) {
          List<Integer> set = presignature.get().combination().signingSet();
          List<Member> parties =
              candidates.stream()
                  .filter(m -> set.contains(m.partyId()))
                  .sorted(Comparator.comparingInt(Member::partyId))
                  .toList();
          if (tryWith(channel.get(), parties, presignature.get().id())) {
            return true;
          }
          continue;
        }
        switch (chooser.choose(signingKey.threshold(), candidates, reachable, inOrder())) {
          case Choice.Exhausted e -> {
            fail(exhausted());
            return true;
          }
          case Choice.OutOfReach o -> {
            run.troubled(Trouble.outOfReach(run.resource, Trouble.names(o.unreachable())));
            pace.pauseUntilReachable(channel.get(), o.unreachable());
          }
          case Choice.Chosen chosen -> {
            if (!chosen.fresh()) {
              pace.pause();
            }
            if (tryWith(channel.get(), chosen.parties(), null)) {
              return true;
            }
          }
        }
      }
      run.fail(Trouble.of(ErrorReason.DRAINING, run.resource).toException());
      return true;
    }

    /**
     * Asked before each further session: this process may have been away for longer than it knows.
     */
    private boolean isStillMine() {
      try {
        // If it is not there, a crash of the database has lost it: its end will be stored anew.
        return store.take(record.id()).isPresent() || store.find(record.id()).isEmpty();
      } catch (StoreUnavailableException e) {
        log.warn("cannot see whose work a signing is: {}", e.getMessage());
        return true;
      }
    }

    /** How often each party has failed the request; those without whom nothing goes come first. */
    private Map<Integer, Integer> inOrder() {
      if (clock.instant().isAfter(witnessesUntil)) {
        return failures;
      }
      Map<Integer, Integer> ranks = new HashMap<>(failures);
      witnesses.forEach(party -> ranks.put(party, -1));
      return ranks;
    }

    private Collection<Member> candidates(SecureChannel channel) {
      List<Member> candidates = new ArrayList<>();
      for (KeyRecord.Holder holder : signingKey.parties()) {
        if (!excluded.contains(holder.partyId()) && !refusals.containsKey(holder.partyId())) {
          channel.roster().byPartyId(holder.partyId()).ifPresent(candidates::add);
        }
      }
      return candidates;
    }

    /**
     * A presignature of parties that would do now. Only for the first session of a request: a
     * presignature saves time when all goes well, and something has not.
     */
    private Optional<Presignature> presignature(
        Collection<Member> candidates, Set<Member> reachable) {
      if (!presignable || attempt > 0) {
        return Optional.empty();
      }
      Set<Integer> usable =
          candidates.stream()
              .filter(m -> reachable.contains(m) && !chooser.isSuspect(m))
              .map(Member::partyId)
              .collect(Collectors.toSet());
      return presignatures.take(
          intent.key(), keyPublic.getEpoch(), subject.toSign().target(), usable::containsAll);
    }

    /**
     * One session; true if the request has ended.
     *
     * @param presignature to use; null: without
     */
    private boolean tryWith(
        SecureChannel channel, List<Member> parties, @Nullable ByteString presignature)
        throws InterruptedException {
      Session session;
      SessionOutcome outcome;
      try (SessionTurns.Turn turn = awaitTurn(parties)) {
        if (turn == null) {
          return false;
        }
        Instant now = clock.instant();
        Duration time = sessionTime(now, parties);
        session = sessions.start(channel, plan(sign(presignature), parties, deadline(now, time)));
        tried++;
        attempt++;
        run.trying(session);
        if (attempt > 1) {
          changes.publish(record.trying(tried));
        }
        long started = System.nanoTime();
        outcome = session.await(time);
        if (outcome instanceof SessionOutcome.Signed) {
          timeout.succeeded(System.nanoTime() - started);
          turn.succeeded();
        } else {
          slow(outcome).ifPresent(turn::overloaded);
        }
      }
      switch (outcome) {
        case SessionOutcome.Signed signed -> {
          if (presignable && presignature == null) {
            want(parties);
          }
          succeed(session, signed, presignature != null);
          return true;
        }
        case SessionOutcome.Refused refused ->
            refused
                .by()
                .forEach(
                    (party, reason) -> {
                      switch (RefusalScope.of(reason)) {
                        case REQUEST -> {
                          if (wasLate(reason)) {
                            failed(party);
                          } else {
                            refusals.put(party, reason);
                          }
                        }
                        case PARTY -> failed(party);
                        case SIGNING_SET -> {
                          presignatures.refused(combination(parties));
                          parties.stream()
                              .filter(m -> m.partyId() != party)
                              .forEach(m -> failed(m.partyId()));
                        }
                        case EPOCH -> otherEpoch.add(party);
                        case PRESIGNATURE -> presignatures.forgotten(party);
                      }
                    });
        case SessionOutcome.Aborted aborted -> aborted(session, aborted, parties);
        case SessionOutcome.TimedOut timedOut -> {
          blame(timedOut.missing(), parties);
          // Without presignatures a signature can be made again: it would be the same.
          unsettled = presignable ? Unsettled.own(session.order()) : null;
        }
        case SessionOutcome.Bound bound -> {
          unsettled = claimed(bound.party(), bound.order());
          if (unsettled == null) {
            // A refusal without a reason.
            failed(bound.party());
          } else {
            // No session of this one's: nothing was run, and nobody failed.
            tried--;
          }
          pace.pause();
        }
        case SessionOutcome.Unsent unsent -> {
          switch (unsent.cause()) {
            // One of them is not what the roster says: others are asked, in the end without it.
            case UNAUTHENTICATED, UNTRUSTED, NOT_ESTABLISHED -> blame(Set.of(), parties);
            // Nobody's fault but the network's: the same parties are asked again, after a pause.
            default -> tried--;
          }
        }
        case SessionOutcome.Stopped stopped -> {
          run.fail(Trouble.of(ErrorReason.DRAINING, run.resource).toException());
          return true;
        }
        case SessionOutcome.Created created ->
            throw new IllegalStateException("a signing session created a key");
        case SessionOutcome.Presigned presigned ->
            throw new IllegalStateException("a signing session made a presignature");
        case SessionOutcome.Undecided undecided ->
            throw new IllegalStateException("a signing session was about shares");
      }
      Trouble trouble = Trouble.of(run.resource, session, outcome).asOf(isExpired());
      Trouble before = run.trouble();
      // What keeps the other session from its end is what the caller is to know.
      run.troubled(before != null && outcome instanceof SessionOutcome.Bound ? before : trouble);
      try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
        log.warn("signing session without result: {} {}", trouble.reason(), trouble.metadata());
      }
      if (outcome instanceof SessionOutcome.Unsent) {
        pace.pause();
      }
      if (!otherEpoch.isEmpty()) {
        // A renewal is under way here or in another replica: the parties switch one by one.
        pace.pause();
        int epoch = keyPublic.getEpoch();
        signingKey = renewals.learn(intent.key(), epoch);
        keyPublic = Objects.requireNonNull(signingKey.keyPublic());
        if (keyPublic.getEpoch() == epoch) {
          // Or it is these parties that are at an epoch of their own: others are asked first.
          otherEpoch.forEach(this::failed);
        }
        otherEpoch.clear();
        excluded = new HashSet<>(keys.excluded(intent.key()));
      } else if (!(outcome instanceof SessionOutcome.Unsent)) {
        // Another replica may know more about the parties.
        excluded.addAll(keys.excludedByNow(intent.key()));
      }
      return false;
    }

    /** Of which parties more was asked than they can do; one that is gone looks the same. */
    private Optional<Set<Integer>> slow(SessionOutcome outcome) {
      return switch (outcome) {
        case SessionOutcome.TimedOut timedOut -> Optional.of(timedOut.missing());
        case SessionOutcome.Refused refused -> {
          Set<Integer> slow = new HashSet<>();
          refused
              .by()
              .forEach(
                  (party, reason) -> {
                    if (reason == RefusalReason.REFUSAL_REASON_OVERLOADED || wasLate(reason)) {
                      slow.add(party);
                    }
                  });
          yield slow.isEmpty() ? Optional.empty() : Optional.of(slow);
        }
        default -> Optional.empty();
      };
    }

    /** Whether the order had come too late, rather than the request. */
    private boolean wasLate(RefusalReason reason) {
      return reason == RefusalReason.REFUSAL_REASON_INTENT_EXPIRED && !isExpired();
    }

    private boolean isExpired() {
      return clock.instant().isAfter(intent.notAfter());
    }

    /** Null if this replica stops, or the intent expires, before it is this request's turn. */
    private SessionTurns.@Nullable Turn awaitTurn(List<Member> parties)
        throws InterruptedException {
      return turns
          .await(
              run.startedNanos - BEGINNING,
              parties.stream().map(Member::partyId).toList(),
              () -> run.patienceNanos() > 0,
              () -> stopping.isDone() || isExpired())
          .orElse(null);
    }

    private SessionPlan.Work.Sign sign(@Nullable ByteString presignature) {
      return new SessionPlan.Work.Sign(subject.toSign(), keyPublic, presignature);
    }

    private SessionPlan plan(SessionPlan.Work.Sign work, List<Member> parties, Instant deadline) {
      return new SessionPlan(
          work,
          intent.scheme(),
          intent.key(),
          keyPublic.getEpoch(),
          signingKey.threshold(),
          intent.envelope(),
          parties,
          deadline,
          run.trace);
    }

    private Instant deadline(Instant now, Duration time) {
      Instant deadline = now.plus(time).plus(limits.clockSkew());
      return deadline.isAfter(intent.notAfter()) ? intent.notAfter() : deadline;
    }

    /**
     * The session in which a party says that it has given its part of the signature; null if what
     * it sends is not the order of one that could be, to the last bit.
     */
    private @Nullable Unsettled claimed(int party, ByteString bytes) {
      Order order;
      try {
        order = Order.parseFrom(bytes);
      } catch (InvalidProtocolBufferException e) {
        return null;
      }
      ByteString presignature = order.getPresignatureId();
      Optional<Protocol> protocol =
          Protocol.of(
              intent.scheme(), presignature.isEmpty() ? Operation.SIGN : Operation.SIGN_PRESIGNED);
      if (!presignable
          || protocol.isEmpty()
          || !(presignature.isEmpty() || presignature.size() == Sessions.PRESIGNATURE_ID_BYTES)
          || order.getCoordinatorNonce().size() != Sessions.NONCE_BYTES
          || !couldSign(order.getSigningSetList(), party)) {
        return null;
      }
      Order expected =
          Order.newBuilder()
              .setCoordinatorNonce(order.getCoordinatorNonce())
              .setProtocol(protocol.get().id())
              .setKey(intent.key())
              .setEpoch(keyPublic.getEpoch())
              .setThreshold(signingKey.threshold())
              .addAllSigningSet(order.getSigningSetList())
              .setDeadline(order.getDeadline())
              .setPresignatureId(presignature)
              .build();
      if (!expected.equals(order)) {
        return null;
      }
      Order whole = order.toBuilder().setSignedIntent(intent.envelope()).build();
      return new Unsettled(whole, whole.toByteString(), party);
    }

    /** Whether a signing set is one of this key, in order, and has that party. */
    private boolean couldSign(List<Integer> signingSet, int party) {
      Set<Integer> holders =
          signingKey.parties().stream().map(KeyRecord.Holder::partyId).collect(Collectors.toSet());
      return signingSet.size() >= signingKey.threshold()
          && signingSet.contains(party)
          && holders.containsAll(signingSet)
          && signingSet.equals(signingSet.stream().distinct().sorted().toList());
    }

    /**
     * Gives the order of an earlier session again: whoever has given its part in it sends it once
     * more, and whoever has not says so for ever, which lets the others take part in another one.
     * True if the request has ended.
     */
    private boolean tryAgain(SecureChannel channel, Unsettled unsettled)
        throws InterruptedException {
      int witness = unsettled.claimant();
      Order order = unsettled.order();
      SessionPlan.Work.Sign work =
          sign(order.getPresignatureId().isEmpty() ? null : order.getPresignatureId());
      List<Member> parties =
          order.getSigningSetList().stream()
              .flatMap(party -> channel.roster().byPartyId(party).stream())
              .toList();
      if (order.getEpoch() != keyPublic.getEpoch()
          || parties.size() != order.getSigningSetCount()) {
        if (witness != 0) {
          failed(witness);
        }
        return false;
      }
      Session session;
      SessionOutcome outcome;
      try (SessionTurns.Turn turn = awaitTurn(parties)) {
        if (turn == null) {
          this.unsettled = unsettled;
          return false;
        }
        session =
            sessions.again(
                channel, plan(work, parties, intent.notAfter()), work, unsettled.bytes());
        run.trying(session);
        outcome = session.await(timeout.min());
      }
      if (outcome instanceof SessionOutcome.Signed signed) {
        if (work.presignature() == null) {
          want(parties);
        }
        succeed(session, signed, work.presignature() != null);
        return true;
      }
      witnesses = Set.of();
      if (outcome instanceof SessionOutcome.Aborted aborted) {
        aborted(session, aborted, parties);
      } else if (outcome instanceof SessionOutcome.TimedOut timedOut) {
        timedOut.missing().forEach(this::failed);
        witnesses =
            parties.stream()
                .map(Member::partyId)
                .filter(party -> !timedOut.missing().contains(party))
                .collect(Collectors.toSet());
        // The order may be another's word, and then its deadline is no better.
        Instant latest = clock.instant().plus(timeout.next(attempt));
        long seconds = Math.clamp(order.getDeadline().getSeconds(), 0, latest.getEpochSecond());
        witnessesUntil =
            Instant.ofEpochSecond(seconds).plus(limits.clockSkew().multipliedBy(SETTLING_SKEWS));
      }
      if (witness != 0
          && !(witnesses.contains(witness) && clock.instant().isBefore(witnessesUntil))) {
        // It says that it has given its part, and has nothing to show for it.
        failed(witness);
      }
      run.troubled(Trouble.of(run.resource, session, outcome));
      return false;
    }

    /** Later signatures of these parties shall find presignatures. */
    private void want(List<Member> parties) {
      presignatures.want(
          combination(parties),
          Protocol.of(intent.scheme(), Operation.PRESIGN).orElseThrow().maxBatch());
    }

    private Combination combination(List<Member> parties) {
      return new Combination(
          intent.key(),
          keyPublic.getEpoch(),
          parties.stream().map(Member::partyId).toList(),
          subject.toSign().target());
    }

    private void aborted(Session session, SessionOutcome.Aborted aborted, List<Member> parties) {
      Set<Integer> blamed = new HashSet<>(aborted.culprits());
      if (aborted.exclude()) {
        for (int culprit : aborted.culprits()) {
          excluded.add(culprit);
          keys.exclude(intent.key(), culprit, aborted.cause().name(), session.id());
        }
      }
      blamed.addAll(aborted.suspects());
      blame(blamed, parties);
    }

    private void blame(Set<Integer> parties, List<Member> asked) {
      if (parties.isEmpty()) {
        asked.forEach(m -> failed(m.partyId()));
      } else {
        parties.forEach(this::failed);
      }
    }

    private void failed(int party) {
      failures.merge(party, 1, Integer::sum);
    }

    /**
     * What sessions take lately; but while another quorum is left, no more than half of the time
     * that the most patient caller has, so that there is a second chance inside it.
     */
    private Duration sessionTime(Instant now, List<Member> parties) {
      Duration time = timeout.next(attempt);
      long patience = run.patienceNanos();
      int left = signingKey.parties().size() - excluded.size() - refusals.size();
      if (patience > 0 && left > parties.size() && time.toNanos() > patience / 2) {
        time = Duration.ofNanos(Math.max(patience / 2, timeout.min().toNanos()));
      }
      Duration untilExpiry = Duration.between(now, intent.notAfter());
      return time.compareTo(untilExpiry) > 0 ? untilExpiry : time;
    }

    private Trouble lastTrouble() {
      Trouble last = run.trouble();
      return last != null ? last : Trouble.of(ErrorReason.INTENT_EXPIRED, run.resource);
    }

    /** Why fewer parties than needed are left. */
    private Trouble exhausted() {
      Map<Integer, String> names = new HashMap<>();
      signingKey.parties().forEach(h -> names.put(h.partyId(), h.name()));
      if (!refusals.isEmpty()) {
        RefusalReason reason = refusals.values().stream().sorted().findFirst().orElseThrow();
        return Trouble.parties(
            SessionFailures.reason(reason),
            run.resource,
            refusals.keySet().stream().map(names::get).toList(),
            0,
            reason.name());
      }
      return excluded.isEmpty()
          ? Trouble.parties(
              ErrorReason.PARTY_UNKNOWN, run.resource, names.values(), 0, "not_in_roster")
          : Trouble.parties(
              ErrorReason.PARTY_MISBEHAVED,
              run.resource,
              excluded.stream().map(names::get).filter(Objects::nonNull).toList(),
              0,
              "excluded");
    }

    private void succeed(Session session, SessionOutcome.Signed signed, boolean presigned)
        throws InterruptedException {
      SigningRecord stored =
          finish(
              record.signed(
                  new SigningRecord.Result(
                      signed.signature().bytes(),
                      signed.signature().recoveryId(),
                      subject.toSign().publicKey(),
                      presigned),
                  session.partyNames().stream()
                      .filter(name -> !session.names(signed.culprits()).contains(name))
                      .toList(),
                  tried,
                  clock.instant().truncatedTo(ChronoUnit.MICROS)));
      metrics.signingEnded(
          intent.scheme(),
          CoordinatorMetrics.OK,
          Duration.ofNanos(System.nanoTime() - run.startedNanos));
      runs.remove(key, run);
      run.finish(stored);
      changes.publish(stored);
      try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
        log.info("signed in session {} of this request", tried);
      }
    }

    private void fail(Trouble trouble) throws InterruptedException {
      end(key, run, record, trouble, tried);
    }
  }
}
