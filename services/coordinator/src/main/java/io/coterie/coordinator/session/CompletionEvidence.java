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
import java.util.stream.Stream;

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

  /** The latest of each party that says that it has stored a share. */
  private final Map<Integer, Shown> stored = new HashMap<>();

  /** The latest of each party that says that it uses its share: the signatures of all holders. */
  private final Map<Integer, Shown> used = new HashMap<>();

  private record Shown(
      ByteString session, KeyPublic keyPublic, TreeMap<Integer, ByteString> signatures) {}

  /**
   * @param holders ids of the parties that hold a share when the intent is served
   */
  CompletionEvidence(Roster roster, SignedIntent intent, List<Integer> holders) {
    this.roster = roster;
    this.intent = intent;
    this.intentDigest = IntentVerifier.digest(intent.getPayload());
    this.holders = holders;
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
    CompletedStatement statement =
        new CompletedStatement(
            roster.installation(),
            session,
            keyPublic.getKeyId(),
            keyPublic.getEpoch(),
            intentDigest,
            keyPublic.toByteString());
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
    if (holders.contains(sender.partyId())) {
      signatures.put(sender.partyId(), own);
    }
    (completed.getActive() ? used : stored)
        .put(sender.partyId(), new Shown(session, keyPublic, signatures));
    return true;
  }

  /** The word of the holders, as far as it is known, for a session that made these public data. */
  Completion of(ByteString session, KeyPublic keyPublic) {
    TreeMap<Integer, ByteString> signatures = new TreeMap<>();
    Stream.concat(stored.values().stream(), used.values().stream())
        .filter(shown -> shown.session().equals(session) && shown.keyPublic().equals(keyPublic))
        .forEach(shown -> signatures.putAll(shown.signatures()));
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
