package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
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
  public static final int SIGNATURE_BYTES = StatementSignature.BYTES;

  private static final byte[] STATEMENT = "coterie/completed/1".getBytes(StandardCharsets.US_ASCII);

  public Certificate {
    signatures = List.copyOf(signatures);
  }

  /** Reads the result of {@link #bytes}. */
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
   * The statement that a party signs once it has stored its end of a session. Everything after the
   * tag has a fixed length or its length before it, so no two statements are the same bytes.
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
    return StatementSignature.verifies(member.evidenceKey(), statement, signature);
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
