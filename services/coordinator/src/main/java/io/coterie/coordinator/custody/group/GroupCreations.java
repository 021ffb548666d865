package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.group.GroupMaker.End;
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
import io.coterie.proto.custody.v1.Group;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Has groups made, each epoch by all of its parties together. One request id gives one epoch. */
public final class GroupCreations implements Handover.Work {
  private static final Logger log = LoggerFactory.getLogger(GroupCreations.class);

  private final Requests<GroupRecord, VerifiedIntent.GroupCreation, GroupRecord> requests;
  private final GroupStore store;
  private final GroupMaker maker;
  private final CoordinatorMetrics metrics;

  /** The groups of one coordinator; nothing is worked on yet. */
  public GroupCreations(GroupStore store, GroupMaker maker, Requests.Services services) {
    this.store = store;
    this.maker = maker;
    this.metrics = services.metrics();
    this.requests = new Requests<>(new Kind(), services, maker.maxRuns());
  }

  /**
   * Gets the group of an intent: the stored one, that of the work in progress, or a new one.
   *
   * @return ACTIVE or FAILED
   * @throws CustodyException if the request is refused, with nothing stored, or the caller's time
   *     is up; the work goes on then
   */
  public GroupRecord create(VerifiedIntent.GroupCreation intent, Caller caller)
      throws InterruptedException {
    return requests.await(intent, caller);
  }

  /** See {@link GroupStore}. */
  public GroupStore store() {
    return store;
  }

  @Override
  public String metricLabel() {
    return CoordinatorMetrics.GROUP_CREATION_WORK;
  }

  @Override
  public int takeOver(boolean own) {
    List<GroupRecord> taken = store.takeAll(own);
    if (!taken.isEmpty()) {
      log.info("this replica takes up {} groups", taken.size());
    }
    taken.forEach(record -> requests.resume(record, true));
    return taken.size();
  }

  /** How many requests are being worked on. */
  public int running() {
    return requests.running();
  }

  private final class Kind
      implements RequestKind<GroupRecord, VerifiedIntent.GroupCreation, GroupRecord> {

    @Override
    public String name() {
      return "group creation";
    }

    @Override
    public String metricLabel() {
      return GroupCreations.this.metricLabel();
    }

    @Override
    public Class<VerifiedIntent.GroupCreation> intents() {
      return VerifiedIntent.GroupCreation.class;
    }

    @Override
    public String resource(VerifiedIntent.GroupCreation intent) {
      return GroupRecord.name(intent.key(), intent.epoch());
    }

    @Override
    public GroupRecord prepare(VerifiedIntent.GroupCreation intent, Instant now) {
      maker.requireParties(resource(intent), intent);
      return new GroupRecord(
          0,
          RequestHeader.of(intent, now),
          intent.key(),
          intent.epoch(),
          intent.issuerThreshold(),
          intent.issuers(),
          intent.openerThreshold(),
          intent.openers(),
          Group.State.CREATING,
          ByteString.EMPTY,
          null);
    }

    @Override
    public Claim<GroupRecord> store(GroupRecord prepared) {
      requests.requirePlace(prepared);
      return switch (store.create(prepared)) {
        case GroupStore.Creation.Stored(GroupRecord record) -> new Claim<>(record, true);
        case GroupStore.Creation.Known(GroupRecord record) -> new Claim<>(record, false);
        case GroupStore.Creation.EpochTaken _ ->
            throw Failure.of(ErrorReason.GROUP_EXISTS, prepared.name()).toException();
      };
    }

    @Override
    public Optional<GroupRecord> find(String requester, String requestId) {
      return store.findRequest(requester, requestId);
    }

    @Override
    public Optional<GroupRecord> take(GroupRecord request) {
      return store.take(request.id());
    }

    @Override
    public boolean giveEnd(GroupRecord stored, Run<GroupRecord> run) {
      if (stored.state() == Group.State.CREATING) {
        return false;
      }
      run.finish(stored);
      return true;
    }

    @Override
    public boolean work(
        Run<GroupRecord> run, GroupRecord request, VerifiedIntent.GroupCreation intent)
        throws InterruptedException {
      switch (maker.make(intent, run, () -> requests.isMine(request))) {
        case End.Lost _ -> {
          return false;
        }
        case End.Made(ByteString attested) -> {
          end(run, request.active(attested), CoordinatorMetrics.OK);
          log.info("{} is active", request.name());
        }
        case End.Failed(Failure failure) -> {
          if (!requests.isMine(request)) {
            return false;
          }
          refuse(run, request, failure);
        }
        case End.Stopped _ -> run.drain();
      }
      return true;
    }

    @Override
    public void refuse(Run<GroupRecord> run, GroupRecord request, Failure why)
        throws InterruptedException {
      end(run, request.failed(why.toStatus()), why.reason().name());
    }

    private void end(Run<GroupRecord> run, GroupRecord finished, String outcome)
        throws InterruptedException {
      requests.end(
          run,
          finished,
          () -> store.finish(finished.id(), finished.attested(), finished.error()),
          () -> {
            metrics.groupCreationEnded(outcome);
            run.finish(finished);
          });
    }
  }
}
