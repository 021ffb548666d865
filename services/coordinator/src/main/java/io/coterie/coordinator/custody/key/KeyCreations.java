package io.coterie.coordinator.custody.key;

import io.coterie.coordinator.custody.key.ShareSessions.End;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.RequestKind;
import io.coterie.coordinator.custody.request.Requests;
import io.coterie.coordinator.custody.request.Run;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.Key;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates keys, each by all of its parties together, and has them take keys over. One request id
 * gives one key.
 */
public final class KeyCreations implements Handover.Work {
  private static final Logger log = LoggerFactory.getLogger(KeyCreations.class);

  private final Requests<KeyRecord, VerifiedIntent.NewKey, KeyRecord> requests;
  private final KeyStore store;
  private final ShareSessions shares;
  private final CoordinatorMetrics metrics;

  /** The key creations of one coordinator; nothing is worked on yet. */
  public KeyCreations(KeyStore store, ShareSessions shares, Requests.Services services) {
    this.store = store;
    this.shares = shares;
    this.metrics = services.metrics();
    this.requests = new Requests<>(new Kind(), services, shares.maxRuns());
  }

  /**
   * Gets the key of an intent: the stored one, that of the work in progress, or a new one.
   *
   * @return ACTIVE or FAILED
   * @throws CustodyException if the request is refused, with nothing stored, or the caller's time
   *     is up; the work goes on then
   */
  public KeyRecord create(VerifiedIntent.NewKey intent, Caller caller) throws InterruptedException {
    return requests.await(intent, caller);
  }

  @Override
  public String metricLabel() {
    return CoordinatorMetrics.KEY_CREATION_WORK;
  }

  @Override
  public int takeOver(boolean own) {
    List<KeyRecord> taken = store.takeAll(own);
    if (!taken.isEmpty()) {
      log.info("this replica takes up {} key creations", taken.size());
    }
    taken.forEach(record -> requests.resume(record, true));
    return taken.size();
  }

  /** How many requests are being worked on. */
  public int running() {
    return requests.running();
  }

  private final class Kind implements RequestKind<KeyRecord, VerifiedIntent.NewKey, KeyRecord> {

    @Override
    public String name() {
      return "key creation";
    }

    @Override
    public String metricLabel() {
      return KeyCreations.this.metricLabel();
    }

    @Override
    public Class<VerifiedIntent.NewKey> intents() {
      return VerifiedIntent.NewKey.class;
    }

    @Override
    public KeyRecord prepare(VerifiedIntent.NewKey intent, Instant now) {
      Protocol protocol =
          Protocol.of(
                  intent.scheme(),
                  intent instanceof VerifiedIntent.KeyImport
                      ? Protocol.Operation.IMPORT
                      : Protocol.Operation.KEYGEN)
              .orElseThrow(
                  () -> Failure.of(ErrorReason.UNSUPPORTED_SCHEME, intent.key()).toException());
      if (intent.threshold() < protocol.leastThreshold()) {
        throw Failure.of(ErrorReason.THRESHOLD_INVALID, intent.key()).toException();
      }
      return KeyRecord.creating(
          RequestHeader.of(intent, now),
          intent.key(),
          intent.scheme(),
          intent.threshold(),
          shares.holders(intent.key(), intent.parties()));
    }

    @Override
    public Claim<KeyRecord> store(KeyRecord prepared) {
      requests.requirePlace(prepared);
      return switch (store.create(prepared)) {
        case KeyStore.Creation.Stored(KeyRecord record) -> new Claim<>(record, true);
        case KeyStore.Creation.Known(KeyRecord record) -> new Claim<>(record, false);
        case KeyStore.Creation.NameTaken _ ->
            throw Failure.of(ErrorReason.KEY_EXISTS, prepared.name()).toException();
      };
    }

    @Override
    public Optional<KeyRecord> find(String requester, String requestId) {
      return store.findRequest(requester, requestId);
    }

    @Override
    public Optional<KeyRecord> take(KeyRecord request) {
      return store.take(request.id());
    }

    @Override
    public boolean giveEnd(KeyRecord stored, Run<KeyRecord> run) {
      if (stored.state() == Key.State.CREATING) {
        return false;
      }
      run.finish(stored);
      return true;
    }

    @Override
    public boolean work(Run<KeyRecord> run, KeyRecord request, VerifiedIntent.NewKey intent)
        throws InterruptedException {
      ShareWork work =
          new ShareWork(
              change(intent, request),
              request.name(),
              intent.scheme(),
              intent.threshold(),
              request.parties(),
              intent.envelope(),
              intent.notAfter());
      switch (shares.make(work, of(request, work), run, request.sessions())) {
        case End.Lost _ -> {
          return false;
        }
        case End.Made made -> {
          end(
              run,
              request.active(MadeKey.created(made.completion()), made.sessions()),
              CoordinatorMetrics.OK);
          log.info("key {} is active", request.name());
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

    /** The work that an intent asks for; a restart of this replica has lost the shares of a key. */
    private ShareWork.Change change(VerifiedIntent.NewKey intent, KeyRecord request) {
      if (!(intent instanceof VerifiedIntent.KeyImport imported)) {
        return new ShareWork.NewKey();
      }
      if (imported.shares().isEmpty()) {
        return new ShareWork.Import(List.of());
      }
      return new ShareWork.Import(
          request.parties().stream()
              .map(
                  holder ->
                      PartyBytes.newBuilder()
                          .setParty(holder.partyId())
                          .setValue(
                              imported.shares().get(imported.parties().indexOf(holder.name())))
                          .build())
              .toList());
    }

    private ShareSessions.Request of(KeyRecord request, ShareWork work) {
      return new ShareSessions.Request() {
        @Override
        public boolean isMine() {
          return requests.isMine(request);
        }

        @Override
        public boolean onlyAsks() {
          return work.change() instanceof ShareWork.Import imported && imported.shares().isEmpty();
        }
      };
    }

    @Override
    public void refuse(Run<KeyRecord> run, KeyRecord request, Failure why)
        throws InterruptedException {
      fail(run, request, why, request.sessions());
    }

    private void fail(Run<KeyRecord> run, KeyRecord request, Failure why, int sessions)
        throws InterruptedException {
      end(run, request.failed(why.toStatus(), sessions), why.reason().name());
    }

    private void end(Run<KeyRecord> run, KeyRecord finished, String outcome)
        throws InterruptedException {
      requests.end(
          run,
          finished,
          () -> store.finish(finished.id(), finished.made(), finished.error(), finished.sessions()),
          () -> {
            metrics.keyCreationEnded(finished.scheme(), outcome);
            run.finish(finished);
          });
    }
  }
}
