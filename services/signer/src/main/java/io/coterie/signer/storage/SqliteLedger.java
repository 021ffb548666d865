package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerPosition;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicReference;
import java.util.random.RandomGenerator;

/**
 * Where this party's own ledger has been: one row for each start, the current one last, and one for
 * each start of a ledger that this file is an older copy of, once somebody has told of it.
 */
final class SqliteLedger {
  private final RandomGenerator random;
  private final AtomicReference<LedgerPosition> position =
      new AtomicReference<>(LedgerPosition.NONE);

  /**
   * @param random marks each start, so that a copy of the file cannot repeat a mark
   */
  SqliteLedger(RandomGenerator random) {
    this.random = random;
  }

  /** On disk. */
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

  /** Whether a request id is of before the file was made: another one may have claimed it. */
  static boolean isOfBefore(Database db, String requestId) throws SQLException {
    Instant made = Instant.ofEpochMilli(db.count("SELECT made_ms FROM ledger"));
    return requestId.compareTo(RequestId.first(made)) < 0;
  }

  /** The ledger's own time as it was last written; 1970 if it never was. */
  static Instant reached(Database db) throws SQLException {
    return Instant.ofEpochMilli(
        db.count("SELECT coalesce((SELECT reached_ms FROM ledger_time), 0)"));
  }

  /** For how long processes have run with this file: the time of records, in ms. */
  static long ran(Database db) throws SQLException {
    return db.count("SELECT coalesce((SELECT ran_ms FROM ledger_time), 0)");
  }

  /** One more start; the position is known when it is on disk. */
  LedgerPosition begin(Database db) throws SQLException {
    return put(db, current(db).next(fresh()));
  }

  /**
   * One more start of a store that is known to have gone back. All that it has forgotten is settled
   * by it, so the caller marks the shares that are here in the same transaction.
   */
  LedgerPosition beginAbove(Database db) throws SQLException {
    LedgerPosition now = current(db);
    return settle(db, put(db, now.above(now, fresh())));
  }

  /** One more session that multiplies. */
  LedgerPosition claim(Database db) throws SQLException {
    db.update(
        "UPDATE start SET claims = claims + 1 WHERE starts = (SELECT max(starts) FROM start)");
    return current(db);
  }

  /**
   * Takes up a position that the ledger had and has forgotten, and goes on above everything that
   * was forgotten with it. So nobody who tells of that has anything new to say: the caller marks
   * the shares that are here in the same transaction, and those made later are of no such time.
   */
  LedgerPosition learn(Database db, LedgerPosition told) throws SQLException {
    LedgerPosition now = current(db);
    db.update(
        "INSERT INTO start (starts, head, base, claims) VALUES (?, ?, ?, ?) ON CONFLICT (head) DO"
            + " UPDATE SET claims = max(claims, excluded.claims)",
        told.starts(),
        told.head().toByteArray(),
        told.base(),
        told.claims());
    return settle(db, put(db, now.above(told, fresh())));
  }

  private static LedgerPosition settle(Database db, LedgerPosition now) throws SQLException {
    db.update("UPDATE ledger SET settled_starts = ?, settled_base = ?", now.starts(), now.base());
    return now;
  }

  private static LedgerPosition put(Database db, LedgerPosition next) throws SQLException {
    db.update(
        "INSERT INTO start (starts, head, base, claims) VALUES (?, ?, ?, ?)",
        next.starts(),
        next.head().toByteArray(),
        next.base(),
        next.claims());
    return next;
  }

  private byte[] fresh() {
    byte[] fresh = new byte[LedgerPosition.HEAD_BYTES];
    random.nextBytes(fresh);
    return fresh;
  }

  /**
   * The ledger remembers that it was there, or the shares of that time are marked already. Of the
   * latter are only positions that a peer takes the settled start for a later one of: with any
   * other the two would contradict each other for ever.
   */
  static boolean knows(Database db, LedgerPosition told) throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT 1 FROM ledger WHERE settled_starts > ? AND settled_base >= ? UNION ALL"
                    + " SELECT 1 FROM start WHERE head = ? AND starts = ? AND claims >= ?",
                told.starts(),
                told.claims(),
                told.head().toByteArray(),
                told.starts(),
                told.claims())
            .executeQuery()) {
      return row.next();
    }
  }

  static LedgerPosition current(Database db) throws SQLException {
    try (ResultSet row =
        db.statement("SELECT starts, head, base, claims FROM start ORDER BY starts DESC LIMIT 1")
            .executeQuery()) {
      return row.next()
          ? new LedgerPosition(
              row.getLong(1), ByteString.copyFrom(row.getBytes(2)), row.getLong(3), row.getLong(4))
          : LedgerPosition.NONE;
    }
  }
}
