package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import io.coterie.proto.core.v1.KeyPublic;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * The signatures of all parties of a session under the statement that they have stored their end of
 * it. Since a share that was stored is kept until a later one is used, whoever has a certificate
 * knows that every honest party of the session can follow it.
 *
 * @param signatures one of each party of the session, in ascending order of their ids
 */
public record Certificate(List<ByteString> signatures) {
  /** Bytes of one signature. */
  public static final int SIGNATURE_BYTES = 64;

  private static final byte[] STATEMENT = "coterie/completed/1".getBytes(StandardCharsets.US_ASCII);

  /** What the core puts before the hash of a statement when it signs it. */
  private static final byte[] SIGNED =
      "coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII);

  /** An Ed25519 public key in X.509 form is this and its 32 bytes (RFC 8410). */
  private static final byte[] X509_PREFIX = HexFormat.of().parseHex("302a300506032b6570032100");

  public Certificate {
    signatures = List.copyOf(signatures);
  }

  /** What {@link #bytes} made. */
  public static Certificate parse(ByteString bytes) {
    List<ByteString> signatures = new ArrayList<>();
    for (int at = 0; at < bytes.size(); at += SIGNATURE_BYTES) {
      signatures.add(bytes.substring(at, at + SIGNATURE_BYTES));
    }
    return new Certificate(signatures);
  }

  /** All signatures, one after another. */
  public ByteString bytes() {
    return ByteString.copyFrom(signatures);
  }

  /**
   * What a party signs once it has stored its end of a session. Everything after the tag has a
   * fixed length or its length before it, so no two statements are the same bytes.
   */
  public static ByteString statement(SessionId session, KeyPublic keyPublic, int party) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      byte[] key = keyPublic.getKeyId().getBytes(StandardCharsets.UTF_8);
      out.write(STATEMENT);
      out.write(session.bytes().toByteArray());
      out.writeInt(key.length);
      out.write(key);
      out.writeInt(keyPublic.getEpoch());
      out.write(sha256(keyPublic.toByteArray()));
      out.writeInt(party);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return ByteString.copyFrom(bytes.toByteArray());
  }

  /** Whether a member's pinned evidence key made a signature of {@link #statement}. */
  public static boolean verifies(Member member, ByteString statement, ByteString signature) {
    if (signature.size() != SIGNATURE_BYTES) {
      return false;
    }
    try {
      byte[] key = member.evidenceKey();
      byte[] encoded = new byte[X509_PREFIX.length + key.length];
      System.arraycopy(X509_PREFIX, 0, encoded, 0, X509_PREFIX.length);
      System.arraycopy(key, 0, encoded, X509_PREFIX.length, key.length);
      PublicKey evidenceKey =
          KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded));
      Signature verifier = Signature.getInstance("Ed25519");
      verifier.initVerify(evidenceKey);
      verifier.update(SIGNED);
      verifier.update(sha256(statement.toByteArray()));
      return verifier.verify(signature.toByteArray());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has Ed25519", e);
    } catch (InvalidKeyException | SignatureException e) {
      return false;
    } catch (GeneralSecurityException e) {
      return false; // the pinned key is none
    }
  }

  /** Whether it is one of a stored share: of its session, public data and parties. */
  public boolean certifies(KeyShare share, Roster roster) {
    List<Integer> members = share.members();
    if (signatures.size() != members.size()) {
      return false;
    }
    for (int i = 0; i < members.size(); i++) {
      int party = members.get(i);
      ByteString statement = statement(share.session(), share.keyPublic(), party);
      ByteString signature = signatures.get(i);
      if (roster.byPartyId(party).filter(m -> verifies(m, statement, signature)).isEmpty()) {
        return false;
      }
    }
    return true;
  }

  private static byte[] sha256(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
