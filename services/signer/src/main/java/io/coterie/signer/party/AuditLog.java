package io.coterie.signer.party;

import io.coterie.platform.audit.AuditEvent;

/** The audit trail of this party. */
@FunctionalInterface
public interface AuditLog {
  /** Action of the event that a requester, its actor, was given a receipt. */
  String RECEIPT = "receipt.give";

  /**
   * Records an event soon: it rides on the next write that must be on disk, or goes alone a moment
   * later. Events are kept in the order given.
   */
  void record(AuditEvent event);
}
