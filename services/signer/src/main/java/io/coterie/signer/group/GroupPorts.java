package io.coterie.signer.group;

import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.order.Holds;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.AuditLog;
import io.coterie.signer.party.GroupCore;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import java.security.SecureRandom;
import java.time.InstantSource;
import java.util.function.Predicate;

/**
 * The means that groups take from outside the domain.
 *
 * @param network to the other members
 * @param policy decides what this party does
 * @param memory of this party
 * @param sessions computes the rounds
 * @param calls computes everything else
 * @param audit keeps what this party did
 * @param telemetry measures it
 * @param clock tells the time of day
 * @param random seals shares of openings
 */
public record GroupPorts(
    PartyNetwork network,
    PolicyGate policy,
    Memory memory,
    SessionLimits limits,
    ProtocolCore sessions,
    GroupCore calls,
    AuditLog audit,
    GroupTelemetry telemetry,
    InstantSource clock,
    SecureRandom random) {

  /**
   * The memory of this party, on its disk.
   *
   * @param groups that it has made
   * @param tickets that it has bound as an issuer
   * @param claims sessions and requests that were claimed
   * @param disk how much of it each account may take
   * @param holds of its operator
   * @param mayHaveForgotten whether a request of this id may have been claimed here before the
   *     store went back, and nobody has been asked yet
   */
  public record Memory(
      GroupStore groups,
      TicketStore tickets,
      ClaimLedger claims,
      DiskShares disk,
      Holds holds,
      Predicate<String> mayHaveForgotten) {}
}
