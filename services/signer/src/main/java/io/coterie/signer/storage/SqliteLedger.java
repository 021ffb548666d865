package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerLog;
import io.coterie.platform.ledger.LedgerPosition;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicReference;
import java.util.random.RandomGenerator;

/**
 * Where this party's own ledger has been: its logs, and one row for each start, the current one
 * last.
 */
final class SqliteLedger {
  /** The expression for the time of records: how long processes have run with this file, ms. */
  static final String RAN_MS = "coalesce((SELECT ran_ms FROM ledger_time), 0)";

  private final RandomGenerator random;
  private final AtomicReference<LedgerPosition> position =
      new AtomicReference<>(LedgerPosition.NONE);

  /**
   * @param random marks each start, so that a copy of the file cannot repeat a mark
   */
  SqliteLedger(RandomGenerator random) {
    this.random = random;
  }

  /** The position that is on disk. */
  LedgerPosition position() {
    return position.get();
  }

  /** The position that a transaction has written is on disk now. */
  void committed(LedgerPosition now) {
    position.accumulateAndGet(now, LedgerPosition::orLater);
  }

  /**
   * Writes down that no request id of before a time is claimed from now on, because the store may
   * have forgotten it. A fence only moves forward.
   */
  static void fence(Database db, Instant time) throws SQLException {
    db.update("UPDATE ledger SET fence_ms = max(fence_ms, ?)", time.toEpochMilli());
  }

  /** The fence; 1970 if nothing was ever forgotten. */
  static Instant fence(Database db) throws SQLException {
    return Instant.ofEpochMilli(db.count("SELECT fence_ms FROM ledger"));
  }

  /**
   * Whether a request id is of before the fence: the store may have forgotten what it claimed for
   * it.
   */
  static boolean isFenced(Database db, String requestId) throws SQLException {
    return requestId.compareTo(RequestId.first(fence(db))) < 0;
  }

  /** Writes down when the file was made, if that is not there. */
  static int made(Database db, Instant now) throws SQLException {
    return db.update("UPDATE ledger SET made_ms = ? WHERE made_ms = 0", now.toEpochMilli());
  }

  /** Whether a request may be older than this file, so that an earlier file may have claimed it. */
  static boolean isOfBefore(Database db, String requestId) throws SQLException {
    long made = db.count("SELECT made_ms FROM ledger");
    return made == 0 || requestId.compareTo(RequestId.first(Instant.ofEpochMilli(made))) < 0;
  }

  /** The ledger's own time as it was last written; 1970 if it never was. */
  static Instant reached(Database db) throws SQLException {
    return Instant.ofEpochMilli(
        db.count("SELECT coalesce((SELECT reached_ms FROM ledger_time), 0)"));
  }

  /** See {@link #RAN_MS}. */
  static long ran(Database db) throws SQLException {
    return db.count("SELECT " + RAN_MS);
  }

  /** One more start; the position is known when it is on disk. */
  LedgerPosition begin(Database db) throws SQLException {
    return put(db, current(db).next(fresh()));
  }

  /**
   * A new log of a store that is known to have gone back. All that it has forgotten is settled by
   * it, so the caller marks the shares that are here in the same transaction.
   *
   * @param claims of which is known that they were made, by whomever
   */
  LedgerPosition beginAnew(Database db, long claims) throws SQLException {
    return put(db, current(db).reopened(claims, fresh()));
  }

  /**
   * One more thing that a copy of before has forgotten: a session that was claimed or declined, a
   * contribution that was withheld, a word that a request is never signed.
   *
   * @param name of it, 32 bytes
   */
  LedgerPosition claim(Database db, ByteString name) throws SQLException {
    LedgerPosition next = current(db).claimed(name);
    db.update(
        "UPDATE start SET claims = ?, hash = ? WHERE mark = ?",
        next.claims(),
        next.hash().toByteArray(),
        next.mark().toByteArray());
    return next;
  }

  /**
   * Goes on in a new log above a position that the ledger had and has forgotten, which the new log
   * names if it is the later one. So nobody who tells of what was forgotten has anything new to
   * say: the caller marks the shares that are here in the same transaction, and those made later
   * are of no such time.
   */
  LedgerPosition learn(Database db, LedgerPosition told) throws SQLException {
    return put(db, current(db).reopened(told, fresh()));
  }

  private static LedgerPosition put(Database db, LedgerPosition next) throws SQLException {
    LedgerLog log = next.log();
    if (next.starts() == 1) {
      db.update(
          "INSERT INTO log (number, id, previous, previous_claims, previous_hash)"
              + " VALUES (?, ?, ?, ?, ?)",
          log.number(),
          log.id().toByteArray(),
          log.previous().toByteArray(),
          log.claims(),
          log.hash().toByteArray());
    }
    db.update(
        "INSERT INTO start (mark, log, starts, base, claims, hash) VALUES (?, ?, ?, ?, ?, ?)",
        next.mark().toByteArray(),
        log.number(),
        next.starts(),
        next.base(),
        next.claims(),
        next.hash().toByteArray());
    return next;
  }

  private byte[] fresh() {
    byte[] fresh = new byte[LedgerPosition.HASH_BYTES];
    random.nextBytes(fresh);
    return fresh;
  }

  /**
   * The ledger remembers that it was there, or the shares of that time are marked already: those of
   * a log before the current one are, and a peer that remembers such a position takes the current
   * one for later.
   */
  static boolean knows(Database db, LedgerPosition told) throws SQLException {
    LedgerPosition now = current(db);
    if (told.log().number() < now.log().number()) {
      return true;
    }
    return told.log().equals(now.log()) && recalls(db, told);
  }

  /** The ledger remembers that it was there, in whatever log. */
  static boolean recalls(Database db, LedgerPosition told) throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT 1 FROM start WHERE mark = ? AND log = ? AND starts = ? AND base = ?"
                    + " AND (claims > ? OR claims = ? AND hash = ?)",
                told.mark().toByteArray(),
                told.log().number(),
                told.starts(),
                told.base(),
                told.claims(),
                told.claims(),
                told.hash().toByteArray())
            .executeQuery()) {
      return row.next();
    }
  }

  static LedgerPosition current(Database db) throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT l.number, l.id, l.previous, l.previous_claims, l.previous_hash, s.starts,"
                    + " s.mark, s.base, s.claims, s.hash FROM start s JOIN log l ON l.number ="
                    + " s.log ORDER BY s.log DESC, s.starts DESC LIMIT 1")
            .executeQuery()) {
      return row.next()
          ? new LedgerPosition(
              new LedgerLog(
                  row.getLong(1), bytes(row, 2), bytes(row, 3), row.getLong(4), bytes(row, 5)),
              row.getLong(6),
              bytes(row, 7),
              row.getLong(8),
              row.getLong(9),
              bytes(row, 10))
          : LedgerPosition.NONE;
    }
  }

  private static ByteString bytes(ResultSet row, int column) throws SQLException {
    return ByteString.copyFrom(row.getBytes(column));
  }
}
