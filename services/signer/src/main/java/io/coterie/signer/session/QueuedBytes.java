package io.coterie.signer.session;

import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.order.SessionLimits;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How much of what peers sent waits for the lanes of running sessions. A peer that is in many
 * sessions can fill its own share and no other's. Thread-safe.
 */
final class QueuedBytes {
  /** Room for the messages of two rounds beside the largest one. */
  private static final int MORE_BYTES = 128 * 1024;

  /** One sender's bytes for one session: its messages of two rounds, or the largest there is. */
  static final int MAX_SESSION_SENDER_BYTES = SessionLimits.MAX_ENVELOPE_BYTES + MORE_BYTES;

  /** Bookkeeping that an empty envelope costs as well. */
  private static final int OVERHEAD_BYTES = 64;

  /**
   * Large frames of pairs take no room of other messages. The size alone decides, because a session
   * is not known to be of a pair before its order was judged.
   */
  private final Room usual = new Room(SessionLimits.MAX_QUEUED_BYTES, MAX_SESSION_SENDER_BYTES);

  private final Room frames =
      new Room(
          SessionLimits.MAX_PAIR_QUEUED_BYTES, SessionLimits.MAX_PAIR_ENVELOPE_BYTES + MORE_BYTES);

  private record Slot(SessionId session, int sender) {}

  /**
   * Takes room for an envelope.
   *
   * @return false, and nothing taken, if there is none
   */
  boolean add(SessionId session, int sender, byte[] envelope) {
    return room(envelope).add(new Slot(session, sender), envelope.length + OVERHEAD_BYTES);
  }

  /** Gives the room back. */
  void remove(SessionId session, int sender, byte[] envelope) {
    room(envelope).remove(new Slot(session, sender), envelope.length + OVERHEAD_BYTES);
  }

  private Room room(byte[] envelope) {
    return envelope.length > SessionLimits.MAX_ENVELOPE_BYTES ? frames : usual;
  }

  private record Room(
      Map<Integer, Integer> bySender, Map<Slot, Integer> bySlot, int mostOfSender, int mostOfSlot) {
    Room(int mostOfSender, int mostOfSlot) {
      this(new ConcurrentHashMap<>(), new ConcurrentHashMap<>(), mostOfSender, mostOfSlot);
    }

    boolean add(Slot slot, int bytes) {
      if (!raise(bySender, slot.sender(), bytes, mostOfSender)) {
        return false;
      }
      if (!raise(bySlot, slot, bytes, mostOfSlot)) {
        lower(bySender, slot.sender(), bytes);
        return false;
      }
      return true;
    }

    void remove(Slot slot, int bytes) {
      lower(bySender, slot.sender(), bytes);
      lower(bySlot, slot, bytes);
    }
  }

  private static <K> boolean raise(Map<K, Integer> counts, K key, int bytes, int most) {
    boolean[] fits = {false};
    counts.compute(
        key,
        (_, before) -> {
          int now = (before == null ? 0 : before) + bytes;
          fits[0] = now <= most;
          return fits[0] ? Integer.valueOf(now) : before;
        });
    return fits[0];
  }

  private static <K> void lower(Map<K, Integer> counts, K key, int bytes) {
    counts.computeIfPresent(key, (_, before) -> before <= bytes ? null : before - bytes);
  }
}
