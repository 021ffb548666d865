package io.coterie.coordinator.custody.key;

import io.coterie.coordinator.custody.key.ShareSessions.End;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.RequestKind;
import io.coterie.coordinator.custody.request.Requests;
import io.coterie.coordinator.custody.request.Run;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Renews keys: gives a key new shares and its next epoch, for the same parties (refresh), or for
 * others or with another threshold (reshare). One request id gives one epoch.
 *
 * <p>The parties switch once each of them knows that all have stored their new share. That may be
 * before this coordinator knows it, or while it is not running. So a renewal fails only after a
 * party has shown that it holds no share of it; and when parties turn out to be at another epoch,
 * the coordinator asks them about the renewals that it had called failed.
 */
public final class KeyRenewals implements Handover.Work {
  private static final Logger log = LoggerFactory.getLogger(KeyRenewals.class);

  /**
   * One may have begun before, and one comes before the database has done what it did not answer.
   */
  private static final int OWN_LOOKS = 3;

  /** In how many answered looks this replica's renewals are taken up too: one may be reopened. */
  private final AtomicInteger ownLooks = new AtomicInteger();

  private final Kind kind = new Kind();
  private final Requests<Renewal, VerifiedIntent.NextEpoch, KeyRecord> requests;
  private final RenewalStore store;
  private final KeyDirectory keys;
  private final ShareSessions shares;
  private final CoordinatorMetrics metrics;
  private final Stopping stopping;

  /** The renewals of one coordinator; nothing is worked on yet. */
  public KeyRenewals(
      RenewalStore store, KeyDirectory keys, ShareSessions shares, Requests.Services services) {
    this.store = store;
    this.keys = keys;
    this.shares = shares;
    this.metrics = services.metrics();
    this.stopping = services.stopping();
    this.requests = new Requests<>(kind, services, shares.maxRuns());
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
    return requests.await(intent, caller);
  }

  /**
   * Ends a renewal that runs, unless its parties use the new shares already. It ends when a party
   * has shown that it holds no share of it, so it needs one that answers, if any was asked.
   *
   * @param mayCancel throws if the caller may not do this for that requester
   * @return the key as it is
   * @throws CustodyException if there is no such renewal, it has ended, or the caller's time is up:
   *     the renewal still ends then
   */
  public KeyRecord cancel(String key, String requestId, Consumer<String> mayCancel, Caller caller)
      throws InterruptedException {
    Renewal renewal = isUuid(requestId) ? store.findOfKey(key, requestId).orElse(null) : null;
    if (renewal == null) {
      throw Failure.of(ErrorReason.OPERATION_NOT_RUNNING, key).toException();
    }
    mayCancel.accept(renewal.requester());
    if (!store.cancel(renewal.id())) {
      return keyAfterCancelled(store.findOfKey(key, requestId).orElse(renewal));
    }
    log.info("a client cancelled the {} of key {}", label(renewal), key);
    requests.cancel(renewal);
    CustodyException whyNotEnded;
    try {
      requests.await(renewal, caller);
      whyNotEnded = Failure.of(ErrorReason.DEADLINE_TOO_SHORT, key).toException();
    } catch (CustodyException e) {
      whyNotEnded = e;
    }
    Renewal end = store.findOfKey(key, requestId).orElse(renewal);
    if (end.state() == Renewal.State.RUNNING) {
      // The caller's time is up.
      throw whyNotEnded;
    }
    return keyAfterCancelled(end);
  }

  /** The answer to a client that cancelled a renewal which has ended. */
  private KeyRecord keyAfterCancelled(Renewal ended) {
    if (ended.state() == Renewal.State.DONE) {
      throw Failure.of(ErrorReason.OPERATION_DECIDED, ended.key()).toException();
    }
    if (!ended.cancelled()) {
      throw Failure.of(ErrorReason.OPERATION_NOT_RUNNING, ended.key()).toException();
    }
    return current(ended.key());
  }

  private static boolean isUuid(String text) {
    try {
      return UUID.fromString(text).toString().equals(text);
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * Reads a key again, because a party says that its shares are of another epoch than that one. If
   * the store has that epoch, a renewal may have succeeded that failed here: the parties are asked
   * about it.
   */
  public KeyRecord learn(String key, int epoch) {
    keys.renewed(key);
    KeyRecord stored = current(key);
    if (stored.epoch() == epoch && !stopping.hasBegun()) {
      reopen(key, epoch)
          .ifPresent(
              renewal -> {
                log.warn("key {} may have the next epoch at its parties: asking them", key);
                boolean _ = requests.resume(renewal, true);
              });
    }
    return stored;
  }

  private Optional<Renewal> reopen(String key, int epoch) {
    try {
      return store.reopen(key, epoch);
    } catch (StoreUnavailableException e) {
      // It may run all the same, as this replica's work, and it is not known which one.
      ownLooks.set(OWN_LOOKS);
      throw e;
    }
  }

  private KeyRecord current(String key) {
    return keys.read(key)
        .orElseThrow(() -> new IllegalStateException("the key of a renewal is not stored"));
  }

  @Override
  public String metricLabel() {
    return CoordinatorMetrics.KEY_RENEWAL_WORK;
  }

  @Override
  public int takeOver(boolean own) {
    boolean reopened = ownLooks.get() > 0;
    List<Renewal> taken = store.takeAll(own || reopened);
    ownLooks.updateAndGet(left -> Math.max(0, left - 1));
    for (Renewal renewal : taken) {
      if (requests.resume(renewal, true)) {
        log.info("this replica takes up the {} of key {}", label(renewal), renewal.key());
      }
    }
    // Those that it had are not counted as taken over.
    return reopened ? 0 : taken.size();
  }

  @Override
  public void heedCancellations() {
    store.cancelled().forEach(requests::cancel);
  }

  /** How many requests are being worked on. */
  public int running() {
    return requests.running();
  }

  private static Operation operation(VerifiedIntent.NextEpoch intent) {
    return switch (intent) {
      case VerifiedIntent.KeyRefresh _ -> Operation.REFRESH;
      case VerifiedIntent.KeyReshare _ -> Operation.RESHARE;
    };
  }

  /** As in metrics and logs: "refresh" or "reshare". */
  private static String label(Renewal renewal) {
    return operation(renewal).name().toLowerCase(Locale.ROOT);
  }

  /** The operation that a stored intent asks for; it was verified before it was stored. */
  static Operation operation(Renewal renewal) {
    return switch (renewal.intent().getPayloadType()) {
      case VerifiedIntent.KeyRefresh.PAYLOAD_TYPE -> Operation.REFRESH;
      case VerifiedIntent.KeyReshare.PAYLOAD_TYPE -> Operation.RESHARE;
      default -> throw new IllegalStateException("the stored intent asks for no renewal");
    };
  }

  private final class Kind implements RequestKind<Renewal, VerifiedIntent.NextEpoch, KeyRecord> {

    @Override
    public String name() {
      return "renewal";
    }

    @Override
    public String metricLabel() {
      return KeyRenewals.this.metricLabel();
    }

    @Override
    public Class<VerifiedIntent.NextEpoch> intents() {
      return VerifiedIntent.NextEpoch.class;
    }

    @Override
    public Renewal prepare(VerifiedIntent.NextEpoch intent, Instant now) {
      KeyRecord key = requireRenewable(intent);
      return Renewal.running(
          RequestHeader.of(intent, now),
          intent.key(),
          intent.epoch(),
          intent instanceof VerifiedIntent.KeyReshare reshare
              ? reshare.threshold()
              : key.threshold(),
          intent instanceof VerifiedIntent.KeyReshare reshare
              ? shares.holders(reshare.key(), reshare.parties())
              : key.parties());
    }

    private KeyRecord requireRenewable(VerifiedIntent.NextEpoch intent) {
      KeyRecord key =
          keys.read(intent.key())
              .orElseThrow(() -> Failure.of(ErrorReason.KEY_NOT_FOUND, intent.key()).toException());
      if (key.state() != Key.State.ACTIVE) {
        throw Failure.of(ErrorReason.KEY_NOT_ACTIVE, intent.key()).toException();
      }
      Optional<Protocol> protocol = Protocol.of(key.scheme(), operation(intent));
      if (key.scheme() != intent.scheme() || protocol.isEmpty()) {
        throw Failure.of(ErrorReason.UNSUPPORTED_SCHEME, intent.key()).toException();
      }
      if (intent instanceof VerifiedIntent.KeyRefresh refresh) {
        key.requireFingerprint(refresh.keyFingerprint());
      }
      KeyPublic current = Objects.requireNonNull(key.keyPublic());
      int threshold =
          switch (intent) {
            case VerifiedIntent.KeyRefresh _ -> current.getThreshold();
            case VerifiedIntent.KeyReshare reshare -> reshare.threshold();
          };
      // With a threshold of 1, each share is the key itself, and no other share can replace it.
      if (threshold < 2) {
        throw Failure.of(ErrorReason.THRESHOLD_INVALID, intent.key()).toException();
      }
      if (intent instanceof VerifiedIntent.KeyReshare reshare
          && !reshare.publicKey().equals(current.getPublicKey())) {
        throw new IntentException(IntentProblem.PUBLIC_KEY_OTHER).toCustodyException();
      }
      return key;
    }

    @Override
    public Claim<Renewal> store(Renewal prepared) {
      requests.requirePlace(prepared);
      return switch (store.start(prepared)) {
        case RenewalStore.Start.Stored(Renewal record) -> new Claim<>(record, true);
        case RenewalStore.Start.Known(Renewal record) -> new Claim<>(record, false);
        case RenewalStore.Start.Refused _ ->
            throw Failure.of(
                    store.isRunning(prepared.key())
                        ? ErrorReason.REFRESH_RUNNING
                        : ErrorReason.EPOCH_MISMATCH,
                    prepared.key())
                .toException();
      };
    }

    @Override
    public Optional<Renewal> find(String requester, String requestId) {
      return store.findRequest(requester, requestId);
    }

    @Override
    public Optional<Renewal> take(Renewal request) {
      return store.take(request.id());
    }

    @Override
    public boolean giveEnd(Renewal stored, Run<KeyRecord> run) {
      switch (stored.state()) {
        case DONE -> run.finish(current(stored.key()));
        case FAILED -> run.fail(Failure.of(Objects.requireNonNull(stored.error())).toException());
        case RUNNING -> {
          return false;
        }
      }
      return true;
    }

    @Override
    public boolean work(Run<KeyRecord> run, Renewal request, VerifiedIntent.NextEpoch intent)
        throws InterruptedException {
      if (request.cancelled()) {
        requests.cancel(request);
      }
      KeyRecord key = current(request.key());
      if (key.epoch() != request.fromEpoch()) {
        // Another replica ended it, or nobody can: the key has a later epoch.
        fail(run, request, Failure.of(ErrorReason.EPOCH_MISMATCH, key.name()), request.sessions());
        return true;
      }
      MadeKey present = Objects.requireNonNull(key.made());
      KeyPublic from = present.keyPublic();
      ShareWork work =
          new ShareWork(
              switch (operation(intent)) {
                case RESHARE -> new ShareWork.Reshare(from, key.parties());
                default -> new ShareWork.Refresh(from);
              },
              key.name(),
              key.scheme(),
              request.threshold(),
              request.parties(),
              intent.envelope(),
              intent.notAfter());
      switch (shares.make(work, new Asked(request), run, request.sessions())) {
        case End.Lost _ -> {
          return false;
        }
        case End.Made made -> {
          MadeKey renewed = present.renewed(made.completion());
          boolean switched =
              requests.persistently(
                  () -> store.switchEpoch(request.id(), renewed, made.sessions()));
          keys.renewed(request.key());
          if (switched) {
            metrics.keyRenewalEnded(key.scheme(), label(request), CoordinatorMetrics.OK);
            log.info("key {} has epoch {}", request.key(), renewed.keyPublic().getEpoch());
            run.finish(requests.persistently(() -> current(request.key())));
          } else {
            Failure past = Failure.of(ErrorReason.EPOCH_MISMATCH, key.name());
            fail(run, request, past, made.sessions());
          }
        }
        case End.Failed failed -> {
          if (!requests.isMine(request)) {
            return false;
          }
          fail(run, request, failed.failure(), failed.sessions());
        }
        case End.Stopped _ -> run.drain();
      }
      return true;
    }

    @Override
    public void refuse(Run<KeyRecord> run, Renewal request, Failure why)
        throws InterruptedException {
      fail(run, request, why, request.sessions());
    }

    /** Ends it so, or as another replica has ended it: callers everywhere learn the same end. */
    private void fail(Run<KeyRecord> run, Renewal request, Failure why, int sessions)
        throws InterruptedException {
      KeyRecord key = requests.persistently(() -> current(request.key()));
      requests.end(
          run,
          request,
          () -> store.fail(request.id(), why.toStatus(), sessions),
          () -> {
            metrics.keyRenewalEnded(key.scheme(), label(request), why.reason().name());
            run.fail(why.toException());
          });
    }
  }

  /** A renewal as its sessions see it. */
  private final class Asked implements ShareSessions.Request {
    private final Renewal renewal;

    Asked(Renewal renewal) {
      this.renewal = renewal;
    }

    @Override
    public void ordering() {
      store.ordering(renewal.id());
    }

    @Override
    public boolean isMine() {
      return requests.isMine(renewal);
    }

    @Override
    public boolean onlyAsks() {
      return renewal.reopened();
    }
  }
}
