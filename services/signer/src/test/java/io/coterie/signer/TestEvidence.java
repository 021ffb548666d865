package io.coterie.signer;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.MessageDigest;
import java.security.Signature;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Evidence keys of parties whose protocols compute nothing, and what they sign. */
public final class TestEvidence {
  private static final List<KeyPair> KEYS =
      Stream.generate(Installation::ed25519).limit(Installation.NAMES.size()).toList();

  private TestEvidence() {}

  /** The public key of a party, as a roster has it. */
  public static byte[] publicKey(int party) {
    byte[] encoded = KEYS.get(party - 1).getPublic().getEncoded();
    return Arrays.copyOfRange(encoded, encoded.length - 32, encoded.length);
  }

  /** The same of each, by name. */
  public static Map<String, byte[]> publicKeys() {
    Map<String, byte[]> keys = new HashMap<>();
    for (int party = 1; party <= KEYS.size(); party++) {
      keys.put(Installation.NAMES.get(party - 1), publicKey(party));
    }
    return keys;
  }

  /** As the core does. */
  public static ByteString sign(int party, ByteString statement) {
    try {
      Signature signer = Signature.getInstance("Ed25519");
      signer.initSign(KEYS.get(party - 1).getPrivate());
      signer.update("coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII));
      signer.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
      return ByteString.copyFrom(signer.sign());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The head of a party's ledger in the installation {@code test}, as the party states it. */
  public static ClaimCount head(int party, LedgerPosition position) {
    LedgerHead head = new LedgerHead("test", party, position, 0);
    return head.count(sign(party, head.statement()));
  }

  /** The statement that a session of the installation {@code test} is completed. */
  public static CompletedStatement statement(
      SessionId session, KeyPublic keyPublic, ByteString intentDigest) {
    return CompletedStatement.stored("test", session.bytes(), keyPublic, intentDigest);
  }

  /** A party's signature that it has stored its end of a session. */
  public static ByteString stored(
      int party, SessionId session, KeyPublic keyPublic, ByteString intentDigest) {
    return sign(party, statement(session, keyPublic, intentDigest).of(party));
  }

  /** A party's report that says so. */
  public static SessionReport completed(
      int party, SessionId session, KeyPublic keyPublic, ByteString intentDigest) {
    return SessionReport.newBuilder()
        .setSessionId(session.bytes())
        .setCompleted(
            Completed.newBuilder()
                .setKeyPublic(keyPublic)
                .setIntentDigest(intentDigest)
                .setEvidenceSignature(stored(party, session, keyPublic, intentDigest)))
        .build();
  }

  /** A party's report that it has stored what belongs to a share of another one. */
  public static SessionReport completed(int party, KeyShare share) {
    return completed(party, share.session(), share.keyPublic(), share.origin().intentDigest());
  }

  /** A party's report that says what the report of another one says. */
  public static SessionReport completed(int party, SessionReport other) {
    return completed(
        party,
        new SessionId(other.getSessionId()),
        other.getCompleted().getKeyPublic(),
        other.getCompleted().getIntentDigest());
  }

  /** The evidence signatures of these parties. */
  public static Certificate certificate(
      SessionId session, KeyPublic keyPublic, ByteString intentDigest, List<Integer> members) {
    return new Certificate(
        members.stream().map(party -> stored(party, session, keyPublic, intentDigest)).toList());
  }
}
