package io.coterie.signer.storage;

import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Multiplication;
import io.coterie.signer.share.KeyTrouble;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Counts the ends of this process in the middle of a multiplication. A peer that can kill the
 * process between a failed check and the exclusion that follows has one guess at this party's
 * secret for each incarnation of it, so each such end counts as a failed check.
 */
final class SqliteUncleanEnds {
  private SqliteUncleanEnds() {}

  /**
   * @param key name
   * @param party id of the peer
   * @param ends of this process in a multiplication with the peer
   */
  record Pair(String key, int epoch, int party, int ends) {}

  /** Joins the transaction of the claim, so it is on disk before the first message. */
  static void begin(Database db, SessionId session, Multiplication multiplication)
      throws SQLException {
    db.update(
        "INSERT INTO open_multiplication (session_id, key, epoch, peers) VALUES (?, ?, ?, ?)",
        session.bytes().toByteArray(),
        multiplication.key(),
        multiplication.epoch(),
        PartyIds.text(multiplication.peers()));
  }

  /** The session multiplies no more. */
  static void end(Database db, SessionId session) throws SQLException {
    db.update(
        "DELETE FROM open_multiplication WHERE session_id = ?", session.bytes().toByteArray());
  }

  /**
   * Counts the end of the incarnation before this one, at the start and before any session: once
   * for each pair of which it left a session open, however many.
   *
   * @return the pairs that are excluded from now on
   */
  static List<Pair> count(Database db, long nowMs) throws SQLException {
    Set<Pair> open = new HashSet<>();
    try (ResultSet rows =
        db.statement(
                "SELECT o.key, o.epoch, o.peers FROM open_multiplication o JOIN key_share s"
                    + " ON s.key = o.key AND s.epoch = o.epoch AND s.state = 'ACTIVE'")
            .executeQuery()) {
      while (rows.next()) {
        for (int party : PartyIds.of(rows.getString(3))) {
          open.add(new Pair(rows.getString(1), rows.getInt(2), party, 1));
        }
      }
    }
    db.update("DELETE FROM open_multiplication");
    for (Pair pair : open) {
      db.update(
          "INSERT INTO unclean_end (key, epoch, party, ends) VALUES (?, ?, ?, 1)"
              + " ON CONFLICT DO UPDATE SET ends = ends + 1",
          pair.key(),
          pair.epoch(),
          pair.party());
    }
    List<Pair> excluded = new ArrayList<>();
    for (Pair pair : pairs(db)) {
      if (pair.ends() >= KeyTrouble.EXCLUDE_AT
          && db.update(
                  "INSERT INTO exclusion (key, party, session_id, excluded_at_ms)"
                      + " VALUES (?, ?, x'', ?) ON CONFLICT DO NOTHING",
                  pair.key(),
                  pair.party(),
                  nowMs)
              == 1) {
        excluded.add(pair);
      }
    }
    return excluded;
  }

  /** All pairs with an end that counts. */
  static List<Pair> pairs(Database db) throws SQLException {
    List<Pair> pairs = new ArrayList<>();
    try (ResultSet rows =
        db.statement("SELECT key, epoch, party, ends FROM unclean_end").executeQuery()) {
      while (rows.next()) {
        pairs.add(new Pair(rows.getString(1), rows.getInt(2), rows.getInt(3), rows.getInt(4)));
      }
    }
    return pairs;
  }

  /** The key has new shares, and guesses about the old ones are worth nothing. */
  static void forget(Database db, String key) throws SQLException {
    db.update("DELETE FROM unclean_end WHERE key = ?", key);
    db.update("DELETE FROM open_multiplication WHERE key = ?", key);
  }
}
