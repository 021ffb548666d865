package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.SessionReport;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.Signature;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Evidence keys of scripted parties of the installation {@code test}, and what they sign. */
public final class TestEvidence {
  private static final Map<Integer, KeyPair> KEYS = new ConcurrentHashMap<>();

  private TestEvidence() {}

  private static KeyPair key(int party) {
    return KEYS.computeIfAbsent(
        party,
        _ -> {
          try {
            return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
          } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
          }
        });
  }

  /** The public key of a party, as a roster has it. */
  public static byte[] publicKey(int party) {
    byte[] encoded = key(party).getPublic().getEncoded();
    return Arrays.copyOfRange(encoded, encoded.length - 32, encoded.length);
  }

  /** A party's signature under any statement. */
  public static ByteString sign(int party, ByteString statement) {
    try {
      Signature signer = Signature.getInstance("Ed25519");
      signer.initSign(key(party).getPrivate());
      signer.update("coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII));
      signer.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
      return ByteString.copyFrom(signer.sign());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A receipt as a party signs it. */
  public static SignedReceipt receipt(int party, Receipt.Builder receipt) {
    Receipt content = receipt.build();
    return Receipts.signed(content, sign(party, Receipts.statement(content)));
  }

  /** A party's signature that it has stored its end of a session. */
  public static ByteString stored(
      int party, ByteString session, KeyPublic keyPublic, SignedIntent intent) {
    return sign(party, session, keyPublic, intent, false);
  }

  /** A party's signature that it uses its share. */
  public static ByteString use(
      int party, ByteString session, KeyPublic keyPublic, SignedIntent intent) {
    return sign(party, session, keyPublic, intent, true);
  }

  private static ByteString sign(
      int party, ByteString session, KeyPublic keyPublic, SignedIntent intent, boolean used) {
    CompletedStatement stored =
        CompletedStatement.stored(
            "test", session, keyPublic, IntentVerifier.digest(intent.getPayload()));
    return sign(party, (used ? stored.inUse() : stored).of(party));
  }

  /** A party's report that says so. */
  public static SessionReport.Builder completed(
      int party, ByteString session, KeyPublic keyPublic, SignedIntent intent) {
    return SessionReport.newBuilder()
        .setSessionId(session)
        .setCompleted(
            Completed.newBuilder()
                .setKeyPublic(keyPublic)
                .setIntentDigest(IntentVerifier.digest(intent.getPayload()))
                .setEvidenceSignature(stored(party, session, keyPublic, intent)));
  }

  /** A party's report that it uses its share, since all of these have stored theirs. */
  public static SessionReport.Builder used(
      int party,
      ByteString session,
      KeyPublic keyPublic,
      SignedIntent intent,
      List<Integer> parties) {
    SessionReport.Builder report = completed(party, session, keyPublic, intent);
    report
        .getCompletedBuilder()
        .setActive(true)
        .setUseSignature(use(party, session, keyPublic, intent))
        .addAllCertificate(signatures(session, keyPublic, intent, parties));
    return report;
  }

  private static List<EvidenceSignature> signatures(
      ByteString session, KeyPublic keyPublic, SignedIntent intent, List<Integer> parties) {
    return parties.stream()
        .map(
            party ->
                EvidenceSignature.newBuilder()
                    .setParty(party)
                    .setSignature(stored(party, session, keyPublic, intent))
                    .build())
        .toList();
  }

  /** The word of these parties for the end of a session; some of them use their shares. */
  public static Completion completion(
      ByteString session,
      KeyPublic keyPublic,
      SignedIntent intent,
      List<Integer> parties,
      Set<Integer> users) {
    Completion.Builder completion =
        Completion.newBuilder()
            .setSessionId(session)
            .setSignedIntent(intent)
            .setKeyPublic(keyPublic.toByteString());
    for (int party : parties) {
      completion.addSignatures(
          EvidenceSignature.newBuilder()
              .setParty(party)
              .setUsed(users.contains(party))
              .setSignature(
                  users.contains(party)
                      ? use(party, session, keyPublic, intent)
                      : stored(party, session, keyPublic, intent)));
    }
    return completion.build();
  }

  /** A key for which nobody gives a word. */
  public static MadeKey unattested(KeyPublic keyPublic) {
    return MadeKey.created(
        completion(
            ByteString.EMPTY, keyPublic, SignedIntent.getDefaultInstance(), List.of(), Set.of()));
  }
}
