package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;
import java.security.PublicKey;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * An intent about a key whose requester the trust file allows to ask for it. Whether it has expired
 * does not matter: the parties have carried it out.
 *
 * @param place the session that it asked for, in words
 */
record TrustedIntent(String place, VerifiedIntent intent, Trust.Requester requester) {
  /** A name, a purpose and twenty parties take less than half. */
  static final int MAX_PAYLOAD = 8192;

  static TrustedIntent of(String key, String place, SignedIntent signed, Trust trust)
      throws AttestationException {
    require(
        signed.getPayload().size() <= MAX_PAYLOAD,
        AttestationProblem.TOO_LONG,
        "the intent of " + place + " has",
        MAX_PAYLOAD,
        "bytes");
    VerifiedIntent intent = verify(place, signed, trust);
    Trust.Requester requester = trust.requester(intent.requester()).orElseThrow();
    require(
        intent.installation().equals(trust.roster().installation()),
        AttestationProblem.INTENT_INSTALLATION_OTHER,
        place);
    require(intent.key().equals(key), AttestationProblem.INTENT_KEY_OTHER, place);
    require(
        requester.mayAskFor(key),
        AttestationProblem.REQUESTER_NOT_ALLOWED,
        requester.name(),
        place);
    return new TrustedIntent(place, intent, requester);
  }

  /** Verifies with one after the other of the keys that the requester has, or has had. */
  private static VerifiedIntent verify(String place, SignedIntent signed, Trust trust)
      throws AttestationException {
    String name = signed.getSignaturesCount() == 1 ? signed.getSignatures(0).getKeyid() : "";
    List<byte[]> keys = trust.requester(name).map(Trust.Requester::publicKeys).orElse(List.of());
    require(!keys.isEmpty(), AttestationProblem.REQUESTER_UNKNOWN, place);
    for (byte[] key : keys) {
      PublicKey publicKey = RequesterKeys.publicKey(key);
      try {
        return IntentVerifier.verify(signed, keyid -> Optional.of(publicKey));
      } catch (IntentException e) {
        require(
            e.problem() == IntentProblem.SIGNATURE_INVALID,
            AttestationProblem.INTENT_INVALID,
            place,
            e.problem().text());
      }
    }
    throw new AttestationException(AttestationProblem.INTENT_SIGNATURE, name, place);
  }

  /** Refuses a change of keys that the trust file does not let the requester ask for. */
  void requireRight(KeyRight right) throws AttestationException {
    require(
        requester.rights().contains(right),
        AttestationProblem.REQUESTER_WITHOUT_RIGHT,
        requester.name(),
        right.name().toLowerCase(Locale.ROOT),
        place);
  }

  /**
   * Refuses a key that fewer parties can use, or hold, than the trust file demands.
   *
   * @param place the session that made the shares, in words
   */
  static void requireFloors(String place, int threshold, int parties, Trust.Requester demanding)
      throws AttestationException {
    require(
        threshold >= demanding.minThreshold(),
        AttestationProblem.THRESHOLD_FLOOR,
        place,
        demanding.minThreshold(),
        demanding.name());
    require(
        parties >= demanding.minParties(),
        AttestationProblem.PARTIES_FLOOR,
        place,
        demanding.minParties(),
        demanding.name());
  }
}
