package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.signer.session.ShownClaims.Shown;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** How many sessions each peer has said that it has claimed. */
final class SqliteShownClaims {
  private SqliteShownClaims() {}

  static List<Shown> all(Database db) throws SQLException {
    List<Shown> all = new ArrayList<>();
    try (ResultSet rows =
        db.statement("SELECT party, life, claims, statement FROM shown_claims").executeQuery()) {
      while (rows.next()) {
        all.add(
            new Shown(
                rows.getInt(1),
                rows.getLong(2),
                rows.getLong(3),
                ByteString.copyFrom(rows.getBytes(4))));
      }
    }
    return all;
  }

  static void put(Database db, Shown shown) throws SQLException {
    db.update(
        "INSERT INTO shown_claims (party, life, claims, statement) VALUES (?, ?, ?, ?)"
            + " ON CONFLICT DO UPDATE SET life = excluded.life, claims = excluded.claims,"
            + " statement = excluded.statement",
        shown.party(),
        shown.life(),
        shown.claims(),
        shown.statement().toByteArray());
  }
}
