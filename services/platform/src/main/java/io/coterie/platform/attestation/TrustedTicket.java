package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;

/**
 * Tickets of a group's epoch whose requester the trust file lets say who the members are. A
 * registry that shows a member without such a ticket names nobody.
 */
public final class TrustedTicket {
  private TrustedTicket() {}

  /**
   * Verifies who has given a ticket.
   *
   * @param group resource name
   * @param signed as a registry shows it, not believed otherwise
   * @throws AttestationException saying what is not to be believed
   */
  public static VerifiedIntent.Ticket of(String group, int epoch, SignedIntent signed, Trust trust)
      throws AttestationException {
    String place = "the ticket";
    TrustedIntent asked = TrustedIntent.of(group, place, signed, trust);
    if (!(asked.intent() instanceof VerifiedIntent.Ticket ticket)) {
      throw new AttestationException(AttestationProblem.INTENT_KIND, place);
    }
    asked.requireRight(KeyRight.CREATE);
    require(ticket.epoch() == epoch, AttestationProblem.GROUP_EPOCH_OTHER, place);
    return ticket;
  }
}
