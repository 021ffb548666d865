package io.coterie.signer.storage;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.audit.AuditStore;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.party.AuditLog;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.json.JsonMapper;

/** The party's audit trail: one chain of records through all starts. */
public final class SqliteAudit implements AuditLog {
  private static final JsonMapper JSON = JsonMapper.builder().build();
  private static final TypeReference<TreeMap<String, String>> FIELDS = new TypeReference<>() {};

  private final PartyFile file;
  private final Chain chain;

  SqliteAudit(PartyFile file, Chain chain) {
    this.file = file;
    this.chain = chain;
  }

  @Override
  public void record(AuditEvent event) {
    file.writer()
        .submitLazily(
            db -> {
              chain.append(db, event);
              return true;
            });
  }

  /** Checks every link of the trail. */
  public AuditTrail.Verification verify() {
    return file.read(db -> chain.on(db).verify());
  }

  /** Records from a sequence number on, oldest first. */
  public List<AuditRecord> read(long fromSequence, int limit) {
    return file.read(db -> new Records(db).read(fromSequence, limit));
  }

  /** See {@link #read(long, int)}, of a file that the party may be writing. */
  static List<AuditRecord> read(Database db, long fromSequence, int limit) {
    return new Records(db).read(fromSequence, limit);
  }

  /**
   * Forgets the first records up to a time, but never the last one of all; the trail begins with
   * the hash that its next record names.
   *
   * @param endMs by the time of records: {@link SqliteLedger#ran}
   */
  static void forget(Database db, long endMs, ForgettingStep step) throws SQLException {
    long sequence = 0;
    byte[] hash = {};
    // One more, so that the last one of all is never among them.
    try (ResultSet row =
        db.statement(
                "SELECT sequence, ran_ms, hash, octet_length(fields) AS bytes FROM audit_record"
                    + " ORDER BY sequence LIMIT ?",
                ForgettingStep.ROWS + 1L)
            .executeQuery()) {
      boolean more = row.next();
      while (more && !step.isFull() && row.getLong("ran_ms") < endMs) {
        long candidate = row.getLong("sequence");
        byte[] itsHash = row.getBytes("hash");
        long bytes = row.getLong("bytes");
        more = row.next();
        if (more) {
          sequence = candidate;
          hash = itsHash;
          step.take(bytes);
        }
      }
    }
    if (hash.length > 0) {
      db.update("DELETE FROM audit_record WHERE sequence <= ?", sequence);
      db.update(
          "INSERT INTO audit_beginning (id, sequence, hash) VALUES (1, ?, ?) ON CONFLICT (id) DO"
              + " UPDATE SET sequence = excluded.sequence, hash = excluded.hash",
          sequence,
          hash);
    }
  }

  /** Appends to the trail inside the transactions of the party's writer. */
  static final class Chain {
    private final String name;
    private final Clock clock;

    /** Touched by the writer's thread alone; absent after a rollback, when its end is unknown. */
    private @Nullable AuditTrail open;

    /**
     * @param name of the trail, part of the hash of every record
     */
    Chain(String name, Clock clock) {
      this.name = name;
      this.clock = clock;
    }

    /** The event is on disk with the transaction, or not at all. */
    void append(Database db, AuditEvent event) {
      AuditTrail trail = open;
      if (trail == null) {
        trail = on(db);
        open = trail;
      }
      trail.append(event);
    }

    /** The next record follows the last one on disk. */
    void rolledBack() {
      open = null;
    }

    private AuditTrail on(Database db) {
      return new AuditTrail(name, new Records(db), clock);
    }
  }

  /** The trail's records, inside whatever transaction the connection is in. */
  private record Records(Database db) implements AuditStore {
    /** The account for which the event's session is kept; else the second parameter. */
    private static final String ACCOUNT =
        "coalesce((SELECT account FROM claimed_session WHERE session_id = ?), ?)";

    private static final String COLUMNS =
        "sequence, time_ms, actor, action, outcome, fields, previous_hash, hash";

    @Override
    public Optional<AuditRecord> last() {
      return query("SELECT " + COLUMNS + " FROM audit_record ORDER BY sequence DESC LIMIT ?", 1L)
          .stream()
          .findFirst();
    }

    @Override
    public Optional<Beginning> beginning() {
      try (ResultSet row =
          db.statement("SELECT sequence, hash FROM audit_beginning").executeQuery()) {
        return row.next()
            ? Optional.of(new Beginning(row.getLong(1), row.getBytes(2)))
            : Optional.empty();
      } catch (SQLException e) {
        throw new StoreException("the audit trail could not be read", e);
      }
    }

    @Override
    public void append(AuditRecord record) {
      try {
        db.update(
            "INSERT INTO audit_record ("
                + COLUMNS
                + ", account, ran_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, "
                + ACCOUNT
                + ", "
                + SqliteLedger.RAN_MS
                + ")",
            record.sequence(),
            record.time().toEpochMilli(),
            record.event().actor(),
            record.event().action(),
            record.event().outcome(),
            JSON.writeValueAsString(record.event().fields()),
            record.previousHash(),
            record.hash(),
            session(record.event()),
            receiptOf(record.event()));
      } catch (SQLException e) {
        throw new StoreException("an audit record could not be written", e);
      }
    }

    /** Equal to no session id, if the event has none. */
    private static byte[] session(AuditEvent event) {
      String session = event.fields().get("session_id");
      return session == null ? new byte[0] : HexFormat.of().parseHex(session);
    }

    /** The requester that was given a receipt, whose intent asked for it; nobody otherwise. */
    private static String receiptOf(AuditEvent event) {
      return event.action().equals(AuditLog.RECEIPT) ? event.actor() : ClaimLedger.NOBODY;
    }

    @Override
    public List<AuditRecord> read(long fromSequence, int limit) {
      return query(
          "SELECT " + COLUMNS + " FROM audit_record WHERE sequence >= ? ORDER BY sequence LIMIT ?",
          fromSequence,
          limit);
    }

    private List<AuditRecord> query(String sql, Object... parameters) {
      List<AuditRecord> records = new ArrayList<>();
      try (ResultSet row = db.statement(sql, parameters).executeQuery()) {
        while (row.next()) {
          SortedMap<String, String> fields = JSON.readValue(row.getString("fields"), FIELDS);
          records.add(
              new AuditRecord(
                  row.getLong("sequence"),
                  Instant.ofEpochMilli(row.getLong("time_ms")),
                  new AuditEvent(
                      row.getString("actor"),
                      row.getString("action"),
                      row.getString("outcome"),
                      fields),
                  row.getBytes("previous_hash"),
                  row.getBytes("hash")));
        }
      } catch (SQLException e) {
        throw new StoreException("the audit trail could not be read", e);
      }
      return records;
    }
  }
}
