package io.coterie.platform.attestation;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.trust.Roster;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * The statement {@code coterie/current/1} that a party signs when a client asks which epoch of a
 * key it uses. See docs/protocols/session.md.
 *
 * @param installation name of the installation
 * @param key resource name
 * @param fingerprint of the key, 16 bytes
 * @param epoch of the share that the party uses
 * @param session id of the session that made that share, 32 bytes
 * @param keyPublicDigest SHA-256 of the serialised public data stored with it
 * @param undecided whether the party also keeps another share of the key that it may come to use. A
 *     party that keeps none has signed the end of no session for a later epoch.
 * @param challenge of the client, {@link #CHALLENGE_BYTES} bytes
 */
public record CurrentStatement(
    String installation,
    String key,
    ByteString fingerprint,
    int epoch,
    ByteString session,
    ByteString keyPublicDigest,
    boolean undecided,
    ByteString challenge) {
  /** Length of a challenge. */
  public static final int CHALLENGE_BYTES = 32;

  private static final byte[] TAG = "coterie/current/1".getBytes(StandardCharsets.US_ASCII);

  private static final int DIGEST_BYTES = 32;

  /** Refuses fields of another length, so that no two statements are the same bytes. */
  public CurrentStatement {
    requireLength("fingerprint", fingerprint, IntentVerifier.FINGERPRINT_BYTES);
    requireLength("session id", session, SessionId.LENGTH);
    requireLength("digest", keyPublicDigest, DIGEST_BYTES);
    requireLength("challenge", challenge, CHALLENGE_BYTES);
  }

  private static void requireLength(String field, ByteString bytes, int length) {
    if (bytes.size() != length) {
      throw new IllegalArgumentException(
          "the " + field + " has " + bytes.size() + " bytes and not " + length);
    }
  }

  /** The statement of a party that uses the share of a session with these public data. */
  public static CurrentStatement using(
      String installation,
      ByteString session,
      KeyPublic keyPublic,
      boolean undecided,
      ByteString challenge) {
    return new CurrentStatement(
        installation,
        keyPublic.getKeyId(),
        KeyFingerprint.of(keyPublic),
        keyPublic.getEpoch(),
        session,
        IntentVerifier.digest(keyPublic.toByteString()),
        undecided,
        challenge);
  }

  /**
   * The statement that a party sent about a key.
   *
   * @return empty if it cannot be one
   */
  static Optional<CurrentStatement> sent(
      String installation,
      String key,
      ByteString fingerprint,
      EpochStatement sent,
      ByteString challenge) {
    if (sent.getSessionId().size() != SessionId.LENGTH
        || sent.getKeyPublicDigest().size() != DIGEST_BYTES) {
      return Optional.empty();
    }
    return Optional.of(
        new CurrentStatement(
            installation,
            key,
            fingerprint,
            sent.getEpoch(),
            sent.getSessionId(),
            sent.getKeyPublicDigest(),
            sent.getUndecided(),
            challenge));
  }

  /**
   * Whether the party that a message names has signed it about that key, in answer to that
   * challenge.
   */
  public static boolean isSigned(
      Roster roster,
      String key,
      ByteString fingerprint,
      EpochStatement sent,
      ByteString challenge) {
    return sent(roster.installation(), key, fingerprint, sent, challenge)
        .filter(statement -> statement.isSignedBy(sent.getParty(), sent.getSignature(), roster))
        .isPresent();
  }

  /** The message that carries it with a party's signature. */
  public EpochStatement signed(int party, ByteString signature) {
    return EpochStatement.newBuilder()
        .setParty(party)
        .setEpoch(epoch)
        .setSessionId(session)
        .setKeyPublicDigest(keyPublicDigest)
        .setUndecided(undecided)
        .setSignature(signature)
        .build();
  }

  /** The bytes that a party signs. */
  public ByteString of(int party) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.write(TAG);
      text(out, installation);
      text(out, key);
      fingerprint.writeTo(out);
      out.writeInt(epoch);
      session.writeTo(out);
      keyPublicDigest.writeTo(out);
      out.writeBoolean(undecided);
      challenge.writeTo(out);
      out.writeInt(party);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return ByteString.copyFrom(bytes.toByteArray());
  }

  /**
   * Whether a party has signed it with its present evidence key. An earlier key does not count: it
   * may be in the hands of a thief by now, and a party answers with its present one.
   */
  public boolean isSignedBy(int party, ByteString signature, Roster roster) {
    return roster
        .byPartyId(party)
        .filter(member -> StatementSignature.verifies(member.evidenceKey(), of(party), signature))
        .isPresent();
  }

  private static void text(DataOutputStream out, String text) throws IOException {
    ByteString bytes = ByteString.copyFromUtf8(text);
    out.writeInt(bytes.size());
    bytes.writeTo(out);
  }
}
