package io.coterie.signer.party;

import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.Declined;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.Collection;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How this party's messages reach the others. Nothing here blocks or fails: a message that cannot
 * be sent is tried again for a while and then dropped, which the deadline of its session turns into
 * a result.
 */
public interface PartyNetwork {
  Roster roster();

  /** This party. */
  Member self();

  /** Members that can be reached now. */
  Set<Member> reachable();

  /** Sends to several members at once; content is not private among the roster. */
  void broadcast(Collection<Member> recipients, PartyMessage message, @Nullable String traceparent);

  /** Sends to one member alone. */
  void send(Member recipient, PartyMessage message, @Nullable String traceparent);

  /**
   * Sends a contribution that the coordinator alone needs.
   *
   * @param others the other parties of the session, which get it only where a measurement compares
   *     with that
   */
  default void contribute(
      Member coordinator,
      Collection<Member> others,
      PartyMessage message,
      @Nullable String traceparent) {
    send(coordinator, message, traceparent);
  }

  /** The message that this party has not contributed to a session and never will. */
  static PartyMessage declined(SessionId session) {
    return PartyMessage.newBuilder()
        .setReport(
            SessionReport.newBuilder()
                .setSessionId(session.bytes())
                .setDeclined(Declined.getDefaultInstance()))
        .build();
  }
}
