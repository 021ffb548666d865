package io.coterie.platform.attestation;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.trust.Roster;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

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

  /** The same statement, about the use of the share or about the share alone. */
  public CompletedStatement used(boolean next) {
    return new CompletedStatement(installation, session, key, epoch, intentDigest, keyPublic, next);
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
      out.write(sha256(keyPublic));
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

  private static byte[] sha256(ByteString bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes.toByteArray());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
