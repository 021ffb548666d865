package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.signer.claim.ExactNonces;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.CompletionStage;

/** The nonce points of exact Ed25519 in the party's file. */
final class SqliteExactNonces implements ExactNonces {
  private final PartyFile file;

  SqliteExactNonces(PartyFile file) {
    this.file = file;
  }

  @Override
  public CompletionStage<ByteString> settle(
      ByteString publicKey, ByteString messageDigest, ByteString noncePoint, String account) {
    return file.writer()
        .submit(
            db -> {
              db.update(
                  "INSERT INTO exact_nonce (public_key, message_digest, nonce_point, account)"
                      + " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                  publicKey.toByteArray(),
                  messageDigest.toByteArray(),
                  noncePoint.toByteArray(),
                  account);
              return recorded(db, publicKey, messageDigest);
            });
  }

  /** The point of the message. There is none if the point to be written is another message's. */
  private static ByteString recorded(Database db, ByteString publicKey, ByteString messageDigest)
      throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT nonce_point FROM exact_nonce WHERE public_key = ? AND message_digest = ?",
                publicKey.toByteArray(),
                messageDigest.toByteArray())
            .executeQuery()) {
      if (!row.next()) {
        throw new StoreException("the nonce point is recorded for another message of the key");
      }
      return ByteString.copyFrom(row.getBytes(1));
    }
  }
}
