package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.signer.claim.ShownClaims;
import io.coterie.signer.share.KeyShareStore;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** How far each peer has shown that its ledger has come. */
final class SqliteShownClaims implements ShownClaims {
  private final PartyFile file;
  private final SqliteExclusions exclusions;

  SqliteShownClaims(PartyFile file, SqliteExclusions exclusions) {
    this.file = file;
    this.exclusions = exclusions;
  }

  @Override
  public List<Shown> shown() {
    return file.read(SqliteShownClaims::all);
  }

  @Override
  public CompletionStage<Boolean> show(Shown shown) {
    return file.writer()
        .submit(
            db -> {
              put(db, shown);
              return true;
            });
  }

  @Override
  public CompletionStage<List<String>> wentBack(int party) {
    return exclusions.wentBack(party, LedgerPosition.NONE);
  }

  @Override
  public CompletionStage<List<String>> wentBack(LedgerPosition forgotten) {
    return exclusions.wentBack(KeyShareStore.ITSELF, forgotten);
  }

  private static List<Shown> all(Database db) throws SQLException {
    List<Shown> all = new ArrayList<>();
    try (ResultSet rows =
        db.statement(
                "SELECT party, starts, head, base, claims, statement, before FROM shown_claims")
            .executeQuery()) {
      while (rows.next()) {
        all.add(
            new Shown(
                rows.getInt(1),
                new LedgerPosition(
                    rows.getLong(2),
                    ByteString.copyFrom(rows.getBytes(3)),
                    rows.getLong(4),
                    rows.getLong(5)),
                ByteString.copyFrom(rows.getBytes(6)),
                ByteString.copyFrom(rows.getBytes(7))));
      }
    }
    return all;
  }

  private static void put(Database db, Shown shown) throws SQLException {
    db.update(
        "INSERT OR REPLACE INTO shown_claims (party, starts, head, base, claims, statement, before)"
            + " VALUES (?, ?, ?, ?, ?, ?, ?)",
        shown.party(),
        shown.position().starts(),
        shown.position().head().toByteArray(),
        shown.position().base(),
        shown.position().claims(),
        shown.statement().toByteArray(),
        shown.before().toByteArray());
  }
}
