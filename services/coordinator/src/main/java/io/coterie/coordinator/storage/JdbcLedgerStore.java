package io.coterie.coordinator.storage;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.ledger.LedgerPosition.Judgement;
import io.coterie.proto.party.v1.ClaimCount;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Optional;
import javax.sql.DataSource;

/** The ledgers of parties in PostgreSQL. */
public final class JdbcLedgerStore implements LedgerStore {
  private static final String FIRST =
      "insert into party_ledgers (party_id, evidence_key, statement, before)"
          + " values (?, ?, ?, '') on conflict do nothing";

  /** Replaces only the statement with which the new one was compared. */
  private static final String LATER =
      "update party_ledgers set statement = ?, before = ?"
          + " where party_id = ? and evidence_key = ? and statement = ?";

  private static final String FIND =
      "select statement, before from party_ledgers where party_id = ? and evidence_key = ?";

  private final Sql sql;

  public JdbcLedgerStore(DataSource durable) {
    this.sql = new Sql(durable);
  }

  @Override
  public Remembered remember(
      LedgerPosition position, ClaimCount statement, ByteString evidenceKey) {
    byte[] bytes = statement.toByteArray();
    // Each turn in which another replica was quicker makes the row a later one.
    while (true) {
      Optional<Remembered> stored = find(statement.getParty(), evidenceKey);
      LedgerPosition latest = stored.map(Remembered::position).orElse(null);
      if (stored.isPresent() && position.against(latest) != Judgement.LATER) {
        return stored.get();
      }
      ByteString before = stored.map(row -> row.beforeNext(position)).orElse(ByteString.EMPTY);
      int written =
          stored.isEmpty()
              ? sql.update(
                  FIRST,
                  s -> {
                    key(s, 1, statement.getParty(), evidenceKey);
                    s.setBytes(3, bytes);
                  })
              : sql.update(
                  LATER,
                  s -> {
                    s.setBytes(1, bytes);
                    s.setBytes(2, before.toByteArray());
                    key(s, 3, statement.getParty(), evidenceKey);
                    s.setBytes(5, stored.get().statement().toByteArray());
                  });
      if (written == 1) {
        return new Remembered(position, statement.toByteString(), before);
      }
    }
  }

  private Optional<Remembered> find(int party, ByteString evidenceKey) {
    return sql.first(FIND, s -> key(s, 1, party, evidenceKey), JdbcLedgerStore::read);
  }

  private static void key(PreparedStatement s, int first, int party, ByteString evidenceKey)
      throws SQLException {
    s.setInt(first, party);
    s.setBytes(first + 1, evidenceKey.toByteArray());
  }

  private static Remembered read(ResultSet row) throws SQLException {
    ClaimCount statement = Sql.message(row, "statement", ClaimCount.parser());
    return new Remembered(
        LedgerHead.position(statement)
            .orElseThrow(() -> new IllegalStateException("a stored statement is none")),
        Sql.byteString(row, "statement"),
        Sql.byteString(row, "before"));
  }
}
