package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * The tickets that this issuer has bound, and its members, on its disk. Every stage completes once
 * the disk has it, and fails if the store did; then nothing has changed.
 */
public interface TicketStore {

  /** How a member was stored. */
  enum Registration {
    /** It is the ticket's. */
    STORED,
    /** The ticket has a member. */
    KNOWN,
    /** Another member has its point. */
    POINT_TAKEN
  }

  /** A ticket of an epoch of a group. */
  Optional<TicketRecord> find(String group, int epoch, ByteString ticket);

  /** The ticket of an identity in an epoch of a group: there is one at most. */
  Optional<TicketRecord> ofIdentity(String group, int epoch, ByteString identity);

  /**
   * Tickets of an epoch of a group that have a member, in the order of their names.
   *
   * @param after name of the last one before; empty for the first
   */
  List<TicketRecord> registered(String group, int epoch, ByteString after, int limit);

  /** How many members an epoch of a group has here. */
  int members(String group, int epoch);

  /**
   * Binds a ticket and its identity to an application, for ever.
   *
   * @param bound without a member
   * @param requester for whose keys' disk it counts
   * @return false, and nothing is bound, if the ticket or the identity is
   */
  CompletionStage<Boolean> bind(TicketRecord bound, String requester, AuditEvent made);

  /** Keeps the member that came of a ticket, once. No two members of an epoch have one point. */
  CompletionStage<Registration> register(
      TicketRecord ticket, TicketRecord.Member member, AuditEvent made);

  /**
   * Counts a run of the join.
   *
   * @param ticket as it was read, with its member
   * @param counted the member with the run
   * @return false, and nothing is counted, if another run was counted since the ticket was read
   */
  CompletionStage<Boolean> count(TicketRecord ticket, TicketRecord.Member counted, AuditEvent made);
}
