package io.coterie.coordinator.storage;

import io.coterie.coordinator.custody.evidence.EvidenceRecord;
import io.coterie.coordinator.custody.evidence.EvidenceStore;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import java.util.List;
import javax.sql.DataSource;

/** Evidence in PostgreSQL. */
public final class JdbcEvidenceStore implements EvidenceStore {
  /** The deletion does not see the new row, so it leaves room for one. */
  private static final String APPEND =
      "with removed as (delete from abort_evidence where judged_at <= ? or id in"
          + "   (select id from abort_evidence where verdict = ? order by id desc offset ?))"
          + " insert into abort_evidence (session_id, key_name, protocol, cause, accused, reporter,"
          + "   verdict, session, accusation, judged_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

  private static final String OF_KEY =
      "select reporter, verdict, session, accusation, judged_at from abort_evidence"
          + " where key_name = ? order by id desc";

  private final Sql sql;

  public JdbcEvidenceStore(DataSource durable) {
    this.sql = new Sql(durable);
  }

  @Override
  public void append(EvidenceRecord record) {
    SessionConfig session = record.session();
    Accusation accusation = record.accusation();
    try {
      insert(record, session, accusation);
    } catch (StoreUnavailableException e) {
      if (Sql.isAboutValues(e)) {
        throw new IllegalArgumentException("the database refuses the record for its values", e);
      }
      throw e;
    }
  }

  private void insert(EvidenceRecord record, SessionConfig session, Accusation accusation) {
    sql.update(
        APPEND,
        s -> {
          s.setObject(1, Sql.time(record.judgedAt().minus(MAX_AGE)));
          s.setString(2, record.verdict().name());
          s.setInt(3, MAX_RECORDS - 1);
          s.setBytes(4, session.getSessionId().toByteArray());
          s.setString(5, session.getKeyId());
          s.setString(6, session.getProtocol().name());
          s.setString(7, accusation.getCause().name());
          s.setInt(8, accusation.getAccused());
          s.setInt(9, record.reporter());
          s.setString(10, record.verdict().name());
          s.setBytes(11, session.toByteArray());
          s.setBytes(12, accusation.toByteArray());
          s.setObject(13, Sql.time(record.judgedAt()));
        });
  }

  @Override
  public List<EvidenceRecord> ofKey(String key) {
    return sql.query(
        OF_KEY,
        s -> s.setString(1, key),
        row ->
            new EvidenceRecord(
                Sql.message(row, "session", SessionConfig.parser()),
                Sql.message(row, "accusation", Accusation.parser()),
                row.getInt("reporter"),
                Verdict.valueOf(row.getString("verdict")),
                Sql.time(row, "judged_at")));
  }
}
