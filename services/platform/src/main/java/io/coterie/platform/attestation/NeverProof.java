package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.trust.Trust;
import java.util.ArrayList;
import java.util.List;

/**
 * The holders of a key that have said, with a receipt each, that they never sign anything under a
 * request id. docs/threat-model.md says how much that proves.
 *
 * @param never names of those that say so, in ascending order of their party ids
 * @param holders number of all parties that held the key when the request was made, n
 * @param needed how many must say so, by the trust file
 */
public record NeverProof(List<String> never, int holders, int needed) {

  /**
   * The request that is said to be signed by nobody.
   *
   * @param reshareEpoch that its intent names
   */
  public record Request(String requester, String requestId, int reshareEpoch) {

    /** The request as receipts of the key's parties name it. */
    Receipts.Subject with(AttestedKey key, Trust trust) {
      return new Receipts.Subject(
          trust.roster().installation(),
          key.name(),
          key.fingerprint(),
          reshareEpoch,
          requester,
          requestId);
    }
  }

  public NeverProof {
    never = List.copyOf(never);
  }

  /**
   * Verifies the receipts of an answer.
   *
   * @throws AttestationException if one of them is not a holder's own word on that request
   */
  public static NeverProof of(
      AttestedKey key, Request request, List<SignedReceipt> receipts, Trust trust)
      throws AttestationException {
    Holding holding = key.holding(request.reshareEpoch(), trust);
    Receipts.Subject subject = request.with(key, trust);
    List<String> never = new ArrayList<>();
    int previous = 0;
    for (SignedReceipt envelope : receipts) {
      Receipt receipt =
          Receipts.read(envelope)
              .orElseThrow(() -> new AttestationException(AttestationProblem.RECEIPT_MALFORMED));
      int party = receipt.getParty();
      require(party > previous, AttestationProblem.RECEIPT_ORDER);
      previous = party;
      String name = holding.holders().get(party);
      if (name == null) {
        throw new AttestationException(AttestationProblem.RECEIPT_STRANGER, party);
      }
      require(
          receipt.equals(Receipts.about(Receipt.Kind.NEVER, subject, party).build()),
          AttestationProblem.RECEIPT_OTHER,
          name);
      require(
          Receipts.isSigned(envelope, receipt, trust.roster()),
          AttestationProblem.RECEIPT_SIGNATURE,
          name);
      never.add(name);
    }
    int holders = holding.holders().size();
    return new NeverProof(never, holders, trust.receiptsNeeded(holders, holding.threshold()));
  }

  /**
   * Whether nothing was signed, and nothing ever will be: the holders that have not said so are too
   * few to sign, together with those that the trust file lets lie.
   */
  public boolean holds() {
    return never.size() >= needed;
  }

  /** Whether the holders are too few to prove it for any request. */
  public boolean isImpossible() {
    return needed > holders;
  }
}
