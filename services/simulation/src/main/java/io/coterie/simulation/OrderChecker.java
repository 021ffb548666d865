package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.proto.party.v1.SessionReport;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Holds the orders that replicas give for the requests of clients against the rules of the
 * coordinator: which replica works on a request, and when another session of it may begin.
 */
final class OrderChecker {
  /** So long a party that has contributed waits after a deadline (docs/adr/0017). */
  private static final Duration LAPSE = SimulatedParty.CLOCK_SKEW.multipliedBy(2);

  private final World world;
  private final Map<String, Presence> presences = new HashMap<>();
  private final Map<String, Work> works = new HashMap<>();

  /** The parties that the process of each replica could ask. */
  private final Map<String, Doubts.Reach> reaches = new HashMap<>();

  /** Parties that are excluded from a key. */
  private final Set<Integer> excluded = new HashSet<>();

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

    /** The sessions that the process of each replica has given again. */
    final Map<String, Doubts> doubts = new HashMap<>();

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
    reaches.remove(replica);
    works
        .values()
        .forEach(
            work -> {
              work.last.remove(replica);
              work.doubts.remove(replica);
            });
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
    // Another replica that works on it next begins anew.
    work.doubts.keySet().removeIf(other -> !other.equals(replica));
    if (!work.sessions.add(order.session())) {
      // Given again, or given by another process first.
      settled(replica, order.session());
      doubts(replica, work).again(order);
      return;
    }
    if (last != null
        && !last.settled
        && last.order.protocol().signsAtRandom()
        && last.order.order().getEpoch() == order.order().getEpoch()) {
      world.checker().violated(Breach.UNSETTLED, replica + " in " + order + " after " + last.order);
    }
    Ordered doubted = doubts(replica, work).without(order);
    if (doubted != null) {
      world.checker().violated(Breach.NO_WITNESS, replica + " in " + order + " after " + doubted);
    }
    checkWorkers(replica, order, work);
    // So does one that gets it back: its earlier attempt has ended with what it knew, and the
    // parties alone keep a request to one session.
    work.last.keySet().removeIf(other -> !other.equals(replica));
    work.last.put(replica, new Begun(order));
  }

  private void checkWorkers(String replica, Ordered order, Work work) {
    work.replicas.add(replica);
    boolean allThere =
        work.replicas.stream()
            .map(name -> presences.computeIfAbsent(name, _ -> new Presence()))
            .allMatch(p -> isThere(p) && p.sinceNanos < work.sinceNanos);
    if (work.replicas.size() > 1 && allThere && !work.forgotten) {
      world.checker().violated(Breach.WORKED_TWICE, replica + " in " + order);
    }
  }

  private Doubts doubts(String replica, Work work) {
    return work.doubts.computeIfAbsent(
        replica, name -> new Doubts(world.timeline(), world.coverage(), LAPSE, reach(name)));
  }

  private Doubts.Reach reach(String replica) {
    return reaches.computeIfAbsent(replica, _ -> new Doubts.Reach(excluded));
  }

  /** The core of a replica begins to hear a session of a request. */
  Hearing hears(String replica, Ordered order) {
    Work work = works.get(order.request().substring(Ordered.REQUEST.length()));
    if (work == null) {
      throw new IllegalStateException("no client has asked for " + order);
    }
    return doubts(replica, work).hears(order.session(), Set.copyOf(order.parties()));
  }

  /** The channel of a replica cannot reach a party. */
  void away(String replica, int party) {
    reach(replica).away(party, world.timeline().nanos());
  }

  /** A party is excluded from a key. */
  void excluded(int party) {
    excluded.add(party);
  }

  /** Messaging did not take an order of a replica. */
  void untaken(String replica, ByteString session) {
    settled(replica, session);
    works.values().forEach(work -> doubts(replica, work).untaken(session));
  }

  /** A party reports to a replica. */
  void reported(String replica, int party, SessionReport report) {
    switch (report.getOutcomeCase()) {
      case REFUSED, ABORTED -> {
        settled(replica, report.getSessionId());
        for (Work work : works.values()) {
          if (work.sessions.contains(report.getSessionId())) {
            doubts(replica, work).leaves(party, report.getSessionId());
          }
        }
      }
      case DECLINED -> settled(replica, report.getSessionId());
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
