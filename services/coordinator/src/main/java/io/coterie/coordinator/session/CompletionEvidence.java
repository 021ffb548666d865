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
import java.util.TreeMap;

/**
 * The signatures of parties that they have stored their ends of a session for one intent. Clients
 * believe a key by them, so a report without them counts for nothing. Not thread-safe.
 */
final class CompletionEvidence {
  /** Signatures of a certificate: of parties that hold shares, and of others that dealt them. */
  private static final int MAX_SIGNATURES = 2 * IntentVerifier.MAX_PARTIES;

  private final Roster roster;
  private final SignedIntent intent;
  private final ByteString intentDigest;
  private final List<Integer> holders;

  /** The latest of each party: its own signature, or all that it shows. */
  private final Map<Integer, Shown> latest = new HashMap<>();

  private record Shown(
      ByteString session, KeyPublic keyPublic, TreeMap<Integer, ByteString> signatures) {}

  /** Clients believe a new key once all use it, and other shares once all have stored them. */
  private final boolean newKey;

  /**
   * @param holders ids of the parties that hold a share when the intent is served
   */
  CompletionEvidence(Roster roster, SignedIntent intent, List<Integer> holders, boolean newKey) {
    this.roster = roster;
    this.intent = intent;
    this.intentDigest = IntentVerifier.digest(intent.getPayload());
    this.holders = holders;
    this.newKey = newKey;
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
    CompletedStatement statement = statement(session, keyPublic, false);
    ByteString own = completed.getEvidenceSignature();
    if (!statement.isSignedBy(sender.partyId(), own, roster)) {
      return false;
    }
    TreeMap<Integer, ByteString> signatures = new TreeMap<>();
    for (EvidenceSignature each : completed.getCertificateList()) {
      // A party that only dealt is not needed, and may be unknown by now.
      if (holders.contains(each.getParty())
          && statement.isSignedBy(each.getParty(), each.getSignature(), roster)) {
        signatures.put(each.getParty(), each.getSignature());
      }
    }
    if (completed.getActive() && !signatures.keySet().containsAll(holders)) {
      return false;
    }
    ByteString use = completed.getUseSignature();
    if (completed.getActive()
        && !statement(session, keyPublic, true).isSignedBy(sender.partyId(), use, roster)) {
      return false;
    }
    if (newKey) {
      if (!completed.getActive()) {
        return true;
      }
      signatures.clear();
    }
    if (holders.contains(sender.partyId())) {
      signatures.put(sender.partyId(), newKey ? use : own);
    }
    latest.put(sender.partyId(), new Shown(session, keyPublic, signatures));
    return true;
  }

  /** Whether it is the word of all holders. */
  boolean isComplete(ByteString session, KeyPublic keyPublic) {
    return of(session, keyPublic).getSignaturesCount() == holders.size();
  }

  private CompletedStatement statement(ByteString session, KeyPublic keyPublic, boolean used) {
    return new CompletedStatement(
        roster.installation(),
        session,
        keyPublic.getKeyId(),
        keyPublic.getEpoch(),
        intentDigest,
        keyPublic.toByteString(),
        used);
  }

  /** The word of the holders, as far as it is known, for a session that made these public data. */
  Completion of(ByteString session, KeyPublic keyPublic) {
    TreeMap<Integer, ByteString> signatures = new TreeMap<>();
    for (Shown shown : latest.values()) {
      if (shown.session().equals(session) && shown.keyPublic().equals(keyPublic)) {
        signatures.putAll(shown.signatures());
      }
    }
    Completion.Builder completion =
        Completion.newBuilder()
            .setSessionId(session)
            .setSignedIntent(intent)
            .setKeyPublic(keyPublic.toByteString());
    signatures.forEach(
        (party, signature) ->
            completion.addSignatures(
                EvidenceSignature.newBuilder().setParty(party).setSignature(signature)));
    return completion.build();
  }
}
