package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.Pace;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.RequestKind;
import io.coterie.coordinator.custody.request.Requests;
import io.coterie.coordinator.custody.request.Run;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Signatures for requesters: one request id gives one signature, whatever is repeated or killed.
 * {@link SigningAttempts} makes them.
 */
public final class Signings implements Handover.Work {
  private static final Logger log = LoggerFactory.getLogger(Signings.class);

  /** How long a cancellation waits for the end of a request that is worked on. */
  private static final Duration AWAITED = Duration.ofSeconds(5);

  private final SigningWatchers watchers = new SigningWatchers();
  private final ToTakeUp toTakeUp = new ToTakeUp();
  private final Kind kind = new Kind();
  private final Requests<SigningRecord, VerifiedIntent.Signing, SigningRecord> requests;
  private final SigningStore store;
  private final SigningEnds ends;
  private final KeyDirectory keys;
  private final SigningAttempts.Services attempts;
  private final RunLimits limits;
  private final Executor threads;
  private final Stopping stopping;
  private final CoordinatorMetrics metrics;
  private final Clock clock;
  private final ReplicaTime time;

  /** The signings of one coordinator; nothing is worked on yet. */
  public Signings(
      SigningStore store,
      CancelQuestions questions,
      SigningAttempts.Services attempts,
      Requests.Services services) {
    this.store = store;
    this.ends = new SigningEnds(store, questions, attempts, services.clock());
    this.keys = attempts.keys();
    this.attempts = attempts;
    this.limits = attempts.limits();
    this.threads = services.threads();
    this.stopping = services.stopping();
    this.metrics = services.metrics();
    this.clock = services.clock();
    this.time = services.time();
    this.requests = new Requests<>(kind, services, limits.maxRuns());
  }

  /**
   * Gets the signature for an intent: the stored one, that of the work in progress, or a new one.
   * One that ended for want of approvals is worked on again if it comes with others.
   *
   * @param approvals of the intent, of 416 bytes each, none of them checked
   * @return SIGNED, NOT_SIGNED or UNKNOWN
   * @throws CustodyException if the request is refused, with nothing stored, or the caller's time
   *     is up; the work goes on then
   */
  public SigningRecord sign(
      VerifiedIntent.Signing intent, List<ByteString> approvals, Caller caller)
      throws InterruptedException {
    return requests.await(intent, prepared -> prepared.approved(approvals), caller);
  }

  /**
   * Asks the parties never to sign for a request, and finds out how it ended.
   *
   * @throws CustodyException if the request cannot be cancelled
   */
  public CancelledSigning cancel(VerifiedIntent.Cancellation intent, Caller caller)
      throws InterruptedException {
    long soon = time.nanos() + AWAITED.toNanos();
    CancelledSigning ended =
        ends.cancel(
            intent,
            caller,
            requests::recheck,
            pending ->
                requests.await(
                    pending,
                    new Caller(
                        soon - caller.deadlineNanos() < 0 ? soon : caller.deadlineNanos(),
                        caller.trace())));
    if (ended.record() != null && ended.record().state() != Signing.State.PENDING) {
      watchers.publish(ended.record());
    }
    return ended;
  }

  /** The signing of that id. */
  public Optional<SigningRecord> find(UUID id) {
    return store.find(id);
  }

  /**
   * Signings of a key, the newest first, without the intents that asked for them.
   *
   * @param requesters whose signings; null: those of all
   * @param after where the page before ended; null: from the newest
   */
  public List<SigningRecord> list(
      String key, @Nullable Set<String> requesters, SigningStore.@Nullable Place after, int limit) {
    return store.list(key, requesters, after, limit);
  }

  /**
   * Tells {@code watcher} about every change of the signing from now on.
   *
   * @return ends the watching
   */
  public Runnable watch(UUID id, SigningWatcher watcher) {
    return watchers.watch(id, watcher);
  }

  /** Looks for the end of a signing that is not worked on here, for as long as it is watched. */
  public void follow(SigningRecord record) {
    if (record.state() == Signing.State.PENDING) {
      requests.resume(record, false);
    }
  }

  @Override
  public String metricLabel() {
    return CoordinatorMetrics.SIGNING_WORK;
  }

  @Override
  public int takeOver(boolean own) {
    List<UUID> taken = store.takeAll(own);
    if (!taken.isEmpty()) {
      log.info("this replica takes up {} pending signings", taken.size());
      if (toTakeUp.add(taken)) {
        threads.execute(this::takeUp);
      }
    }
    return taken.size();
  }

  /** One after the other: a signing that waits here takes no memory but its id. */
  private void takeUp() {
    UUID id = null;
    try {
      Pace answers = new Pace(stopping, time);
      for (id = toTakeUp.next(); id != null && !stopping.hasBegun(); id = toTakeUp.next()) {
        Pace pace = Pace.ofLooks(stopping, time);
        while (requests.running() >= limits.maxRuns() / 2 && !stopping.hasBegun()) {
          pace.pause();
        }
        if (takeUp(id)) {
          answers = new Pace(stopping, time);
        } else {
          toTakeUp.putBack(id);
          answers.pause();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      if (id != null) {
        toTakeUp.stopped();
      }
    }
  }

  /** False if the database did not answer. The others are taken up all the same. */
  private boolean takeUp(UUID id) {
    try {
      store.take(id).ifPresent(request -> requests.resume(request, true));
    } catch (StoreUnavailableException e) {
      log.warn("cannot see whose work signing {} is: {}", id, e.getMessage());
      return false;
    } catch (RuntimeException e) {
      log.error("signing {} cannot be taken up", id, e);
    }
    return true;
  }

  /** Signings that wait to be taken up, by one thread. Thread-safe. */
  private static final class ToTakeUp {
    private final LinkedHashSet<UUID> ids = new LinkedHashSet<>();
    private boolean begun;

    /** Adds signings; true if a thread is to begin with them. */
    synchronized boolean add(List<UUID> more) {
      ids.addAll(more);
      boolean begins = !begun;
      begun = true;
      return begins;
    }

    /** The database did not answer about one: its turn is after all others. */
    synchronized void putBack(UUID id) {
      ids.add(id);
    }

    /** The thread ends before there is none. */
    synchronized void stopped() {
      begun = false;
    }

    /** The next one; null if there is none, and the thread ends. */
    synchronized @Nullable UUID next() {
      if (ids.isEmpty()) {
        begun = false;
        return null;
      }
      return ids.removeFirst();
    }
  }

  /** How many requests are being worked on. */
  public int running() {
    return requests.running();
  }

  /** How many requests of that requester are being worked on. */
  public int running(String requester) {
    return requests.running(requester);
  }

  /** How many requests wait until a session may begin. */
  public int waiting() {
    return attempts.turns().waiting();
  }

  /** How many requests of that requester wait until a session may begin. */
  public int waiting(String requester) {
    return attempts.turns().waiting(requester);
  }

  /**
   * Whether each of these parties could make presignatures now.
   *
   * @param soonUsed whether signings wait for these: then it is enough that the parties keep up
   */
  public boolean hasRoom(List<Integer> parties, boolean soonUsed) {
    return attempts.turns().hasRoom(parties) || soonUsed && attempts.turns().keepUp(parties);
  }

  /** How many signing sessions may run at once now with the slowest party. */
  public int atOnce() {
    return attempts.turns().limit();
  }

  /** Tells all watchers to watch at another replica. */
  public void endWatching() {
    watchers.stop();
  }

  private final class Kind
      implements RequestKind<SigningRecord, VerifiedIntent.Signing, SigningRecord> {

    @Override
    public String name() {
      return "signing";
    }

    @Override
    public String metricLabel() {
      return Signings.this.metricLabel();
    }

    @Override
    public Class<VerifiedIntent.Signing> intents() {
      return VerifiedIntent.Signing.class;
    }

    @Override
    public String resource(VerifiedIntent.Signing intent) {
      return SigningRecord.name(
          intent.key(), SigningRecord.idOf(intent.requester(), intent.requestId()));
    }

    @Override
    public SigningRecord prepare(VerifiedIntent.Signing intent, Instant now) {
      SigningSubject subject = SigningSubject.of(intent, List.of(), requireUsable(intent));
      return SigningRecord.pending(
          RequestHeader.of(intent, now),
          intent.key(),
          intent.scheme(),
          subject.digest(),
          subject.decoded());
    }

    private KeyRecord requireUsable(VerifiedIntent.Signing intent) {
      KeyRecord key =
          keys.find(intent.key(), intent.reshareEpoch())
              .orElseThrow(() -> Failure.of(ErrorReason.KEY_NOT_FOUND, intent.key()).toException());
      if (key.state() != Key.State.ACTIVE) {
        throw Failure.of(ErrorReason.KEY_NOT_ACTIVE, intent.key()).toException();
      }
      if (key.scheme() != intent.scheme()) {
        throw Failure.of(ErrorReason.UNSUPPORTED_SCHEME, intent.key()).toException();
      }
      key.requireFingerprint(intent.keyFingerprint());
      key.requireReshareEpoch(intent.reshareEpoch());
      return key;
    }

    @Override
    public Claim<SigningRecord> store(SigningRecord prepared) {
      // Here and not earlier: the refusal of a signing costs no look at the store.
      requests.requirePlace(prepared);
      SigningRecord known = store.claimOnce(prepared).orElse(null);
      if (known == null) {
        return new Claim<>(prepared, true);
      }
      Optional<SigningRecord> again =
          lacked(known, prepared) ? store.reopen(known, prepared.approvals()) : Optional.empty();
      return new Claim<>(again.orElse(known), again.isPresent());
    }

    /**
     * Whether it ended for want of approvals, and comes with others. They can be right now; and if
     * the first ones were, at a party that says so by mistake, its binding keeps the request to one
     * signature.
     */
    private boolean lacked(SigningRecord known, SigningRecord prepared) {
      Status error = known.error();
      return error != null
          && StatusErrors.reason(error).equals(Optional.of(ErrorReason.APPROVALS_MISSING))
          && known.intentDigest().equals(prepared.intentDigest())
          && !known.approvals().equals(prepared.approvals());
    }

    @Override
    public Optional<SigningRecord> find(String requester, String requestId) {
      return store.find(SigningRecord.idOf(requester, requestId));
    }

    @Override
    public Optional<SigningRecord> take(SigningRecord request) {
      return store.take(request.id());
    }

    @Override
    public boolean giveEnd(SigningRecord stored, Run<SigningRecord> run) {
      if (stored.state() == Signing.State.PENDING) {
        return false;
      }
      run.finish(stored);
      watchers.publish(stored);
      return true;
    }

    @Override
    public boolean isWatched(SigningRecord request) {
      return watchers.isWatched(request.id());
    }

    @Override
    public boolean work(
        Run<SigningRecord> run, SigningRecord request, VerifiedIntent.Signing intent)
        throws InterruptedException {
      KeyRecord key;
      SigningSubject subject;
      try {
        key = requireUsable(intent);
        subject = SigningSubject.of(intent, request.approvals(), key);
      } catch (CustodyException e) {
        refuse(run, request, Failure.of(e));
        return true;
      }
      return new SigningAttempts(attempts, new Progress(run, request), run, intent, key, subject)
          .run();
    }

    @Override
    public void refuse(Run<SigningRecord> run, SigningRecord request, Failure why)
        throws InterruptedException {
      new Progress(run, request).fail(why, request.sessions());
    }
  }

  /** Stores and publishes the end of one request. */
  private final class Progress implements SigningAttempts.Request {
    private final Run<SigningRecord> run;
    private final SigningRecord record;

    Progress(Run<SigningRecord> run, SigningRecord record) {
      this.run = run;
      this.record = record;
    }

    @Override
    public int sessions() {
      return record.sessions();
    }

    @Override
    public boolean isMine() {
      return requests.isMine(record);
    }

    @Override
    public void persistently(Runnable access) throws InterruptedException {
      boolean _ =
          requests.persistently(
              () -> {
                access.run();
                return true;
              });
    }

    @Override
    public void trying(int session) {
      watchers.publish(record.trying(session));
    }

    @Override
    public void succeed(SigningRecord.Result result, List<String> contributors, int sessions)
        throws InterruptedException {
      end(record.signed(result, contributors, sessions, now()), CoordinatorMetrics.OK);
    }

    @Override
    public void fail(Failure why, int sessions) throws InterruptedException {
      end(record.unknown(why.toStatus(), sessions, now()), why.reason().name());
    }

    /** A valid signature is an end that another replica did not know of. */
    private boolean isShown(SigningRecord finished) {
      if (finished.state() != Signing.State.SIGNED) {
        return false;
      }
      Optional<Signing.State> stored = store.find(finished.id()).map(SigningRecord::state);
      if (stored.equals(Optional.of(Signing.State.NOT_SIGNED))) {
        log.error(
            "{} is signed, although its parties gave receipts that it never is", record.name());
      } else if (!stored.equals(Optional.of(Signing.State.UNKNOWN))) {
        return false;
      }
      return store.settle(finished).filter(finished::equals).isPresent();
    }

    private Instant now() {
      return clock.instant().truncatedTo(ChronoUnit.MICROS);
    }

    private void end(SigningRecord finished, String outcome) throws InterruptedException {
      requests.end(
          run,
          finished,
          () -> store.finish(finished).equals(finished) || isShown(finished),
          () -> {
            metrics.signingEnded(
                finished.scheme(), outcome, Duration.ofNanos(time.nanos() - run.startedNanos));
            run.finish(finished);
            watchers.publish(finished);
          });
    }
  }
}
