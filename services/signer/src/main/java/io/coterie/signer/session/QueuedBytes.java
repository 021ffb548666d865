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

  private final Map<Integer, Integer> bySender = new ConcurrentHashMap<>();
  private final Map<Slot, Integer> bySlot = new ConcurrentHashMap<>();

  private final int mostOfSender;
  private final int mostOfSlot;

  private QueuedBytes(int mostOfSender, int mostOfSlot) {
    this.mostOfSender = mostOfSender;
    this.mostOfSlot = mostOfSlot;
  }

  QueuedBytes() {
    this(SessionLimits.MAX_QUEUED_BYTES, MAX_SESSION_SENDER_BYTES);
  }

  /** For sessions of pairs, whose messages are larger and take no room of others. */
  static QueuedBytes ofPairs() {
    return new QueuedBytes(
        SessionLimits.MAX_PAIR_QUEUED_BYTES, SessionLimits.MAX_PAIR_ENVELOPE_BYTES + MORE_BYTES);
  }

  private record Slot(SessionId session, int sender) {}

  /**
   * Takes room for an envelope.
   *
   * @return false, and nothing taken, if there is none
   */
  boolean add(SessionId session, int sender, byte[] envelope) {
    int bytes = envelope.length + OVERHEAD_BYTES;
    if (!raise(bySender, sender, bytes, mostOfSender)) {
      return false;
    }
    if (!raise(bySlot, new Slot(session, sender), bytes, mostOfSlot)) {
      lower(bySender, sender, bytes);
      return false;
    }
    return true;
  }

  /** Gives the room back. */
  void remove(SessionId session, int sender, byte[] envelope) {
    int bytes = envelope.length + OVERHEAD_BYTES;
    lower(bySender, sender, bytes);
    lower(bySlot, new Slot(session, sender), bytes);
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
