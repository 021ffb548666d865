package io.coterie.coordinator.storage;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.party.v1.ClaimCount;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;

/** The ledgers of parties in PostgreSQL. */
public final class JdbcLedgerStore implements LedgerStore {
  private static final String COLUMNS = "starts, head, base, claims, statement, before";

  /** The condition is that of {@link LedgerPosition#against} for a later position. */
  private static final String REMEMBER =
      "insert into party_ledgers as l (party_id, evidence_key, "
          + COLUMNS
          + ") values (?, ?, ?, ?, ?, ?, ?, '') on conflict (party_id, evidence_key) do update set"
          + " starts = excluded.starts, head = excluded.head, base = excluded.base,"
          + " claims = excluded.claims, statement = excluded.statement,"
          + " before = case when l.head = excluded.head then l.before else l.statement end"
          + " where case when l.head = excluded.head"
          + "   then l.starts = excluded.starts and l.claims < excluded.claims"
          + "   else l.starts < excluded.starts and l.claims <= excluded.base end"
          + " returning "
          + COLUMNS;

  private static final String FIND =
      "select " + COLUMNS + " from party_ledgers where party_id = ? and evidence_key = ?";

  private final Sql sql;

  public JdbcLedgerStore(DataSource durable) {
    this.sql = new Sql(durable);
  }

  @Override
  public Remembered remember(
      LedgerPosition position, ClaimCount statement, ByteString evidenceKey) {
    List<Remembered> changed =
        sql.query(
            REMEMBER,
            s -> {
              s.setInt(1, statement.getParty());
              s.setBytes(2, evidenceKey.toByteArray());
              s.setLong(3, position.starts());
              s.setBytes(4, position.head().toByteArray());
              s.setLong(5, position.base());
              s.setLong(6, position.claims());
              s.setBytes(7, statement.toByteArray());
            },
            JdbcLedgerStore::read);
    if (!changed.isEmpty()) {
      return changed.getFirst();
    }
    // The row exists, and rows are never deleted.
    return sql.query(
            FIND,
            s -> {
              s.setInt(1, statement.getParty());
              s.setBytes(2, evidenceKey.toByteArray());
            },
            JdbcLedgerStore::read)
        .getFirst();
  }

  private static Remembered read(ResultSet row) throws SQLException {
    return new Remembered(
        new LedgerPosition(
            row.getLong("starts"),
            Sql.byteString(row, "head"),
            row.getLong("base"),
            row.getLong("claims")),
        Sql.byteString(row, "statement"),
        Sql.byteString(row, "before"));
  }
}
