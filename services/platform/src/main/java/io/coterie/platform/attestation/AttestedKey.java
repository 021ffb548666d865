package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.trust.Trust;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The facts about a key that its parties have signed, as far as a trust file names them and the
 * requester that asked for it. The coordinator can withhold them or answer with an older epoch; it
 * cannot change them.
 *
 * @param name resource name, {@code keys/{key}}
 * @param threshold parties needed to sign
 * @param parties names of the holders, in ascending order of their party ids
 * @param epoch generation of the shares
 * @param keyPublic as every holder has stored it
 * @param creation digest of the intent that created the key
 * @param intents digests of the intents that were carried out: the creation's, then every
 *     reshare's, and those of the refreshes that its attestation does not leave out. Not those of
 *     which so few parties say so that a thief of a requester's key may have made it up.
 * @param holdings its parties from the creation on, and from each reshare that its attestation
 *     shows
 */
public record AttestedKey(
    String name,
    Scheme scheme,
    int threshold,
    List<String> parties,
    int epoch,
    KeyPublic keyPublic,
    ByteString creation,
    List<ByteString> intents,
    List<Holding> holdings) {
  /** Sessions of an attestation: the creation, every reshare, a refresh. */
  public static final int MAX_COMPLETIONS = 256;

  public AttestedKey {
    parties = List.copyOf(parties);
    intents = List.copyOf(intents);
    holdings = List.copyOf(holdings);
  }

  /**
   * Verifies an answer of the coordinator.
   *
   * @param name the key that was asked for
   * @throws AttestationException saying why nothing of the answer may be believed
   * @throws IllegalArgumentException if the trust file has a requester's key that is none
   */
  public static AttestedKey of(String name, Key key, Trust trust) throws AttestationException {
    require(IntentVerifier.isKeyName(name), AttestationProblem.NAME_MALFORMED);
    require(key.getName().equals(name), AttestationProblem.NAME_OTHER);
    require(
        key.getState() == Key.State.ACTIVE, AttestationProblem.NOT_ACTIVE, key.getState().name());
    require(CompletedSession.isKnown(key), AttestationProblem.UNKNOWN_FIELD);
    List<Completion> completions = key.getAttestation().getCompletionsList();
    require(!completions.isEmpty(), AttestationProblem.NO_COMPLETION);
    require(
        completions.size() <= MAX_COMPLETIONS,
        AttestationProblem.TOO_LONG,
        "the attestation has",
        MAX_COMPLETIONS,
        "sessions");

    CompletedSession first = CompletedSession.creation(name, completions.getFirst(), trust);
    CompletedSession last = first;
    List<ByteString> intents = new ArrayList<>();
    List<Holding> holdings = new ArrayList<>();
    for (int i = 0; i < completions.size(); i++) {
      last = i == 0 ? first : last.renewal(i, completions.get(i), trust);
      Holding.of(last).ifPresent(holdings::add);
      // The parties that hold the shares since have signed it, and nobody else.
      if (holdings.getLast().reachesFloors(name, trust)) {
        intents.add(last.intent().digest());
      }
    }
    // Its first parties know the secret if they are too few, whoever has shares of it since.
    holdings.getFirst().requireFloors(name, trust);
    // Those between prove no more than intents and receipts of their time, and may be left out.
    holdings.getLast().requireFloors(name, trust);
    AttestedKey attested =
        new AttestedKey(
            name,
            last.intent().scheme(),
            last.keyPublic().getThreshold(),
            List.copyOf(last.holders().values()),
            last.keyPublic().getEpoch(),
            last.keyPublic(),
            first.intent().digest(),
            intents,
            holdings);
    attested.requireAgreed(key);
    requireField("request_id", key.getRequestId().equals(first.intent().requestId()));
    return attested;
  }

  /** Refuses an answer that says something else beside its attestation. */
  private void requireAgreed(Key key) throws AttestationException {
    requireField("scheme", key.getScheme() == scheme);
    requireField("threshold", key.getThreshold() == threshold);
    requireField("parties", key.getPartiesList().equals(parties));
    requireField("public_key", key.getPublicKey().equals(publicKey()));
    requireField("proof_of_possession", key.getProofOfPossession().equals(proofOfPossession()));
    requireField("epoch", key.getEpoch() == epoch);
    requireField("xpub", key.getXpub().equals(xpub().orElse("")));
    requireField("fingerprint", key.getFingerprint().equals(fingerprint()));
    requireField("reshare_epoch", key.getReshareEpoch() == reshareEpoch());
    requireField("origin", key.getOrigin() == origin());
    requireField("error", !key.hasError());
  }

  private static void requireField(String field, boolean agrees) throws AttestationException {
    require(agrees, AttestationProblem.FIELD_OTHER, field);
  }

  /** Where it comes from: no scheme has keys of both kinds. */
  public Key.Origin origin() {
    return scheme == Scheme.SCHEME_ED25519_EXACT ? Key.Origin.IMPORTED : Key.Origin.GENERATED;
  }

  /** The key itself, in the scheme's standard encoding. */
  public ByteString publicKey() {
    return verifyingKey(KeyTarget.SELF);
  }

  /**
   * The key that signatures for a target verify under, in the scheme's standard encoding.
   *
   * @throws IllegalArgumentException if keys of its scheme have no such target
   */
  public ByteString verifyingKey(KeyTarget target) {
    return SchemeKeys.of(scheme).verifyingKey(keyPublic, target);
  }

  /** The form from which descendants can be derived, if the scheme has any. */
  public Optional<String> xpub() {
    return SchemeKeys.of(scheme).xpub(keyPublic);
  }

  /** BLS: 96 bytes; empty for other schemes. */
  public ByteString proofOfPossession() {
    return keyPublic.getProofOfPossession();
  }

  /** Epoch that the last reshare made; 0 if the key was never reshared. */
  public int reshareEpoch() {
    return holdings.isEmpty() ? 0 : holdings.getLast().reshareEpoch();
  }

  /**
   * The parties from a reshare on.
   *
   * @param reshareEpoch that it made; 0: from the creation on
   * @throws AttestationException if the attestation does not show it, or so few parties that a
   *     thief of a requester's key may have made it up
   */
  Holding holding(int reshareEpoch, Trust trust) throws AttestationException {
    for (Holding holding : holdings) {
      if (holding.reshareEpoch() == reshareEpoch) {
        require(holding.reachesFloors(name, trust), AttestationProblem.RESHARE_FLOOR, reshareEpoch);
        return holding;
      }
    }
    throw new AttestationException(AttestationProblem.RESHARE_UNKNOWN, reshareEpoch);
  }

  /** See {@link KeyFingerprint}; 16 bytes. */
  public ByteString fingerprint() {
    return KeyFingerprint.of(keyPublic);
  }
}
