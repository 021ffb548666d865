package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.proto.party.v1.SessionReport;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Holds the orders that replicas give for the requests of clients against the rules of the
 * coordinator: which replica works on a request, and when another session of it may begin.
 */
final class OrderChecker {
  static final String UNSETTLED = "a session began while an earlier one was not settled";
  static final String WORKED_TWICE = "two replicas that were there worked on one request";

  private final World world;
  private final Map<String, Presence> presences = new HashMap<>();
  private final Map<String, Work> works = new HashMap<>();

  /** A replica as the database sees it. */
  private static final class Presence {
    long seenNanos;

    /** Since then it was there without interruption, as one process. */
    long sinceNanos;
  }

  /** The sessions of a request. */
  private static final class Work {
    final long sinceNanos;
    final Set<String> replicas = new HashSet<>();
    final Set<ByteString> sessions = new HashSet<>();

    /** The database may have forgotten whose work it is. */
    boolean forgotten;

    /** The session that the process of each replica has begun last. */
    final Map<String, Begun> last = new HashMap<>();

    Work(long sinceNanos) {
      this.sinceNanos = sinceNanos;
    }
  }

  /** A session that a replica has begun. */
  private static final class Begun {
    final Ordered order;

    /**
     * A party has said that it does not go on, its order was given again, or messaging did not take
     * it.
     */
    boolean settled;

    Begun(Ordered order) {
      this.order = order;
    }
  }

  OrderChecker(World world) {
    this.world = world;
  }

  /** A client asks for this the first time. */
  void begun(String request) {
    works.put(request, new Work(world.timeline().nanos()));
  }

  /** A replica has told the database that it is there. */
  void seen(String replica) {
    Presence presence = presences.computeIfAbsent(replica, _ -> new Presence());
    if (!isThere(presence)) {
      presence.sinceNanos = world.timeline().nanos();
    }
    presence.seenNanos = world.timeline().nanos();
  }

  private boolean isThere(Presence presence) {
    return world.timeline().nanos() - presence.seenNanos < CoordinatorProcess.GONE_AFTER.toNanos();
  }

  /** A process of a replica is gone, and what it knew. */
  void killed(String replica) {
    Presence presence = presences.computeIfAbsent(replica, _ -> new Presence());
    presence.sinceNanos = Long.MAX_VALUE;
    presence.seenNanos = Long.MIN_VALUE / 2;
    works.values().forEach(work -> work.last.remove(replica));
  }

  /** The database has forgotten what it has done of late. */
  void crashed() {
    works.values().forEach(work -> work.forgotten = true);
  }

  /** A replica gives an order to messaging. */
  void ordered(String replica, Ordered order) {
    Work work = works.get(order.request().substring(Ordered.REQUEST.length()));
    if (work == null) {
      throw new IllegalStateException("no client has asked for " + order);
    }
    Begun last = work.last.get(replica);
    if (!work.sessions.add(order.session())) {
      // Given again, or given by another process first.
      settled(replica, order.session());
      return;
    }
    if (last != null
        && !last.settled
        && last.order.protocol().signsAtRandom()
        && last.order.order().getEpoch() == order.order().getEpoch()) {
      world.checker().violated(UNSETTLED, replica + " in " + order + " after " + last.order);
    }
    checkWorkers(replica, order, work);
    work.last.put(replica, new Begun(order));
  }

  private void checkWorkers(String replica, Ordered order, Work work) {
    work.replicas.add(replica);
    boolean allThere =
        work.replicas.stream()
            .map(name -> presences.computeIfAbsent(name, _ -> new Presence()))
            .allMatch(p -> isThere(p) && p.sinceNanos < work.sinceNanos);
    if (work.replicas.size() > 1 && allThere && !work.forgotten) {
      world.checker().violated(WORKED_TWICE, replica + " in " + order);
    }
  }

  /** A party reports to a replica. */
  void reported(String replica, SessionReport report) {
    switch (report.getOutcomeCase()) {
      case REFUSED, ABORTED, DECLINED -> settled(replica, report.getSessionId());
      case COMPLETED, TIMED_OUT, OUTCOME_NOT_SET -> {}
    }
  }

  /** A session of a replica is over for it, or never began. */
  void settled(String replica, ByteString session) {
    for (Work work : works.values()) {
      Begun last = work.last.get(replica);
      if (last != null && last.order.session().equals(session)) {
        last.settled = true;
      }
    }
  }
}
