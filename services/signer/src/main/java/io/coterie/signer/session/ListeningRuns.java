package io.coterie.signer.session;

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
 * Thread-safe. A session that is taken out has its run closed by the caller, in its own lane.
 */
final class ListeningRuns {
  /** Each holds its session's broadcasts, at most some 100 KiB. */
  private static final int MAX = 64;

  /** In the order in which they ended. */
  private final Map<SessionId, Session> sessions = new LinkedHashMap<>();

  private boolean closed;

  synchronized @Nullable Session get(SessionId id) {
    return sessions.get(id);
  }

  /**
   * Adds a session. When there is no room, the oldest one of the key that has most gives way: an
   * order for a key costs no other key its evidence.
   *
   * @return the session that gives way, if one does; the added one after {@link #close}
   */
  synchronized Optional<Session> add(Session session) {
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
  synchronized boolean remove(Session session) {
    return sessions.remove(session.id, session);
  }

  /** Takes all out, and takes no further one. */
  synchronized List<Session> close() {
    closed = true;
    List<Session> all = new ArrayList<>(sessions.values());
    sessions.clear();
    return all;
  }
}
