package io.coterie.cli.signing;

import io.coterie.cli.key.AttestedKeys;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.NeverProof;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.trust.Trust;

/**
 * Judges by the trust file whether receipts prove that nothing was signed. The coordinator's word
 * for it counts for nothing.
 */
record ReceiptCheck(AttestedKey key, Trust trust) {

  /**
   * The receipts of an answer, verified.
   *
   * @throws io.coterie.cli.terminal.CliException if one is not a holder's own word on that request
   */
  NeverProof proof(Signing answer, NeverProof.Request request) {
    try {
      return NeverProof.of(key, request, answer.getReceiptsList(), trust);
    } catch (AttestationException e) {
      throw AttestedKeys.refused(key.name(), "has no such signing: " + e.getMessage());
    }
  }

  /** An answer without a signature, in the state that its receipts prove. */
  Signing judged(Signing answer, NeverProof.Request request) {
    return switch (answer.getState()) {
      case NOT_SIGNED, UNKNOWN ->
          answer.toBuilder()
              .setState(
                  proof(answer, request).holds() ? Signing.State.NOT_SIGNED : Signing.State.UNKNOWN)
              .build();
      default -> answer.toBuilder().clearReceipts().build();
    };
  }
}
