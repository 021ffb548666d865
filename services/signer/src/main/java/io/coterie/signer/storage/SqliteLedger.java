package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.signer.session.LedgerPosition;
import java.security.SecureRandom;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Where this party's own ledger has been: one row for each start, the current one last, and one for
 * each start of a ledger that this file is an older copy of, once somebody has told of it.
 */
final class SqliteLedger {
  private final SecureRandom random = new SecureRandom();
  private final AtomicReference<LedgerPosition> position =
      new AtomicReference<>(LedgerPosition.NONE);

  /** On disk. */
  LedgerPosition position() {
    return position.get();
  }

  /** The position that a transaction has written is on disk now. */
  void committed(LedgerPosition now) {
    position.accumulateAndGet(now, LedgerPosition::orLater);
  }

  /** One more start; the position is known when it is on disk. */
  LedgerPosition begin(Database db) throws SQLException {
    byte[] fresh = new byte[LedgerPosition.HEAD_BYTES];
    random.nextBytes(fresh);
    LedgerPosition next = current(db).next(fresh);
    db.update(
        "INSERT INTO start (starts, head, base, claims) VALUES (?, ?, ?, ?)",
        next.starts(),
        next.head().toByteArray(),
        next.base(),
        next.claims());
    return next;
  }

  /** One more session that multiplies. */
  LedgerPosition claim(Database db) throws SQLException {
    db.update(
        "UPDATE start SET claims = claims + 1 WHERE starts = (SELECT max(starts) FROM start)");
    return current(db);
  }

  /**
   * Takes up a position that the ledger had and has forgotten, and goes on above it. So nobody who
   * tells of it again has anything new to say.
   */
  LedgerPosition learn(Database db, LedgerPosition told) throws SQLException {
    LedgerPosition now = current(db);
    db.update(
        "INSERT INTO start (starts, head, base, claims) VALUES (?, ?, ?, ?) ON CONFLICT (head) DO UPDATE SET"
            + " claims = max(claims, excluded.claims)",
        told.starts(),
        told.head().toByteArray(),
        told.base(),
        told.claims());
    byte[] fresh = new byte[LedgerPosition.HEAD_BYTES];
    random.nextBytes(fresh);
    LedgerPosition above =
        new LedgerPosition(
                Math.max(now.starts(), told.starts()),
                now.head(),
                now.base(),
                Math.max(now.claims(), told.claims()))
            .next(fresh);
    db.update(
        "INSERT INTO start (starts, head, base, claims) VALUES (?, ?, ?, ?)",
        above.starts(),
        above.head().toByteArray(),
        above.base(),
        above.claims());
    return above;
  }

  /** Whether the ledger remembers that it was there. */
  static boolean knows(Database db, LedgerPosition told) throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT 1 FROM start WHERE head = ? AND starts = ? AND claims >= ?",
                told.head().toByteArray(),
                told.starts(),
                told.claims())
            .executeQuery()) {
      return row.next();
    }
  }

  private static LedgerPosition current(Database db) throws SQLException {
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
