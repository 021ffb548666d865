package io.coterie.signer.session;

import io.coterie.platform.protocol.SessionId;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** The sessions that this party follows, and the ids of those that ended last. Thread-safe. */
final class Sessions {
  /** Ended sessions whose late messages are still recognised as late. */
  private static final int MAX_ENDED = 8192;

  private final Map<SessionId, Session> live = new ConcurrentHashMap<>();

  /** Guarded by itself. */
  private final Map<SessionId, Boolean> ended =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<SessionId, Boolean> eldest) {
          return size() > MAX_ENDED;
        }
      };

  private final ReentrantLock endings = new ReentrantLock();
  private final Condition sessionEnded = endings.newCondition();

  /**
   * Adds a session unless its id is followed already.
   *
   * @return the session of that id that was there before
   */
  Optional<Session> add(Session session) {
    return Optional.ofNullable(live.putIfAbsent(session.id, session));
  }

  @Nullable Session get(SessionId id) {
    return live.get(id);
  }

  /** All that are followed now. */
  Collection<Session> all() {
    return List.copyOf(live.values());
  }

  int size() {
    return live.size();
  }

  /** A session has ended: its id is remembered for a while. */
  void end(Session session) {
    synchronized (ended) {
      ended.put(session.id, true);
    }
    live.remove(session.id);
    endings.lock();
    try {
      sessionEnded.signalAll();
    } finally {
      endings.unlock();
    }
  }

  /** Whether a session of that id has ended lately. */
  boolean hasEnded(SessionId id) {
    synchronized (ended) {
      return ended.containsKey(id);
    }
  }

  /**
   * Waits until no session is left.
   *
   * @return false if that took longer
   */
  boolean awaitNone(long nanos) throws InterruptedException {
    long left = nanos;
    endings.lock();
    try {
      while (!live.isEmpty()) {
        if (left <= 0) {
          return false;
        }
        left = sessionEnded.awaitNanos(left);
      }
      return true;
    } finally {
      endings.unlock();
    }
  }
}
