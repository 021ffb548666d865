package io.coterie.signer.group;

import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** One order about a group at this party. Everything that changes is touched by its lane alone. */
final class GroupRun {
  final SessionId id;
  final Member coordinator;
  final @Nullable String traceparent;
  final WorkPool.Lane lane;

  /** There once the order was checked. */
  @Nullable GroupPlan plan;

  /** Of the core, as long as it can answer its peers. */
  ProtocolCore.@Nullable Run session;

  /** The answer, once there is one. */
  @Nullable GroupReport report;

  /** Whether its session has an id of its own. */
  boolean named;

  /** Whether it holds a place of its requester. */
  boolean placed;

  /** Whether the core has ended it, or is not to be asked any more. */
  boolean over;

  /** Ends it when its time is over; null if nothing waits for that. */
  private @Nullable Future<?> deadline;

  int round;
  List<Integer> missing = List.of();

  /** Bytes of envelopes that wait for the lane. */
  private final AtomicInteger queued = new AtomicInteger();

  GroupRun(SessionId id, Member coordinator, @Nullable String traceparent, WorkPool.Lane lane) {
    this.id = id;
    this.coordinator = coordinator;
    this.traceparent = traceparent;
    this.lane = lane;
  }

  /** The plan of an order that was checked. */
  GroupPlan plan() {
    GroupPlan known = plan;
    if (known == null) {
      throw new IllegalStateException("order " + id + " has no plan");
    }
    return known;
  }

  /** The session that its envelopes name: that of the order, unless its plan says another. */
  SessionId sessionId() {
    GroupPlan known = plan;
    return known == null ? id : known.session();
  }

  /** Whether a member takes part in it, whose envelopes the coordinator carries. */
  boolean hasMember() {
    GroupPlan known = plan;
    return known != null && known.step() instanceof GroupStep.Join;
  }

  /** Takes room for an envelope in the lane; false if there is none. */
  boolean takeRoom(int bytes) {
    if (queued.addAndGet(bytes) <= SessionLimits.MAX_QUEUED_BYTES) {
      return true;
    }
    giveRoomBack(bytes);
    return false;
  }

  void giveRoomBack(int bytes) {
    queued.addAndGet(-bytes);
  }

  /** Ends the order after a time, unless its clock is stopped. */
  void after(WorkPool pool, Duration time, Runnable end) {
    deadline = pool.after(time, end);
  }

  /** Nothing waits for its time any more, so that nothing keeps the order. */
  void stopClock() {
    if (deadline != null) {
      deadline.cancel(false);
      deadline = null;
    }
  }

  void closeSession() {
    over = true;
    if (session != null) {
      session.close();
      session = null;
    }
  }
}
