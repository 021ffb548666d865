package io.coterie.platform.attestation;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.trust.Roster;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * The statement {@code coterie/completed/2} that a party signs once it has stored its end of a
 * session that makes shares. See docs/protocols/session.md.
 *
 * @param installation name of the installation
 * @param session id of the session, 32 bytes
 * @param key resource name
 * @param epoch of the shares
 * @param intentDigest SHA-256 of the payload of the intent that asked for them
 * @param keyPublic the serialised public data of the key
 * @param used whether the party also uses its share. A stored share may still give way to that of
 *     another session; one that is used gives way to a share of a later epoch alone.
 */
public record CompletedStatement(
    String installation,
    ByteString session,
    String key,
    int epoch,
    ByteString intentDigest,
    ByteString keyPublic,
    boolean used) {

  private static final byte[] TAG = "coterie/completed/2".getBytes(StandardCharsets.US_ASCII);

  /** States that a party has stored its share of a session that made these public data. */
  public static CompletedStatement stored(
      String installation, ByteString session, KeyPublic keyPublic, ByteString intentDigest) {
    return new CompletedStatement(
        installation,
        session,
        keyPublic.getKeyId(),
        keyPublic.getEpoch(),
        intentDigest,
        keyPublic.toByteString(),
        false);
  }

  /** The same statement, about a share that the party uses. */
  public CompletedStatement inUse() {
    return new CompletedStatement(installation, session, key, epoch, intentDigest, keyPublic, true);
  }

  /**
   * The bytes that a party signs. Everything after the tag has a fixed length or its length before
   * it, so no two statements are the same bytes.
   */
  public ByteString of(int party) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.write(TAG);
      text(out, installation);
      bytes(out, session);
      text(out, key);
      out.writeInt(epoch);
      bytes(out, intentDigest);
      IntentVerifier.digest(keyPublic).writeTo(out);
      out.writeBoolean(used);
      out.writeInt(party);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return ByteString.copyFrom(bytes.toByteArray());
  }

  /** Whether a party has signed it with an evidence key that a roster has for its epoch. */
  public boolean isSignedBy(int party, ByteString signature, Roster roster) {
    ByteString statement = of(party);
    return roster.evidenceKeys(party, epoch).stream()
        .anyMatch(key -> StatementSignature.verifies(key, statement, signature));
  }

  private static void text(DataOutputStream out, String text) throws IOException {
    bytes(out, ByteString.copyFromUtf8(text));
  }

  private static void bytes(DataOutputStream out, ByteString bytes) throws IOException {
    out.writeInt(bytes.size());
    bytes.writeTo(out);
  }
}
