package io.coterie.coordinator.storage;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.audit.AuditStore;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import javax.sql.DataSource;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.ObjectMapper;

/** An audit chain in PostgreSQL; the primary key keeps a second writer from forking it. */
public final class JdbcAuditStore implements AuditStore {
  private static final String COLUMNS =
      "sequence, time, actor, action, outcome, fields, previous_hash, hash";

  private static final String LAST =
      "select " + COLUMNS + " from audit_records where trail = ? order by sequence desc limit 1";

  private static final String APPEND =
      "insert into audit_records (" + COLUMNS + ", trail) values (?, ?, ?, ?, ?, ?, ?, ?, ?)";

  private static final String READ =
      "select "
          + COLUMNS
          + " from audit_records where trail = ? and sequence >= ? order by sequence limit ?";

  private static final TypeReference<TreeMap<String, String>> FIELDS = new TypeReference<>() {};

  private final Sql sql;
  private final String trail;
  private final ObjectMapper json = new ObjectMapper();

  /**
   * The chain of one writer.
   *
   * @param trail name of the chain
   */
  public JdbcAuditStore(DataSource durable, String trail) {
    this.sql = new Sql(durable);
    this.trail = trail;
  }

  @Override
  public Optional<AuditRecord> last() {
    return sql.query(LAST, s -> s.setString(1, trail), this::read).stream().findFirst();
  }

  @Override
  public void append(AuditRecord record) {
    sql.update(
        APPEND,
        s -> {
          s.setLong(1, record.sequence());
          s.setObject(2, Sql.time(record.time()));
          s.setString(3, record.event().actor());
          s.setString(4, record.event().action());
          s.setString(5, record.event().outcome());
          s.setString(6, json.writeValueAsString(record.event().fields()));
          s.setBytes(7, record.previousHash());
          s.setBytes(8, record.hash());
          s.setString(9, trail);
        });
  }

  @Override
  public List<AuditRecord> read(long fromSequence, int limit) {
    return sql.query(
        READ,
        s -> {
          s.setString(1, trail);
          s.setLong(2, fromSequence);
          s.setInt(3, limit);
        },
        this::read);
  }

  private AuditRecord read(ResultSet row) throws SQLException {
    SortedMap<String, String> fields = json.readValue(row.getString("fields"), FIELDS);
    return new AuditRecord(
        row.getLong("sequence"),
        Sql.time(row, "time"),
        new AuditEvent(
            row.getString("actor"), row.getString("action"), row.getString("outcome"), fields),
        row.getBytes("previous_hash"),
        row.getBytes("hash"));
  }
}
