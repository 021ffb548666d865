package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Completed;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * The signatures of parties that they have stored their ends of sessions for one intent, and that
 * they use their shares. Clients believe a key by them, so a report without them counts for
 * nothing. Not thread-safe.
 */
final class CompletionEvidence {
  /** Signatures of a certificate: of parties that hold shares, and of others that dealt them. */
  private static final int MAX_SIGNATURES = 2 * IntentVerifier.MAX_PARTIES;

  private final Roster roster;
  private final SignedIntent intent;
  private final ByteString intentDigest;
  private final Set<Integer> holders;

  /** The latest of each party that says that it has stored a share. */
  private final Map<Integer, Shown> stored = new HashMap<>();

  /** The latest of each party that says that it uses its share: its own, and those it shows. */
  private final Map<Integer, Shown> used = new HashMap<>();

  private record Shown(
      ByteString session, KeyPublic keyPublic, Map<Integer, EvidenceSignature> signatures) {}

  /**
   * @param holders ids of the parties that hold a share when the intent is served
   */
  CompletionEvidence(Roster roster, SignedIntent intent, List<Integer> holders) {
    this.roster = roster;
    this.intent = intent;
    this.intentDigest = IntentVerifier.digest(intent.getPayload());
    this.holders = Set.copyOf(holders);
  }

  /**
   * Takes the signatures of a report.
   *
   * @return false, and nothing taken, if its sender has not signed what it says, or says that it
   *     uses its share and does not show that all have stored theirs
   */
  boolean add(Member sender, ByteString session, Completed completed) {
    if (session.size() != SessionId.LENGTH
        || !completed.getIntentDigest().equals(intentDigest)
        || completed.getCertificateCount() > MAX_SIGNATURES) {
      return false;
    }
    KeyPublic keyPublic = completed.getKeyPublic();
    CompletedStatement storing =
        CompletedStatement.stored(roster.installation(), session, keyPublic, intentDigest);
    int party = sender.partyId();
    ByteString own = completed.getEvidenceSignature();
    if (!storing.isSignedBy(party, own, roster)) {
      return false;
    }
    Map<Integer, EvidenceSignature> signatures = new HashMap<>();
    keep(signatures, signature(party, own, false));
    if (!completed.getActive()) {
      stored.put(party, new Shown(session, keyPublic, signatures));
      return true;
    }
    for (EvidenceSignature each : completed.getCertificateList()) {
      // A party that only dealt is not needed, and may be unknown by now.
      if (holders.contains(each.getParty())
          && storing.isSignedBy(each.getParty(), each.getSignature(), roster)) {
        keep(signatures, signature(each.getParty(), each.getSignature(), false));
      }
    }
    ByteString use = completed.getUseSignature();
    if (!signatures.keySet().containsAll(holders)
        || !storing.inUse().isSignedBy(party, use, roster)) {
      return false;
    }
    keep(signatures, signature(party, use, true));
    used.put(party, new Shown(session, keyPublic, signatures));
    return true;
  }

  /** Keeps one statement of each holder: "uses its share" rather than "has stored it". */
  private void keep(Map<Integer, EvidenceSignature> signatures, EvidenceSignature signature) {
    if (holders.contains(signature.getParty())) {
      signatures.merge(
          signature.getParty(), signature, (known, next) -> known.getUsed() ? known : next);
    }
  }

  private static EvidenceSignature signature(int party, ByteString signature, boolean used) {
    return EvidenceSignature.newBuilder()
        .setParty(party)
        .setSignature(signature)
        .setUsed(used)
        .build();
  }

  /** Whether all holders have signed, and so many of them that they use their shares. */
  boolean suffices(ByteString session, KeyPublic keyPublic, int users) {
    List<EvidenceSignature> signatures = of(session, keyPublic).getSignaturesList();
    return signatures.size() == holders.size()
        && signatures.stream().filter(EvidenceSignature::getUsed).count() >= users;
  }

  /** The word of the holders, as far as it is known, for a session that made these public data. */
  Completion of(ByteString session, KeyPublic keyPublic) {
    Map<Integer, EvidenceSignature> signatures = new TreeMap<>();
    Stream.concat(stored.values().stream(), used.values().stream())
        .filter(shown -> shown.session().equals(session) && shown.keyPublic().equals(keyPublic))
        .flatMap(shown -> shown.signatures().values().stream())
        .forEach(signature -> keep(signatures, signature));
    return Completion.newBuilder()
        .setSessionId(session)
        .setSignedIntent(intent)
        .setKeyPublic(keyPublic.toByteString())
        .addAllSignatures(signatures.values())
        .build();
  }
}
