package io.coterie.signer.session;

import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionLifecycle.Event;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Ended sessions of signed protocols until their deadline: a party that ended first still hears a
 * proof of what it could not see, and shows what it saw to those who saw something else.
 * Thread-safe. A run is closed in the lane of its session.
 */
final class ListeningRuns {
  /** Each holds its session's broadcasts, at most some 100 KiB. */
  private static final int MAX = 64;

  /** The sessions in the order in which they ended. */
  private final Map<SessionId, Session> sessions = new LinkedHashMap<>();

  private final WorkPool pool;
  private final InstantSource clock;
  private volatile boolean draining;
  private boolean closed;

  ListeningRuns(WorkPool pool, InstantSource clock) {
    this.pool = pool;
    this.clock = clock;
  }

  synchronized @Nullable Session get(SessionId id) {
    return sessions.get(id);
  }

  /**
   * Leaves the run of a session that has ended open for what others show, until its deadline. In
   * the session's lane.
   *
   * @param event that ended the session
   * @return false if the run is to be closed
   */
  boolean keep(Session session, Event event) {
    SessionPlan plan = session.plan;
    if (plan == null
        || !plan.protocol().operation().makesShare()
        || (event != Event.SHARE_STORED && event != Event.ABORT)
        || draining) {
      return false;
    }
    Duration left = Duration.between(clock.instant(), plan.deadline());
    if (left.isNegative()) {
      return false;
    }
    session.after(pool, left, () -> stop(session));
    add(session).ifPresent(other -> other.run(other::closeRun));
    return true;
  }

  /** The sessions that listen now. */
  synchronized List<Session> all() {
    return List.copyOf(sessions.values());
  }

  /** Closes the run of a session that listens. In the session's lane. */
  void stop(Session session) {
    if (remove(session)) {
      session.closeRun();
    }
  }

  /** Adds no further session from now on. */
  void drain() {
    draining = true;
  }

  /**
   * Adds a session. When there is no room, the oldest one of the key that has most gives way: an
   * order for a key costs no other key its evidence.
   *
   * @return the session that gives way, if one does; the added one after {@link #close}
   */
  private synchronized Optional<Session> add(Session session) {
    if (closed) {
      return Optional.of(session);
    }
    sessions.put(session.id, session);
    if (sessions.size() <= MAX) {
      return Optional.empty();
    }
    Map<String, Integer> perKey = new HashMap<>();
    sessions.values().forEach(each -> perKey.merge(each.plan().key(), 1, Integer::sum));
    int most = Collections.max(perKey.values());
    Optional<Session> oldest =
        sessions.values().stream()
            .filter(each -> perKey.getOrDefault(each.plan().key(), 0) == most)
            .findFirst();
    oldest.ifPresent(this::remove);
    return oldest;
  }

  /** Takes a session out; false if it is not there. */
  private synchronized boolean remove(Session session) {
    return sessions.remove(session.id, session);
  }

  /** Takes all out, and takes no further one. The caller closes their runs, each in its lane. */
  synchronized List<Session> close() {
    closed = true;
    List<Session> all = new ArrayList<>(sessions.values());
    sessions.clear();
    return all;
  }
}
