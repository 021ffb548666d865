package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Claims of sessions and requests. Claiming twice fails by the primary keys of their tables, not by
 * a check in this program.
 */
final class SqliteClaims implements ClaimLedger {
  /** Requester and request id of a session that nobody asked for. */
  private static final String NOBODY = "";

  /**
   * After the time of its id a request is kept for this long: a day longer than it lives, so that
   * the ledger's own time can follow a wrong clock for four days before it forgets too early.
   */
  private static final Duration KEPT = VerifiedIntent.MAX_LIFE.plus(Duration.ofDays(1));

  /** Requests of one requester that are forgotten in one transaction, which others wait for. */
  private static final int FORGOTTEN_AT_ONCE = 10_000;

  /** Equal to no session id. */
  private static final byte[] NO_SESSION = new byte[0];

  private final PartyFile file;
  private final SqliteLedger ledger;
  private final SqliteAudit.Chain audit;
  private final Clock clock;

  SqliteClaims(PartyFile file, SqliteLedger ledger, SqliteAudit.Chain audit, Clock clock) {
    this.file = file;
    this.ledger = ledger;
    this.audit = audit;
    this.clock = clock;
  }

  @Override
  public CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted) {
    return claiming(
        db -> {
          if (ledger.fences(claim.requestId())) {
            return Claimed.not(Outcome.FENCED);
          }
          long now = clock.millis();
          byte[] digest = claim.intentDigest().toByteArray();
          boolean newRequest =
              db.update(
                      "INSERT INTO claimed_request (requester, request_id, intent_digest,"
                          + " claimed_at_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                      claim.requester(),
                      claim.requestId(),
                      digest,
                      now)
                  == 1;
          if (!newRequest && !Arrays.equals(digest, boundTo(db, claim))) {
            return Claimed.not(Outcome.REQUEST_ID_REUSED);
          }
          if (!claimSession(db, claim.session(), claim.requester(), claim.requestId(), now)) {
            return Claimed.not(Outcome.SESSION_REPLAYED);
          }
          if (claim.binding() != null && !bind(db, claim.binding(), claim.instead())) {
            // The session will not be run later either.
            db.update(
                "UPDATE claimed_session SET requester = ?, request_id = ? WHERE session_id = ?",
                NOBODY,
                NOBODY,
                claim.session().bytes().toByteArray());
            return Claimed.not(Outcome.REQUEST_BOUND);
          }
          LedgerPosition position = multiplies(db, claim.session(), claim.multiplication());
          audit.append(db, accepted);
          return new Claimed(Outcome.CLAIMED, position);
        });
  }

  @Override
  public CompletionStage<Outcome> claimSession(
      SessionId session, @Nullable Multiplication multiplication) {
    return claiming(
        db -> {
          if (!claimSession(db, session, NOBODY, NOBODY, clock.millis())) {
            return Claimed.not(Outcome.SESSION_REPLAYED);
          }
          return new Claimed(Outcome.CLAIMED, multiplies(db, session, multiplication));
        });
  }

  /**
   * @param position of the ledger after it
   */
  private record Claimed(Outcome outcome, LedgerPosition position) {
    static Claimed not(Outcome outcome) {
      return new Claimed(outcome, LedgerPosition.NONE);
    }
  }

  private CompletionStage<Outcome> claiming(GroupCommit.Write<Claimed> claim) {
    return file.writer()
        .submit(claim)
        .thenApply(
            claimed -> {
              ledger.committed(claimed.position());
              return claimed.outcome();
            });
  }

  private LedgerPosition multiplies(
      Database db, SessionId session, @Nullable Multiplication multiplication) throws SQLException {
    if (multiplication == null) {
      return LedgerPosition.NONE;
    }
    SqliteUncleanEnds.begin(db, session, multiplication);
    return ledger.claim(db);
  }

  @Override
  public void multiplied(SessionId session) {
    file.writer()
        .submitLazily(
            db -> {
              SqliteUncleanEnds.end(db, session);
              return true;
            });
  }

  /** One session a request: another one takes its place only if the caller knows which it was. */
  private static boolean bind(Database db, Binding binding, @Nullable SessionId instead)
      throws SQLException {
    return db.update(
            "INSERT INTO bound_request (requester, request_id, session_id, order_bytes, envelope,"
                + " not_after_ms) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET session_id ="
                + " excluded.session_id, order_bytes = excluded.order_bytes, envelope ="
                + " excluded.envelope WHERE session_id = ?",
            binding.requester(),
            binding.requestId(),
            binding.session().bytes().toByteArray(),
            binding.order().toByteArray(),
            binding.envelope().toByteArray(),
            binding.notAfter().toEpochMilli(),
            instead == null ? NO_SESSION : instead.bytes().toByteArray())
        == 1;
  }

  @Override
  public CompletionStage<Boolean> decline(SessionId session) {
    return file.writer()
        .submit(
            db -> {
              if (claimSession(db, session, NOBODY, NOBODY, clock.millis())) {
                return true;
              }
              return db.count(
                      "SELECT count(*) FROM claimed_session WHERE session_id = ? AND requester = ?",
                      session.bytes().toByteArray(),
                      NOBODY)
                  == 1;
            });
  }

  @Override
  public List<Binding> bindings(int limit) {
    return file.read(
        db -> {
          List<Binding> bindings = new ArrayList<>();
          try (ResultSet row =
              db.statement(
                      "SELECT * FROM bound_request WHERE not_after_ms >= ? ORDER BY not_after_ms"
                          + " DESC LIMIT ?",
                      clock.millis(),
                      limit)
                  .executeQuery()) {
            while (row.next()) {
              bindings.add(
                  new Binding(
                      row.getString("requester"),
                      row.getString("request_id"),
                      new SessionId(ByteString.copyFrom(row.getBytes("session_id"))),
                      ByteString.copyFrom(row.getBytes("order_bytes")),
                      ByteString.copyFrom(row.getBytes("envelope")),
                      Instant.ofEpochMilli(row.getLong("not_after_ms"))));
            }
          }
          return bindings.reversed();
        });
  }

  @Override
  public void forgetRequests(Duration running) {
    file.writer()
        .submitLazily(
            db -> {
              long dead = reached(db, running) - KEPT.toMillis();
              String first = RequestId.first(Instant.ofEpochMilli(Math.max(0, dead)));
              return forget(db, "bound_request", first) + forget(db, "claimed_request", first);
            });
  }

  /** The ledger's own time, which catches up with the clock a quarter faster than it goes on. */
  private long reached(Database db, Duration running) throws SQLException {
    long now = clock.millis();
    long before = db.count("SELECT coalesce((SELECT reached_ms FROM ledger_time), ?)", now);
    long reached = Math.min(now, before + running.toMillis() + running.toMillis() / 4);
    db.update(
        "INSERT INTO ledger_time (id, reached_ms) VALUES (1, ?) ON CONFLICT DO UPDATE SET"
            + " reached_ms = excluded.reached_ms",
        reached);
    return reached;
  }

  /**
   * By requester, because the keys of both tables begin with it.
   *
   * @param first id that is kept
   */
  private static int forget(Database db, String table, String first) throws SQLException {
    int forgotten = 0;
    String after = NOBODY;
    for (String requester = next(db, table, after);
        requester != null;
        requester = next(db, table, after)) {
      forgotten +=
          db.update(
              "DELETE FROM %1$s WHERE requester = ?1 AND request_id IN (SELECT request_id FROM %1$s"
                      .formatted(table)
                  + " WHERE requester = ?1 AND request_id < ?2 LIMIT ?3)",
              requester,
              first,
              FORGOTTEN_AT_ONCE);
      after = requester;
    }
    return forgotten;
  }

  private static @Nullable String next(Database db, String table, String after)
      throws SQLException {
    try (ResultSet row =
        db.statement("SELECT min(requester) FROM " + table + " WHERE requester > ?", after)
            .executeQuery()) {
      return row.next() ? row.getString(1) : null;
    }
  }

  @Override
  public LedgerPosition position() {
    return ledger.position();
  }

  @Override
  public boolean remembers(LedgerPosition told) {
    return file.read(db -> SqliteLedger.knows(db, told));
  }

  private static boolean claimSession(
      Database db, SessionId session, String requester, String requestId, long nowMs)
      throws SQLException {
    return db.update(
            "INSERT INTO claimed_session (session_id, requester, request_id, claimed_at_ms)"
                + " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            session.bytes().toByteArray(),
            requester,
            requestId,
            nowMs)
        == 1;
  }

  private static byte[] boundTo(Database db, Claim claim) throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT intent_digest FROM claimed_request WHERE requester = ? AND request_id = ?",
                claim.requester(),
                claim.requestId())
            .executeQuery()) {
      return row.next() ? row.getBytes(1) : new byte[0];
    }
  }
}
