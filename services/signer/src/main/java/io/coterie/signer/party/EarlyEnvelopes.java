package io.coterie.signer.party;

import io.coterie.platform.protocol.SessionId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Envelopes that came before the run they belong to: before their order, because messages of one
 * sender keep their order and those of different senders do not, or while the order is checked and
 * claimed. Bounded for each sender, since a peer may name sessions that never come, and never for
 * all senders together, so that none can take the room of another. Thread-safe.
 */
public final class EarlyEnvelopes {
  /** How long an envelope waits for its order. */
  public static final long WAIT_NANOS = 10_000_000_000L;

  /**
   * Bytes from one sender for one session: its messages of one round, the largest of which (the
   * second of an ECDSA signature) takes 43 KB, and some. From 19 peers that is 1.2 MB.
   */
  public static final int MAX_SESSION_SENDER_BYTES = 64 * 1024;

  /** Sessions at once. */
  public static final int MAX_SESSIONS = 4096;

  /** Bytes from one sender, over all sessions. */
  public static final int MAX_SENDER_BYTES = 1024 * 1024;

  /** Envelopes from one sender, over all sessions. */
  public static final int MAX_SENDER_ENVELOPES = 4096;

  /** Bookkeeping that an empty envelope costs as well. */
  private static final int OVERHEAD_BYTES = 64;

  /** Sessions whose order has not come, oldest first. */
  private final Map<SessionId, Waiting> unknown = new LinkedHashMap<>();

  /** Sessions whose order has come; they end, so nothing has to expire. */
  private final Map<SessionId, Waiting> known = new HashMap<>();

  private final Map<Integer, Load> senders = new HashMap<>();

  /**
   * An envelope as the channel delivered it.
   *
   * @param sender the party the channel proved
   * @param receivedNanos when it came off the socket, by a clock that only goes forward
   */
  public record Arrived(int sender, byte[] envelope, long receivedNanos) {
    private int cost() {
      return envelope.length + OVERHEAD_BYTES;
    }
  }

  private static final class Waiting {
    final long since;
    final List<Arrived> envelopes = new ArrayList<>();

    Waiting(long since) {
      this.since = since;
    }

    int bytesFrom(int sender) {
      return envelopes.stream().filter(a -> a.sender() == sender).mapToInt(Arrived::cost).sum();
    }
  }

  private static final class Load {
    int envelopes;
    int bytes;
  }

  /**
   * Keeps an envelope until its run starts.
   *
   * @return false if a bound was reached; the envelope is dropped then
   */
  public synchronized boolean add(SessionId session, Arrived arrived) {
    expire(arrived.receivedNanos());
    Waiting waiting = known.get(session);
    if (waiting == null) {
      waiting = unknown.get(session);
    }
    Load load = senders.getOrDefault(arrived.sender(), new Load());
    int ofSession = waiting == null ? 0 : waiting.bytesFrom(arrived.sender());
    if (ofSession + arrived.cost() > MAX_SESSION_SENDER_BYTES
        || load.bytes + arrived.cost() > MAX_SENDER_BYTES
        || load.envelopes == MAX_SENDER_ENVELOPES
        || (waiting == null && unknown.size() == MAX_SESSIONS)) {
      return false;
    }
    if (waiting == null) {
      waiting = new Waiting(arrived.receivedNanos());
      unknown.put(session, waiting);
    }
    waiting.envelopes.add(arrived);
    load.bytes += arrived.cost();
    load.envelopes++;
    senders.put(arrived.sender(), load);
    return true;
  }

  /** A session is expected from now on: its messages wait as long as it lives. */
  public synchronized void expect(SessionId session) {
    Waiting waiting = unknown.remove(session);
    known.put(session, waiting == null ? new Waiting(0) : waiting);
  }

  /** Takes what came for a session, in order of arrival; it is not expected any more. */
  public synchronized List<Arrived> take(SessionId session) {
    Waiting waiting = known.remove(session);
    if (waiting == null) {
      waiting = unknown.remove(session);
    }
    if (waiting == null) {
      return List.of();
    }
    release(waiting);
    return waiting.envelopes;
  }

  /** Forgets what came for a session. */
  public void drop(SessionId session) {
    take(session).forEach(a -> Arrays.fill(a.envelope(), (byte) 0));
  }

  /** Drops what waited too long for its order. */
  public synchronized void expire(long nowNanos) {
    Iterator<Waiting> oldest = unknown.values().iterator();
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

  public synchronized boolean isEmpty() {
    return unknown.isEmpty() && known.isEmpty();
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
