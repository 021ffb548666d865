package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.proto.party.v1.ClaimCount;
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
    return exclusions.wentBack(party, null);
  }

  @Override
  public CompletionStage<List<String>> wentBack(LedgerHead forgotten) {
    return exclusions.wentBack(KeyShareStore.ITSELF, forgotten);
  }

  @Override
  public CompletionStage<?> forgotten(LedgerHead earlier) {
    return file.writer()
        .submitVital(
            db -> {
              SqliteLedger.fence(db, earlier.time());
              return true;
            });
  }

  private static List<Shown> all(Database db) throws SQLException {
    List<Shown> all = new ArrayList<>();
    try (ResultSet rows =
        db.statement("SELECT party, statement, before FROM shown_claims").executeQuery()) {
      while (rows.next()) {
        ByteString statement = ByteString.copyFrom(rows.getBytes(2));
        all.add(
            new Shown(
                rows.getInt(1),
                LedgerHead.position(ClaimCount.parseFrom(statement))
                    .orElseThrow(() -> new StoreException("a stored statement is none")),
                statement,
                ByteString.copyFrom(rows.getBytes(3))));
      }
    } catch (InvalidProtocolBufferException e) {
      throw new StoreException("a stored statement does not decode", e);
    }
    return all;
  }

  private static void put(Database db, Shown shown) throws SQLException {
    db.update(
        "INSERT OR REPLACE INTO shown_claims (party, statement, before) VALUES (?, ?, ?)",
        shown.party(),
        shown.statement().toByteArray(),
        shown.before().toByteArray());
  }
}
