package io.coterie.signer.session;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Envelopes that came before their order: messages of one sender keep their order, those of
 * different senders do not. Bounded in every direction, since a peer may name sessions that never
 * come. Thread-safe.
 */
final class EarlyEnvelopes {
  /** How long an envelope waits for its order. */
  static final long WAIT_NANOS = 10_000_000_000L;

  /** Bytes of one session, from all senders together. */
  static final int MAX_SESSION_BYTES = 64 * 1024;

  /** Sessions at once. */
  static final int MAX_SESSIONS = 4096;

  /** Bytes from one sender, over all sessions. */
  static final int MAX_SENDER_BYTES = 1024 * 1024;

  /** Envelopes from one sender, over all sessions. */
  static final int MAX_SENDER_ENVELOPES = 4096;

  /** Bookkeeping that an empty envelope costs as well. */
  private static final int OVERHEAD_BYTES = 64;

  private final Map<SessionId, Waiting> sessions = new LinkedHashMap<>();
  private final Map<Integer, Load> senders = new HashMap<>();

  /**
   * An envelope as the channel delivered it.
   *
   * @param sender the party the channel proved
   * @param receivedNanos {@link System#nanoTime} when it came off the socket
   */
  record Arrived(int sender, byte[] envelope, long receivedNanos) {
    private int cost() {
      return envelope.length + OVERHEAD_BYTES;
    }
  }

  private static final class Waiting {
    final long since;
    final List<Arrived> envelopes = new ArrayList<>();
    int bytes;

    Waiting(long since) {
      this.since = since;
    }
  }

  private static final class Load {
    int envelopes;
    int bytes;
  }

  /**
   * Keeps an envelope until its order comes.
   *
   * @return false if a bound was reached; the envelope is dropped then
   */
  synchronized boolean add(SessionId session, Arrived arrived) {
    expire(arrived.receivedNanos());
    Load load = senders.computeIfAbsent(arrived.sender(), _ -> new Load());
    Waiting waiting = sessions.get(session);
    int sessionBytes = waiting == null ? 0 : waiting.bytes;
    if (sessionBytes + arrived.cost() > MAX_SESSION_BYTES
        || load.bytes + arrived.cost() > MAX_SENDER_BYTES
        || load.envelopes == MAX_SENDER_ENVELOPES
        || (waiting == null && sessions.size() == MAX_SESSIONS)) {
      return false;
    }
    if (waiting == null) {
      waiting = new Waiting(arrived.receivedNanos());
      sessions.put(session, waiting);
    }
    waiting.envelopes.add(arrived);
    waiting.bytes += arrived.cost();
    load.bytes += arrived.cost();
    load.envelopes++;
    return true;
  }

  /** Takes what came for a session, in order of arrival. */
  synchronized List<Arrived> take(SessionId session) {
    Waiting waiting = sessions.remove(session);
    if (waiting == null) {
      return List.of();
    }
    release(waiting);
    return waiting.envelopes;
  }

  /** Drops what waited too long. */
  synchronized void expire(long nowNanos) {
    // Sessions are in order of their first envelope, so the oldest are first.
    Iterator<Waiting> oldest = sessions.values().iterator();
    while (oldest.hasNext()) {
      Waiting waiting = oldest.next();
      if (nowNanos - waiting.since < WAIT_NANOS) {
        return;
      }
      oldest.remove();
      release(waiting);
      waiting.envelopes.forEach(a -> Arrays.fill(a.envelope(), (byte) 0));
    }
  }

  synchronized boolean isEmpty() {
    return sessions.isEmpty();
  }

  private void release(Waiting waiting) {
    for (Arrived arrived : waiting.envelopes) {
      Load load = senders.get(arrived.sender());
      if (load != null) {
        load.bytes -= arrived.cost();
        load.envelopes--;
        if (load.envelopes == 0) {
          senders.remove(arrived.sender());
        }
      }
    }
  }
}
