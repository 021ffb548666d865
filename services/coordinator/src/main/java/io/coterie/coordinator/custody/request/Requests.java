package io.coterie.coordinator.custody.request;

import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.limit.FairPlaces;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.platform.telemetry.TraceContext;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The life cycle of all requests of one kind in this replica: one request id has one result,
 * whatever is repeated or killed.
 *
 * <p>A request is stored, becomes the work of one replica, is worked on by one thread there, and
 * ends once. All callers with the same request wait for that end. If another replica works on it,
 * this one looks at the store from time to time, and takes the work over when the other is gone.
 * Thread-safe.
 *
 * @param <Q> the request as it is stored
 * @param <V> the verified intent of a request
 * @param <R> the result that callers wait for
 */
public final class Requests<Q extends StoredRequest, V extends VerifiedIntent, R> {
  private static final Logger log = LoggerFactory.getLogger(Requests.class);

  /**
   * The services that every kind of request needs.
   *
   * @param threads starts a thread for each request; they wait most of the time
   */
  public record Services(
      IntentCheck intents,
      Executor threads,
      Stopping stopping,
      CoordinatorMetrics metrics,
      Clock clock,
      ReplicaTime time,
      SecureRandom random) {}

  /** Whose work a request is when its run begins. */
  private enum Turn {
    /** This replica has just stored it. */
    NEW,
    /** This replica's, as far as was known before the run: it is asked again. */
    OWN,
    /** Perhaps another replica's. */
    ANY
  }

  private final ConcurrentHashMap<Run.Key, Run<R>> runs = new ConcurrentHashMap<>();

  private final LeftAlone left;
  private final FairPlaces places;
  private final RequestKind<Q, V, R> kind;
  private final Services services;
  private final Stopping stopping;

  /**
   * The requests of one kind; nothing is worked on yet.
   *
   * @param most requests being worked on at once; more are refused by {@link #requirePlace}
   */
  public Requests(RequestKind<Q, V, R> kind, Services services, int most) {
    this.kind = kind;
    this.places = new FairPlaces(most);
    this.services = services;
    this.stopping = services.stopping();
    this.left = new LeftAlone(most, services.threads(), stopping, services.time(), this::look);
  }

  /**
   * Gets the result for an intent: the stored one, that of the work in progress, or a new one.
   *
   * @throws CustodyException if the request is refused, with nothing stored, or has failed; or if
   *     the caller's time is up: the work goes on then
   */
  public R await(V intent, Caller caller) throws InterruptedException {
    return await(intent, prepared -> prepared, caller);
  }

  /**
   * The same, with something that came beside the intent.
   *
   * @param with adds it to the request before that is stored
   */
  public R await(V intent, UnaryOperator<Q> with, Caller caller) throws InterruptedException {
    Run.Key key = Run.Key.of(intent);
    return joinOrStart(
        key,
        kind.resource(intent),
        caller,
        fresh -> {
          takePlace(key, fresh);
          RequestKind.Claim<Q> claim = claim(intent, with);
          if (kind.giveEnd(claim.request(), fresh)) {
            return false;
          }
          begin(fresh, claim.request(), () -> intent, claim.isNew() ? Turn.NEW : Turn.ANY);
          return true;
        });
  }

  /**
   * Waits for the result of a request that is stored, whichever replica works on it.
   *
   * @throws CustodyException as {@link #await(VerifiedIntent, Caller)}
   */
  public R await(Q request, Caller caller) throws InterruptedException {
    return joinOrStart(
        Run.Key.of(request),
        request.resource(),
        caller,
        fresh -> {
          if (kind.find(request.requester(), request.requestId()).isEmpty()) {
            // A crash of the database has lost it; only a call with its intent stores it again, as
            // one does that has joined meanwhile.
            boolean _ = fresh.abandon();
            throw Failure.of(ErrorReason.END_UNKNOWN, request.resource()).toException();
          }
          begin(fresh, request, () -> recheck(request), Turn.ANY);
          return true;
        });
  }

  /**
   * Waits for the result of the work in progress if there is some, else of what {@code start} does.
   *
   * @param start finishes the new run at once, or begins work that will, and says whether work goes
   *     on
   */
  private R joinOrStart(Run.Key key, String resource, Caller caller, Predicate<Run<R>> start)
      throws InterruptedException {
    while (true) {
      Run<R> fresh = run(key, resource, caller);
      Run<R> run = runs.putIfAbsent(key, fresh);
      if (run != null) {
        run.join(caller);
      } else {
        run = fresh;
        boolean goesOn = false;
        try {
          goesOn = start.test(fresh);
        } catch (RuntimeException e) {
          fresh.fail(e);
          throw e;
        } finally {
          if (!goesOn) {
            remove(key, fresh);
          }
        }
      }
      Optional<R> result = run.await(caller);
      if (result.isPresent()) {
        return result.get();
      }
      // The run was abandoned at the moment in which this caller came.
    }
  }

  private Run<R> run(Run.Key key, String resource, Caller caller) {
    return new Run<>(resource, caller, services.time(), ended -> remove(key, ended));
  }

  private void remove(Run.Key key, Run<R> run) {
    runs.remove(key, run);
    givePlaceBack(key, run);
  }

  private void takePlace(Run.Key key, Run<R> run) {
    if (run.placed.compareAndSet(false, true)) {
      places.add(key.requester());
    }
  }

  private void givePlaceBack(Run.Key key, Run<R> run) {
    if (run.placed.compareAndSet(true, false)) {
      places.giveBack(key.requester());
    }
  }

  /**
   * Refuses a new request if too many are being worked on, or too many of its requester. Called by
   * {@link RequestKind#store}: the run of the request has its place by then.
   *
   * @throws CustodyException OVERLOADED or REQUESTER_OVERLOADED
   */
  public void requirePlace(Q prepared) {
    if (!places.isEnough() || !left.isEnough()) {
      throw refused(prepared, ErrorReason.OVERLOADED);
    }
    if (!places.isWithin(prepared.requester()) || !left.isWithin(prepared.requester())) {
      throw refused(prepared, ErrorReason.REQUESTER_OVERLOADED);
    }
  }

  private CustodyException refused(Q prepared, ErrorReason reason) {
    services.metrics().refused(prepared.requester(), reason);
    return Failure.of(reason, prepared.resource()).toException();
  }

  /** Stores the request, or finds it stored. */
  private RequestKind.Claim<Q> claim(V intent, UnaryOperator<Q> with) {
    Q prepared;
    try {
      Instant now = services.clock().instant().truncatedTo(ChronoUnit.MICROS);
      requireNotExpired(intent, now);
      if (stopping.hasBegun()) {
        throw Failure.of(ErrorReason.DRAINING, intent.key()).toException();
      }
      prepared = with.apply(kind.prepare(intent, now));
    } catch (CustodyException e) {
      // A stored request is answered, even if it would not be accepted any more.
      Q stored = kind.find(intent.requester(), intent.requestId()).orElseThrow(() -> e);
      return new RequestKind.Claim<>(requireSameIntent(intent, stored), false);
    }
    RequestKind.Claim<Q> claim;
    left.claiming(intent.requester());
    try {
      claim = kind.store(prepared);
    } catch (StoreUnavailableException e) {
      // It may be stored all the same, as this replica's work.
      left.add(Run.Key.of(intent));
      throw e;
    } finally {
      left.claimed(intent.requester());
    }
    requireSameIntent(intent, claim.request());
    return claim;
  }

  private static void requireNotExpired(VerifiedIntent intent, Instant now) {
    try {
      intent.requireNotExpired(now);
    } catch (IntentException e) {
      throw e.toCustodyException();
    }
  }

  private Q requireSameIntent(V intent, Q stored) {
    if (!stored.intentDigest().equals(intent.digest())) {
      throw reused(stored);
    }
    return stored;
  }

  private CustodyException reused(Q stored) {
    return new CustodyException(
        ErrorReason.REQUEST_ID_REUSED, Map.of(StatusErrors.RESOURCE, stored.resource()));
  }

  /** A crash of the database can lose a request, and then another intent can take its id. */
  private boolean isSame(Q request, Q stored) {
    return stored.intentDigest().equals(request.intentDigest());
  }

  /** Gives a run the end of its request, or the refusal if another intent has its id. */
  private boolean giveEnd(Q request, Q stored, Run<R> run) {
    if (!isSame(request, stored)) {
      run.fail(reused(stored));
      return true;
    }
    return kind.giveEnd(stored, run);
  }

  /**
   * Begins the work on a stored request, unless it is in progress here or is not this replica's any
   * more.
   *
   * @param mine whether it is this replica's work; else only the waiting begins
   * @return false if it is in progress
   */
  public boolean resume(Q request, boolean mine) {
    Run.Key key = Run.Key.of(request);
    Caller nobody = new Caller(services.time().nanos(), TraceContext.create(services.random()));
    Run<R> run = run(key, request.resource(), nobody);
    if (runs.putIfAbsent(key, run) != null) {
      return false;
    }
    begin(run, request, () -> recheck(request), mine ? Turn.OWN : Turn.ANY);
    return true;
  }

  /** Goes on with a request that the database left alone, if it is this replica's. */
  private LeftAlone.Found look(Run.Key key) {
    try {
      Optional<Q> stored = kind.find(key.requester(), key.requestId());
      if (stored.isEmpty()) {
        return LeftAlone.Found.NOTHING_YET;
      }
      boolean othersWait = Run.Key.of(stored.get()).equals(key) && !resume(stored.get(), true);
      return othersWait ? LeftAlone.Found.NOTHING_YET : LeftAlone.Found.ALL;
    } catch (StoreUnavailableException e) {
      log.warn("cannot see whether a {} is stored: {}", kind.name(), e.getMessage());
      return LeftAlone.Found.NO_ANSWER;
    }
  }

  /** The intent of a stored request, checked again: the requester may have been removed since. */
  public V recheck(Q request) {
    VerifiedIntent intent = services.intents().check(request.intent());
    if (kind.intents().isInstance(intent)) {
      return kind.intents().cast(intent);
    }
    throw new IllegalStateException(
        "the stored intent of a " + kind.name() + " is of another kind");
  }

  private void begin(Run<R> run, Q request, Supplier<V> intent, Turn turn) {
    services
        .threads()
        .execute(
            () -> {
              try (LogScope scope = LogScope.open().trace(run.trace).request(request.requestId())) {
                workInTurn(run, request, intent, turn);
              } catch (StoreUnavailableException e) {
                log.warn("work on a {} stopped: {}", kind.name(), e.getMessage());
                run.fail(e);
                left.add(Run.Key.of(request));
              } catch (RuntimeException e) {
                log.error("work on a {} failed", kind.name(), e);
                run.fail(e);
              } catch (Error e) {
                // It would fail again at once: all that wait learn of it, and nobody takes it up.
                run.fail(new IllegalStateException("work on a " + kind.name() + " failed", e));
                throw e;
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                run.drain();
              } finally {
                if (run.abandon()) {
                  // The request may have become this replica's while the last caller left.
                  services.threads().execute(() -> takeUp(request));
                }
              }
            });
  }

  /** Works whenever the request is this replica's, and else waits. */
  private void workInTurn(Run<R> run, Q claimed, Supplier<V> intent, Turn first)
      throws InterruptedException {
    Q request = claimed;
    Turn turn = first;
    boolean working = turn == Turn.NEW;
    do {
      if (!working) {
        Run.Key key = Run.Key.of(request);
        givePlaceBack(key, run);
        Optional<Q> taken = awaitTurn(run, request, turn);
        if (taken.isEmpty()) {
          return;
        }
        request = taken.get();
        // Not for a run that has ended: nobody would give its place back.
        runs.computeIfPresent(
            key,
            (_, current) -> {
              if (current == run) {
                takePlace(key, run);
              }
              return current;
            });
      }
      working = workOrRefuse(run, request, intent);
      turn = Turn.ANY;
    } while (!working);
  }

  /** Works on a request; false if it has become another replica's work. */
  private boolean workOrRefuse(Run<R> run, Q request, Supplier<V> intent)
      throws InterruptedException {
    try {
      V verified;
      try {
        verified = intent.get();
      } catch (CustodyException e) {
        // The configuration changed since the request was stored: its requester is not known now.
        kind.refuse(run, request, Failure.of(e));
        return true;
      }
      return kind.work(run, request, verified);
    } catch (NotMineException e) {
      log.info("{}", e.getMessage());
      return false;
    }
  }

  /**
   * Waits until this replica is to work on the request, while another one does.
   *
   * @return the request as that replica left it; empty if it has ended, nobody waits any more, or
   *     this replica stops
   */
  private Optional<Q> awaitTurn(Run<R> run, Q request, Turn turn) throws InterruptedException {
    Pace pace = Pace.ofLooks(stopping, services.time());
    boolean takesOver = turn != Turn.OWN;
    while (!stopping.hasBegun()) {
      Optional<Q> taken = kind.take(request);
      if (taken.isPresent()) {
        if (takesOver) {
          services.metrics().takenOver(kind.metricLabel(), 1);
        }
        if (isSame(request, taken.get())) {
          return taken;
        }
        run.fail(reused(taken.get()));
        resume(taken.get(), true);
        return Optional.empty();
      }
      takesOver = true;
      Optional<Q> stored = kind.find(request.requester(), request.requestId());
      // If a crash of the database has lost the request, a caller who still waits stores it again.
      if (stored.isEmpty() || giveEnd(request, stored.get(), run)) {
        return Optional.empty();
      }
      if (run.patienceNanos() < 0 && !kind.isWatched(request)) {
        return Optional.empty();
      }
      pace.pause();
    }
    run.drain();
    return Optional.empty();
  }

  /** Begins the work on a request if it is this replica's, as soon as the database says so. */
  private void takeUp(Q request) {
    Pace pace = new Pace(stopping, services.time());
    try {
      while (!stopping.hasBegun()) {
        try {
          kind.take(request).ifPresent(taken -> resume(taken, true));
          return;
        } catch (StoreUnavailableException e) {
          log.warn("cannot see whose work a {} is: {}", kind.name(), e.getMessage());
        }
        pace.pause();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Whether a request is still this replica's work: its process may have been suspended for longer
   * than it knows. Asked before each further session.
   */
  public boolean isMine(Q request) {
    try {
      // If a crash of the database has lost the request, its end will be stored anew.
      return kind.take(request).isPresent()
          || kind.find(request.requester(), request.requestId()).isEmpty();
    } catch (StoreUnavailableException e) {
      log.warn("cannot see whose work a {} is: {}", kind.name(), e.getMessage());
      return true;
    }
  }

  /**
   * Stores or reads, however long the database takes to come back, the end of a request or what its
   * work goes on with: neither the end nor what the work has learned must be lost.
   *
   * @throws StoreUnavailableException if this replica stops first
   */
  public <T> T persistently(Supplier<T> access) throws InterruptedException {
    Pace pace = new Pace(stopping, services.time());
    while (true) {
      try {
        return access.get();
      } catch (StoreUnavailableException e) {
        if (stopping.hasBegun()) {
          throw e;
        }
        log.warn("a {} waits for the database: {}", kind.name(), e.getMessage());
        pace.pause();
      }
    }
  }

  /**
   * Ends a request as this replica would, or as another one has ended it: callers everywhere learn
   * the same end. If a crash of the database has lost the request, the run gets no end: callers who
   * still wait store it again.
   *
   * @param store stores this replica's end; false if the request had ended before, or is lost
   * @param ended gives the run this replica's end; not called if there was another one
   * @throws StoreUnavailableException as {@link #persistently}
   * @throws NotMineException if it has not ended, and another replica works on it
   */
  public void end(Run<R> run, Q request, Supplier<Boolean> store, Runnable ended)
      throws InterruptedException {
    if (persistently(store)) {
      ended.run();
      return;
    }
    Optional<Q> stored = persistently(() -> kind.find(request.requester(), request.requestId()));
    if (stored.isPresent() && !persistently(() -> giveEnd(request, stored.get(), run))) {
      throw new NotMineException("a " + kind.name() + " is ended by the replica that works on it");
    }
  }

  /** Tells the work in progress on a request, if there is some, that nobody wants its result. */
  public void cancel(Q request) {
    Run<R> run = runs.get(Run.Key.of(request));
    if (run != null && !run.isCancelled()) {
      run.cancel();
    }
  }

  /** How many requests are being worked on, or waited for. */
  public int running() {
    return runs.size();
  }

  /** How many requests of that requester are being worked on, or waited for. */
  public int running(String requester) {
    return places.of(requester);
  }
}
