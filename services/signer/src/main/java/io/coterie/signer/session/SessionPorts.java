package io.coterie.signer.session;

import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ExactNonces;
import io.coterie.signer.claim.ShownClaims;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.Holds;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.party.AuditLog;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.share.KeyShareStore;
import java.time.InstantSource;

/**
 * The means that sessions take from outside the domain. Each component is one seam at which an
 * adapter, or a fake of it, is put in.
 *
 * @param network to the other members
 * @param policy decides what this party signs
 * @param approvals counts the approvals that a requester's signatures need
 * @param ledgers the memory of this party
 * @param core computes the rounds
 * @param audit keeps what this party did
 * @param telemetry measures it
 * @param clock tells the time of day
 */
public record SessionPorts(
    PartyNetwork network,
    PolicyGate policy,
    ApprovalGate approvals,
    Ledgers ledgers,
    ProtocolCore core,
    AuditLog audit,
    SessionTelemetry telemetry,
    InstantSource clock) {

  /** The means of a party that keeps no group. */
  public SessionPorts(
      PartyNetwork network,
      PolicyGate policy,
      Ledgers ledgers,
      ProtocolCore core,
      AuditLog audit,
      SessionTelemetry telemetry,
      InstantSource clock) {
    this(network, policy, ApprovalGate.WITHOUT_GROUPS, ledgers, core, audit, telemetry, clock);
  }

  /**
   * The memory of this party, on its disk.
   *
   * @param claims sessions and requests that were claimed
   * @param shares of keys, and the parties excluded from them
   * @param shownClaims how far the ledgers of others have come
   * @param holds of its operator
   * @param exactNonces that this party has signed under with imported keys
   */
  public record Ledgers(
      ClaimLedger claims,
      KeyShareStore shares,
      ShownClaims shownClaims,
      Holds holds,
      ExactNonces exactNonces) {}
}
