package io.coterie.signer.session;

import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.EarlyEnvelopes;
import io.coterie.trust.Member;
import java.util.List;
import java.util.function.BiConsumer;

/**
 * Brings envelopes of the core to their sessions, within bounds: also those that come before the
 * order, while a session may not hear its peers, and after the end. Thread-safe, but for what is
 * said to be called in a session's lane.
 */
final class Inbox {
  private final Sessions sessions;
  private final ListeningRuns listening;
  private final SessionTelemetry telemetry;
  private final BiConsumer<Session, EarlyEnvelopes.Arrived> deliver;
  private final EarlyEnvelopes early = new EarlyEnvelopes();
  private final QueuedBytes queued = new QueuedBytes();

  /**
   * @param deliver gives an envelope to a session, in its lane
   */
  Inbox(
      Sessions sessions,
      ListeningRuns listening,
      SessionTelemetry telemetry,
      BiConsumer<Session, EarlyEnvelopes.Arrived> deliver) {
    this.sessions = sessions;
    this.listening = listening;
    this.telemetry = telemetry;
    this.deliver = deliver;
  }

  /**
   * An envelope has come.
   *
   * @param envelope no longer used by the caller; zeroed after use
   */
  void arrived(Member sender, SessionId id, byte[] envelope, long receivedNanos) {
    EarlyEnvelopes.Arrived arrived =
        new EarlyEnvelopes.Arrived(sender.partyId(), envelope, receivedNanos);
    Session session = sessions.get(id);
    if (session == null) {
      session = listening.get(id);
    }
    int most =
        session != null && session.ofPairs
            ? SessionLimits.MAX_PAIR_ENVELOPE_BYTES
            : SessionLimits.MAX_ENVELOPE_BYTES;
    if (sender.role() != Member.Role.PARTY || envelope.length > most) {
      telemetry.dropped("unacceptable");
      return;
    }
    if (session != null) {
      enqueue(session, arrived);
    } else if (!sessions.hasEnded(id)) {
      if (!early.add(id, arrived)) {
        telemetry.dropped("early_overflow");
        return;
      }
      // The order may have come in between, and its run may have begun.
      Session now = sessions.get(id);
      if (now != null) {
        early.take(id).forEach(a -> enqueue(now, a));
      }
    }
  }

  /** The order of a session has come: its early messages wait as long as the session lives. */
  void expect(SessionId id) {
    early.expect(id);
  }

  /** Keeps an envelope until the run of its session starts. */
  void keep(Session session, EarlyEnvelopes.Arrived arrived) {
    if (!early.add(session.id, arrived)) {
      telemetry.dropped("early_overflow");
    }
  }

  /**
   * The run of a session has started: it gets what was kept, through its lane, so that a session
   * that has sent its last message gives way to others.
   */
  void open(Session session) {
    early.take(session.id).forEach(arrived -> enqueue(session, arrived));
  }

  /** A session hears its peers now. In its lane. */
  void release(Session session) {
    List<EarlyEnvelopes.Arrived> unheard = List.copyOf(session.unheard);
    session.unheard.clear();
    // The room of all first: one of them may end the session by an error.
    unheard.forEach(a -> queued.remove(session.id, a.sender(), a.envelope()));
    unheard.forEach(arrived -> deliver.accept(session, arrived));
  }

  /** Forgets what was kept for a session. */
  void drop(SessionId id) {
    early.drop(id);
  }

  /** Forgets what waited too long for its order. */
  void expire(long nowNanos) {
    early.expire(nowNanos);
  }

  private void enqueue(Session session, EarlyEnvelopes.Arrived arrived) {
    if (!queued.add(session.id, arrived.sender(), arrived.envelope())) {
      telemetry.dropped("queue_overflow");
      return;
    }
    session.run(
        () -> {
          if (session.unwitnessed) {
            session.unheard.add(arrived);
          } else {
            hand(session, arrived);
          }
        });
  }

  private void hand(Session session, EarlyEnvelopes.Arrived arrived) {
    queued.remove(session.id, arrived.sender(), arrived.envelope());
    deliver.accept(session, arrived);
  }
}
