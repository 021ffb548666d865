package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

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

  /**
   * Verifies the session that made a key. Whether it reaches the floors of its requester is for
   * {@link Holding#requireFloors} to say.
   */
  static CompletedSession creation(String key, Completion completion, Trust trust)
      throws AttestationException {
    String place = "its creation";
    TrustedIntent asked = TrustedIntent.of(key, place, completion.getSignedIntent(), trust);
    if (!(asked.intent() instanceof VerifiedIntent.NewKey creation)) {
      throw new AttestationException(AttestationProblem.INTENT_KIND, place);
    }
    VerifiedIntent.KeyImport imported =
        creation instanceof VerifiedIntent.KeyImport taken ? taken : null;
    asked.requireRight(imported == null ? KeyRight.CREATE : KeyRight.IMPORT);
    // A generated key has no prefix, so there are no exact nonces for it.
    require(
        (imported != null) == (creation.scheme() == Scheme.SCHEME_ED25519_EXACT),
        AttestationProblem.INTENT_KIND,
        place);
    Map<Integer, Boolean> signers = signers(key, place, completion, FIRST_EPOCH, creation, trust);
    KeyPublic keyPublic = keyPublic(key, place, completion, FIRST_EPOCH, creation);
    require(
        imported == null || imported.publicKey().equals(keyPublic.getPublicKey()),
        AttestationProblem.INTENT_PUBLIC_KEY_OTHER,
        place);
    requireThreshold(place, keyPublic, creation.threshold());
    SortedMap<Integer, String> holders =
        Holders.of(place, creation.parties(), ids(keyPublic), trust);
    // A share that is only stored may have given way to one of another key of that name.
    requireSigned(place, holders, signers, holders.size());
    return new CompletedSession(key, creation, keyPublic, holders);
  }

  /**
   * Verifies a session that gave the key new shares later. Refreshes between this one and that may
   * have been left out: they change neither parties nor threshold. Whether those of a reshare reach
   * the floors is for {@link Holding#requireFloors} to say.
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
      asked.requireRight(KeyRight.REFRESH);
      require(
          refresh.keyFingerprint().equals(KeyFingerprint.of(keyPublic)),
          AttestationProblem.INTENT_PUBLIC_KEY_OTHER,
          place);
    }
    if (next instanceof VerifiedIntent.KeyReshare reshare) {
      asked.requireRight(KeyRight.RESHARE);
      require(
          reshare.publicKey().equals(keyPublic.getPublicKey()),
          AttestationProblem.INTENT_PUBLIC_KEY_OTHER,
          place);
      threshold = reshare.threshold();
      parties = reshare.parties();
    }

    int epoch = next.epoch() + 1;
    Map<Integer, Boolean> signers = signers(key, place, completion, epoch, next, trust);
    KeyPublic made = keyPublic(key, place, completion, epoch, next);
    require(
        made.getPublicKey().equals(keyPublic.getPublicKey())
            && made.getChainCode().equals(keyPublic.getChainCode()),
        AttestationProblem.PUBLIC_KEY_CHANGED,
        place);
    requireThreshold(place, made, threshold);
    SortedMap<Integer, String> after = Holders.of(place, parties, ids(made), trust);
    // One of them is honest, so all holders have stored theirs, and the old ones go.
    requireSigned(place, after, signers, threshold);
    return new CompletedSession(key, next, made, after);
  }

  /**
   * The parties that have signed the end of a session, and whether each says that it uses its
   * share.
   *
   * @throws AttestationException if any of the signatures is not that party's own
   */
  private static Map<Integer, Boolean> signers(
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
            false);
    CompletedStatement use = statement.inUse();
    Map<Integer, Boolean> signers = new TreeMap<>();
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
          (signature.getUsed() ? use : statement)
              .isSignedBy(party, signature.getSignature(), trust.roster()),
          AttestationProblem.SIGNATURE_INVALID,
          party,
          place);
      signers.put(party, signature.getUsed());
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
    require(isKnown(decoded), AttestationProblem.UNKNOWN_FIELD);
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
      String place, SortedMap<Integer, String> holders, Map<Integer, Boolean> signers, int users)
      throws AttestationException {
    for (var holder : holders.entrySet()) {
      require(
          signers.containsKey(holder.getKey()),
          AttestationProblem.SIGNATURE_MISSING,
          holder.getValue(),
          place);
    }
    for (int party : signers.keySet()) {
      require(holders.containsKey(party), AttestationProblem.SIGNATURE_STRANGER, party, place);
    }
    require(
        signers.values().stream().filter(used -> used).count() >= users,
        AttestationProblem.USE_MISSING,
        users,
        place);
  }

  /** Whether a message and all in it have only fields that this version knows. */
  static boolean isKnown(Message message) {
    return message.getUnknownFields().isEmpty()
        && message.getAllFields().values().stream()
            .flatMap(value -> value instanceof List<?> list ? list.stream() : Stream.of(value))
            .allMatch(value -> !(value instanceof Message inner) || isKnown(inner));
  }
}
