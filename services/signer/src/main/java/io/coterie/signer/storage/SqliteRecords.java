package io.coterie.signer.storage;

import io.coterie.platform.audit.AuditRecord;
import io.coterie.signer.party.AuditLog;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * The party's records, which show what it did: audit records, the intents that it was shown, and
 * the sessions that it ran. All of it is forgotten after a time, but where the audit trail goes on.
 */
final class SqliteRecords {
  /** How long records are kept unless the configuration says otherwise. */
  static final Duration RETENTION = Duration.ofDays(30);

  private static final Logger log = LoggerFactory.getLogger(SqliteRecords.class);

  /** Audit records that are exported at a time. */
  private static final int PAGE = 500;

  private static final JsonMapper JSON = JsonMapper.builder().build();

  private final PartyFile file;
  private final Duration retention;

  /** Whether a step of forgetting waits to be written; one at a time. */
  private final AtomicBoolean forgetting = new AtomicBoolean();

  /**
   * @param retention longer than requests are kept
   */
  SqliteRecords(PartyFile file, Duration retention) {
    this.file = file;
    this.retention = retention;
  }

  /**
   * Forgets what was written before this party had run for as long as the retention; soon, not all
   * at once.
   */
  void forget() {
    if (!forgetting.compareAndSet(false, true)) {
      return;
    }
    file.writer()
        .submit(db -> forget(db, SqliteLedger.ran(db) - retention.toMillis()))
        .whenComplete(
            (more, failure) -> {
              forgetting.set(false);
              if (failure != null) {
                log.error("records could not be forgotten", failure);
              } else if (Boolean.TRUE.equals(more) && file.mayForget()) {
                forget();
              }
            });
  }

  /** Whether there is more to forget. */
  private static boolean forget(Database db, long endMs) throws SQLException {
    ForgettingStep records = new ForgettingStep();
    SqliteAudit.forget(db, endMs, records);
    ForgettingStep intents = new ForgettingStep();
    forgetIntents(db, endMs, intents);
    // An order of that time has passed its deadline, and its request id is dead.
    int sessions =
        db.update(
            "DELETE FROM claimed_session WHERE session_id IN"
                + " (SELECT session_id FROM claimed_session WHERE ran_ms < ? LIMIT ?)",
            endMs,
            ForgettingStep.ROWS);
    return records.isFull() || intents.isFull() || sessions == ForgettingStep.ROWS;
  }

  private static void forgetIntents(Database db, long endMs, ForgettingStep step)
      throws SQLException {
    List<Long> rows = new ArrayList<>();
    try (ResultSet row =
        db.statement(
                "SELECT rowid, octet_length(signed_intent) FROM kept_intent"
                    + " WHERE ran_ms < ? ORDER BY ran_ms LIMIT ?",
                endMs,
                ForgettingStep.ROWS)
            .executeQuery()) {
      while (!step.isFull() && row.next()) {
        rows.add(row.getLong(1));
        step.take(row.getLong(2));
      }
    }
    for (Long row : rows) {
      db.update("DELETE FROM kept_intent WHERE rowid = ?", row);
    }
  }

  /**
   * Gives the audit records from a sequence number on, a line of JSON each, and with the order of a
   * request, or the word that it is never signed, the intent that its requester has signed.
   *
   * @throws StoreException if a record does not follow the one before it
   */
  static void export(Database db, long from, Consumer<String> out) throws SQLException {
    AuditRecord last = null;
    long next = from;
    List<AuditRecord> page = SqliteAudit.read(db, next, PAGE);
    while (!page.isEmpty()) {
      for (AuditRecord record : page) {
        if (!record.isConsistent() || last != null && !record.follows(last)) {
          throw new StoreException(
              "the audit trail is broken at record "
                  + record.sequence()
                  + ": keep the party's file, somebody has changed it");
        }
        out.accept(line(db, record));
        last = record;
      }
      next = page.getLast().sequence() + 1;
      page = SqliteAudit.read(db, next, PAGE);
    }
  }

  private static String line(Database db, AuditRecord record) throws SQLException {
    HexFormat hex = HexFormat.of();
    ObjectNode line =
        JSON.createObjectNode()
            .put("sequence", record.sequence())
            .put("time", record.time().toString())
            .put("actor", record.event().actor())
            .put("action", record.event().action())
            .put("outcome", record.event().outcome())
            .put("previous_hash", hex.formatHex(record.previousHash()))
            .put("hash", hex.formatHex(record.hash()));
    ObjectNode fields = line.putObject("fields");
    new TreeMap<>(record.event().fields()).forEach(fields::put);
    String digest =
        switch (record.event().action()) {
          case "order.accept" -> record.event().fields().get("intent_digest");
          case AuditLog.RECEIPT -> record.event().fields().get("cancel_digest");
          default -> null;
        };
    byte[] intent = digest == null ? null : intent(db, digest, record.event().actor());
    if (intent != null) {
      line.put("signed_intent", Base64.getEncoder().encodeToString(intent));
    }
    return JSON.writeValueAsString(line);
  }

  private static byte @Nullable [] intent(Database db, String digest, String requester)
      throws SQLException {
    byte[] bytes;
    try {
      bytes = HexFormat.of().parseHex(digest);
    } catch (IllegalArgumentException e) {
      return null;
    }
    try (ResultSet row =
        db.statement(
                "SELECT signed_intent FROM kept_intent WHERE intent_digest = ? AND account = ?",
                bytes,
                requester)
            .executeQuery()) {
      return row.next() ? row.getBytes(1) : null;
    }
  }
}
