package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.trust.Trust;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeSet;

/**
 * A session that made shares: a requester of the trust asked for it, and every party that holds a
 * share since has signed that it stored it.
 *
 * @param key resource name
 * @param intent asked for it
 * @param keyPublic as the parties have stored it
 * @param holders names by party id
 */
record CompletedSession(
    String key, VerifiedIntent intent, KeyPublic keyPublic, SortedMap<Integer, String> holders) {
  /** One of each party of a key. */
  static final int MAX_SIGNATURES = IntentVerifier.MAX_PARTIES;

  /** Twenty shares of the longest scheme take less than half. */
  static final int MAX_KEY_PUBLIC = 4096;

  private static final int FIRST_EPOCH = 1;

  /** Verifies the session that made a key. */
  static CompletedSession creation(String key, Completion completion, Trust trust)
      throws AttestationException {
    String place = "its creation";
    TrustedIntent asked = TrustedIntent.of(key, place, completion.getSignedIntent(), trust);
    if (!(asked.intent() instanceof VerifiedIntent.KeyCreation creation)) {
      throw new AttestationException(AttestationProblem.INTENT_KIND, place);
    }
    asked.requireFloors(creation.threshold(), creation.parties().size());
    Set<Integer> signers = signers(key, place, completion, FIRST_EPOCH, creation, trust);
    KeyPublic keyPublic = keyPublic(key, place, completion, FIRST_EPOCH, creation);
    requireThreshold(place, keyPublic, creation.threshold());
    SortedMap<Integer, String> holders =
        Holders.of(place, creation.parties(), ids(keyPublic), trust);
    requireSigned(place, holders, signers);
    return new CompletedSession(key, creation, keyPublic, holders);
  }

  /**
   * Verifies a session that gave the key new shares later. Refreshes between this one and that may
   * have been left out: they change neither parties nor threshold.
   *
   * @param number 1 for the first after the creation
   */
  CompletedSession renewal(int number, Completion completion, Trust trust)
      throws AttestationException {
    String place = "its renewal " + number;
    TrustedIntent asked = TrustedIntent.of(key, place, completion.getSignedIntent(), trust);
    if (!(asked.intent() instanceof VerifiedIntent.NextEpoch next)) {
      throw new AttestationException(AttestationProblem.INTENT_KIND, place);
    }
    require(next.scheme() == intent.scheme(), AttestationProblem.SCHEME_CHANGED, place);
    require(next.epoch() >= keyPublic.getEpoch(), AttestationProblem.EPOCH_ORDER, place);
    int threshold = keyPublic.getThreshold();
    Collection<String> parties = holders.values();
    if (next instanceof VerifiedIntent.KeyRefresh refresh) {
      require(
          refresh.keyFingerprint().equals(KeyFingerprint.of(keyPublic)),
          AttestationProblem.INTENT_PUBLIC_KEY_OTHER,
          place);
    }
    if (next instanceof VerifiedIntent.KeyReshare reshare) {
      require(
          reshare.publicKey().equals(keyPublic.getPublicKey()),
          AttestationProblem.INTENT_PUBLIC_KEY_OTHER,
          place);
      threshold = reshare.threshold();
      parties = reshare.parties();
      asked.requireFloors(threshold, parties.size());
    }

    int epoch = next.epoch() + 1;
    Set<Integer> signers = signers(key, place, completion, epoch, next, trust);
    KeyPublic made = keyPublic(key, place, completion, epoch, next);
    require(
        made.getPublicKey().equals(keyPublic.getPublicKey())
            && made.getChainCode().equals(keyPublic.getChainCode()),
        AttestationProblem.PUBLIC_KEY_CHANGED,
        place);
    requireThreshold(place, made, threshold);
    SortedMap<Integer, String> after = Holders.of(place, parties, ids(made), trust);
    requireSigned(place, after, signers);
    return new CompletedSession(key, next, made, after);
  }

  /**
   * The parties that have signed the end of a session.
   *
   * @throws AttestationException if any of the signatures is not that party's own
   */
  private static Set<Integer> signers(
      String key,
      String place,
      Completion completion,
      int epoch,
      VerifiedIntent intent,
      Trust trust)
      throws AttestationException {
    require(
        completion.getSessionId().size() == SessionId.LENGTH, AttestationProblem.SESSION_ID, place);
    List<EvidenceSignature> signatures = completion.getSignaturesList();
    require(
        signatures.size() <= MAX_SIGNATURES,
        AttestationProblem.TOO_LONG,
        place + " has",
        MAX_SIGNATURES,
        "signatures");
    require(
        completion.getKeyPublic().size() <= MAX_KEY_PUBLIC,
        AttestationProblem.TOO_LONG,
        "the public data of " + place + " have",
        MAX_KEY_PUBLIC,
        "bytes");
    CompletedStatement statement =
        new CompletedStatement(
            trust.roster().installation(),
            completion.getSessionId(),
            key,
            epoch,
            intent.digest(),
            completion.getKeyPublic(),
            // A new key that was only stored may have given way to another one of its name.
            intent instanceof VerifiedIntent.KeyCreation);
    Set<Integer> signers = new HashSet<>();
    int previous = 0;
    for (EvidenceSignature signature : signatures) {
      int party = signature.getParty();
      require(party > previous, AttestationProblem.SIGNATURE_ORDER, place);
      require(
          !trust.roster().evidenceKeys(party, epoch).isEmpty(),
          AttestationProblem.SIGNATURE_STRANGER,
          party,
          place);
      require(
          statement.isSignedBy(party, signature.getSignature(), trust.roster()),
          AttestationProblem.SIGNATURE_INVALID,
          party,
          place);
      signers.add(party);
      previous = party;
    }
    return signers;
  }

  private static KeyPublic keyPublic(
      String key, String place, Completion completion, int epoch, VerifiedIntent intent)
      throws AttestationException {
    KeyPublic decoded;
    try {
      decoded = KeyPublic.parseFrom(completion.getKeyPublic());
    } catch (InvalidProtocolBufferException e) {
      throw new AttestationException(AttestationProblem.KEY_PUBLIC_MALFORMED, place);
    }
    require(AttestedKey.isKnown(decoded), AttestationProblem.UNKNOWN_FIELD);
    require(decoded.getKeyId().equals(key), AttestationProblem.KEY_ID_OTHER, place);
    require(decoded.getEpoch() == epoch, AttestationProblem.EPOCH_OTHER, place);
    require(
        SchemeKeys.of(intent.scheme()).fit(decoded),
        AttestationProblem.KEY_PUBLIC_MALFORMED,
        place);
    return decoded;
  }

  private static void requireThreshold(String place, KeyPublic made, int threshold)
      throws AttestationException {
    require(made.getThreshold() == threshold, AttestationProblem.THRESHOLD_OTHER, place);
  }

  /** The parties with a verification share; as many as there are shares, or none fit. */
  private static List<Integer> ids(KeyPublic keyPublic) {
    return keyPublic.getVerificationSharesList().stream().map(VerificationShare::getParty).toList();
  }

  private static void requireSigned(
      String place, SortedMap<Integer, String> holders, Set<Integer> signers)
      throws AttestationException {
    for (var holder : holders.entrySet()) {
      require(
          signers.contains(holder.getKey()),
          AttestationProblem.SIGNATURE_MISSING,
          holder.getValue(),
          place);
    }
    for (int party : new TreeSet<>(signers)) {
      require(holders.containsKey(party), AttestationProblem.SIGNATURE_STRANGER, party, place);
    }
  }
}
