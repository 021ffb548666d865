package io.coterie.signer;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.Certificate;
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

  /** A party's signature that it has stored its end of a session. */
  public static ByteString stored(int party, SessionId session, KeyPublic keyPublic) {
    return sign(party, Certificate.statement(session, keyPublic, party));
  }

  /** A party's report that says so. */
  public static SessionReport completed(int party, SessionId session, KeyPublic keyPublic) {
    return SessionReport.newBuilder()
        .setSessionId(session.bytes())
        .setCompleted(
            Completed.newBuilder()
                .setKeyPublic(keyPublic)
                .setEvidenceSignature(stored(party, session, keyPublic)))
        .build();
  }

  /** The evidence keys of all parties. */
  public static Certificate certificate(
      SessionId session, KeyPublic keyPublic, List<Integer> members) {
    return new Certificate(
        members.stream().map(party -> stored(party, session, keyPublic)).toList());
  }
}
