package io.coterie.signer.session;

import io.coterie.platform.limit.FairPlaces;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Places that sessions take and give back: among all sessions, among those of one requester, among
 * those that only wait for a result, and the place of the one session that makes a share of a key.
 * Thread-safe. A session keeps its places in a {@link HeldPlaces} and cannot give one back twice.
 */
final class Leases {
  private final SessionLimits limits;
  private final AtomicInteger active = new AtomicInteger();
  private final AtomicInteger combining = new AtomicInteger();
  private final FairPlaces requesters;

  /** The session that makes a share of a key, by the key. */
  private final Map<String, Session> sharings = new ConcurrentHashMap<>();

  Leases(SessionLimits limits) {
    this.limits = limits;
    this.requesters = new FairPlaces(limits.maxSessions());
  }

  /** Takes a place among all sessions that still have something to send; false without one. */
  boolean admit(Session session) {
    return takeOf(active, limits.maxSessions(), session.untilLastSent);
  }

  /**
   * The same among the sessions of a requester: however much coordinators order for one, others
   * keep places.
   */
  boolean admit(Session session, String requester) {
    if (!requesters.take(requester, limits.maxSessionsPerRequester())) {
      return false;
    }
    session.untilLastSent.add(() -> requesters.giveBack(requester));
    return true;
  }

  /**
   * Takes a place among the sessions that only wait to see their result; false without one. There
   * are as many as before the last message, because this party must know whether there is a
   * signature: it would be another one if it were made again.
   */
  boolean combine(Session session) {
    return takeOf(combining, limits.maxSessions(), session.untilEnd);
  }

  /**
   * Takes the place of the one session that makes a share of a key. The newer order counts, also
   * when the check of the older one took longer.
   *
   * @return the session that had the place, if there was one
   * @throws RefusedException if a session of a newer order has it
   */
  Optional<Session> makeShare(Session session, String key) throws RefusedException {
    while (true) {
      Session other = sharings.putIfAbsent(key, session);
      if (other != null && other.orderedNanos - session.orderedNanos > 0) {
        throw new RefusedException(
            RefusalReason.REFUSAL_REASON_NOT_READY, "a newer order for the same key has come");
      }
      if (other == null || sharings.replace(key, other, session)) {
        session.untilEnd.add(() -> sharings.remove(key, session));
        return Optional.ofNullable(other);
      }
    }
  }

  private static boolean takeOf(AtomicInteger places, int most, HeldPlaces held) {
    if (places.incrementAndGet() > most) {
      places.decrementAndGet();
      return false;
    }
    held.add(places::decrementAndGet);
    return true;
  }
}
