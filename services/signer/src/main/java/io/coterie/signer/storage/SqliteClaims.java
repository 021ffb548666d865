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
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Claims of sessions and requests. Claiming twice fails by the primary keys of their tables, not by
 * a check in this program.
 */
final class SqliteClaims implements ClaimLedger {
  private static final Logger log = LoggerFactory.getLogger(SqliteClaims.class);

  /**
   * After the time of its id a request is kept for this long: a day longer than it lives, so that
   * the ledger's own time can follow a wrong clock for four days before it forgets too early.
   */
  private static final Duration KEPT = VerifiedIntent.MAX_LIFE.plus(Duration.ofDays(1));

  /** Equal to no session id. */
  private static final byte[] NO_SESSION = new byte[0];

  private final PartyFile file;
  private final SqliteLedger ledger;
  private final SqliteRecords records;
  private final SqliteAudit.Chain audit;
  private final Clock clock;
  private final long minFree;
  private final NotedCounter counter;

  /** Whether a step of forgetting waits to be written; one at a time. */
  private final AtomicBoolean forgetting = new AtomicBoolean();

  /**
   * @param minFree bytes of the disk that no claim may take
   * @param counter follows the claims
   */
  SqliteClaims(
      PartyFile file,
      SqliteLedger ledger,
      SqliteRecords records,
      SqliteAudit.Chain audit,
      Clock clock,
      long minFree,
      NotedCounter counter) {
    this.file = file;
    this.ledger = ledger;
    this.records = records;
    this.audit = audit;
    this.clock = clock;
    this.minFree = minFree;
    this.counter = counter;
    if (file.read(db -> db.count("SELECT made_ms FROM ledger")) == 0) {
      file.writer()
          .submit(db -> SqliteLedger.made(db, clock.instant()))
          .toCompletableFuture()
          .join();
    }
  }

  @Override
  public CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted) {
    return claiming(
        db -> {
          if (SqliteLedger.isFenced(db, claim.requestId())) {
            return Moved.not(Outcome.FENCED);
          }
          byte[] digest = claim.intentDigest().toByteArray();
          boolean newRequest =
              db.update(
                      "INSERT INTO claimed_request (requester, request_id, intent_digest)"
                          + " VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                      claim.requester(),
                      claim.requestId(),
                      digest)
                  == 1;
          if (!newRequest) {
            Request known = request(db, claim.requester(), claim.requestId());
            if (known == null || known.never()) {
              return Moved.not(Outcome.NEVER);
            }
            if (!Arrays.equals(digest, known.digest())) {
              return Moved.not(Outcome.REQUEST_ID_REUSED);
            }
          }
          // The requester has signed one request: sessions after its first are the coordinator's.
          @Nullable String account = newRequest ? claim.requester() : claim.again();
          if (account == null) {
            return Moved.not(Outcome.ORDERED_TOO_OFTEN);
          }
          if (!claimSession(db, claim.session(), claim.requester(), claim.requestId(), account)) {
            if (newRequest) {
              // Nothing was done for the request, so this party can still say that nothing will be.
              db.update(
                  "DELETE FROM claimed_request WHERE requester = ? AND request_id = ?",
                  claim.requester(),
                  claim.requestId());
            }
            return Moved.not(Outcome.SESSION_REPLAYED);
          }
          if (newRequest) {
            keep(db, digest, account, claim.signedIntent());
          }
          LedgerPosition position = ledger.claim(db, claim.session().bytes());
          if (claim.binding() != null && !bind(db, claim.binding(), claim.instead())) {
            // The session will not be run later either.
            db.update(
                "UPDATE claimed_session SET requester = ?, request_id = ? WHERE session_id = ?",
                NOBODY,
                NOBODY,
                claim.session().bytes().toByteArray());
            return new Moved<>(Outcome.REQUEST_BOUND, position);
          }
          multiplies(db, claim.session(), claim.multiplication());
          audit.append(db, accepted);
          return new Moved<>(Outcome.CLAIMED, position);
        });
  }

  @Override
  public CompletionStage<Outcome> claimSession(
      SessionId session, String account, @Nullable Multiplication multiplication) {
    return claiming(
        db -> {
          if (!claimSession(db, session, NOBODY, NOBODY, account)) {
            return Moved.not(Outcome.SESSION_REPLAYED);
          }
          multiplies(db, session, multiplication);
          return new Moved<>(Outcome.CLAIMED, ledger.claim(db, session.bytes()));
        });
  }

  /** An answer with the position of the ledger after it; none if it was not moved. */
  private record Moved<T>(T answer, LedgerPosition position) {
    static <T> Moved<T> not(T answer) {
      return new Moved<>(answer, LedgerPosition.NONE);
    }
  }

  private <T> CompletionStage<T> moving(CompletionStage<Moved<T>> write) {
    return write.thenApply(
        moved -> {
          ledger.committed(moved.position());
          return moved.answer();
        });
  }

  private CompletionStage<Outcome> claiming(GroupCommit.Write<Moved<Outcome>> claim) {
    return moving(file.writer().submit(claim));
  }

  private static void multiplies(
      Database db, SessionId session, @Nullable Multiplication multiplication) throws SQLException {
    if (multiplication != null) {
      SqliteUncleanEnds.begin(db, session, multiplication);
    }
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
  public CompletionStage<Boolean> decline(
      SessionId session, String account, @Nullable String requestId) {
    return moving(
        file.writer()
            .submit(
                db -> {
                  if (!mayHaveForgotten(db, requestId)
                      && claimSession(db, session, NOBODY, NOBODY, account)) {
                    return new Moved<>(true, ledger.claim(db, session.bytes()));
                  }
                  long before =
                      db.count(
                          "SELECT count(*) FROM claimed_session WHERE session_id = ? AND requester"
                              + " = ?",
                          session.bytes().toByteArray(),
                          NOBODY);
                  return Moved.not(before == 1);
                }));
  }

  @Override
  public CompletionStage<?> withhold(String requester, String requestId, SessionId session) {
    // It is about to be said, and a lost write could not be told from one that was not made.
    return moving(
        file.writer()
            .submitVital(
                db -> {
                  boolean there =
                      db.update(
                              "UPDATE bound_request SET envelope = x'' WHERE requester = ? AND"
                                  + " request_id = ? AND session_id = ? AND envelope <> x''",
                              requester,
                              requestId,
                              session.bytes().toByteArray())
                          == 1;
                  // A copy of before would give it, so others remember that this was later.
                  return there
                      ? new Moved<>(true, ledger.claim(db, session.bytes()))
                      : Moved.not(false);
                }));
  }

  @Override
  public boolean isFenced(String requestId) {
    return file.read(db -> SqliteLedger.isFenced(db, requestId));
  }

  /** Whether a session of a request may have been run before the store went back. */
  private boolean mayHaveForgotten(Database db, @Nullable String requestId) throws SQLException {
    return requestId == null
        ? SqliteLedger.fence(db).isAfter(clock.instant().minus(VerifiedIntent.MAX_LIFE))
        : SqliteLedger.isFenced(db, requestId);
  }

  /**
   * The word and the claims of a request share one row of its table, so its primary key lets only
   * one of them be the first.
   */
  @Override
  public CompletionStage<Never> never(
      String requester,
      String requestId,
      @Nullable SessionId over,
      ByteString cancellation,
      ByteString digest,
      AuditEvent said) {
    return moving(
        file.writer()
            .submit(
                db -> {
                  Never already = already(db, requester, requestId, over);
                  if (already != null) {
                    return Moved.not(already);
                  }
                  db.update(
                      "INSERT INTO claimed_request (requester, request_id, intent_digest, never)"
                          + " VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET never = 1",
                      requester,
                      requestId,
                      digest.toByteArray());
                  db.update(
                      "DELETE FROM bound_request WHERE requester = ? AND request_id = ?",
                      requester,
                      requestId);
                  keep(db, digest.toByteArray(), requester, cancellation);
                  audit.append(db, said);
                  // A copy of before would sign, so others remember that this was later.
                  return new Moved<>(new Never.Said(true), ledger.claim(db, digest));
                }));
  }

  @Override
  public Optional<Never> neverAlready(
      String requester, String requestId, @Nullable SessionId over) {
    return file.read(db -> Optional.ofNullable(already(db, requester, requestId, over)));
  }

  private static @Nullable Never already(
      Database db, String requester, String requestId, @Nullable SessionId over)
      throws SQLException {
    if (SqliteLedger.isFenced(db, requestId) || SqliteLedger.isOfBefore(db, requestId)) {
      return new Never.Forgotten();
    }
    Request known = request(db, requester, requestId);
    if (known != null && known.never()) {
      return new Never.Said(false);
    }
    return known != null && !isBoundTo(db, requester, requestId, over)
        ? new Never.Claimed(ByteString.copyFrom(known.digest()))
        : null;
  }

  /** Whether a request is bound to a session; to none if that is null. */
  private static boolean isBoundTo(
      Database db, String requester, String requestId, @Nullable SessionId session)
      throws SQLException {
    return session != null
        && db.count(
                "SELECT count(*) FROM bound_request WHERE requester = ? AND request_id = ? AND"
                    + " session_id = ?",
                requester,
                requestId,
                session.bytes().toByteArray())
            == 1;
  }

  private static void keep(Database db, byte[] digest, String account, ByteString signedIntent)
      throws SQLException {
    db.update(
        "INSERT INTO kept_intent (intent_digest, ran_ms, account, signed_intent) VALUES (?, "
            + SqliteLedger.RAN_MS
            + ", ?, ?) ON CONFLICT DO NOTHING",
        digest,
        account,
        signedIntent.toByteArray());
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
        .submit(
            db -> {
              db.update("UPDATE ledger_time SET ran_ms = ran_ms + ?", running.toMillis());
              return reached(db, running);
            })
        .whenComplete(
            (_, failure) -> {
              if (failure != null) {
                log.warn("the time of the ledger could not be written", failure);
              }
            });
    forgetSome();
    records.forget();
  }

  private void forgetSome() {
    if (forgetting.compareAndSet(false, true)) {
      file.writer().submit(this::forgetDead).whenComplete(this::forgotten);
    }
  }

  private int forgetDead(Database db) throws SQLException {
    Instant dead = forgottenBefore(db);
    // An id that may have been forgotten is not claimed later, if the clock is set back.
    SqliteLedger.fence(db, dead);
    return forget(db, dead);
  }

  /** The time of which requests are forgotten: no id of before it can be used. */
  static Instant forgottenBefore(Database db) throws SQLException {
    return Instant.ofEpochMilli(Math.max(0, SqliteLedger.reached(db).minus(KEPT).toEpochMilli()));
  }

  private void forgotten(@Nullable Integer number, @Nullable Throwable failure) {
    forgetting.set(false);
    if (failure != null) {
      log.warn("requests could not be forgotten", failure);
    } else if (number != null && number == ForgettingStep.ROWS && file.mayForget()) {
      forgetSome();
    }
  }

  /**
   * The ledger's own time, which catches up with the clock a quarter faster than it goes on, and
   * never goes back.
   */
  private long reached(Database db, Duration running) throws SQLException {
    long now = clock.millis();
    long stored = db.count("SELECT reached_ms FROM ledger_time");
    long before = stored == 0 ? now : stored;
    long next = before + running.toMillis() + running.toMillis() / 4;
    long reached = Math.max(before, Math.min(now, next));
    db.update("UPDATE ledger_time SET reached_ms = ?", reached);
    return reached;
  }

  /**
   * @param dead no id of before it can be used
   * @return how many were forgotten, {@link ForgettingStep.ROWS} at most
   */
  private static int forget(Database db, Instant dead) throws SQLException {
    String first = RequestId.first(dead);
    int most = ForgettingStep.ROWS;
    int forgotten = forget(db, "bound_request", first, most);
    return forgotten + forget(db, "claimed_request", first, most - forgotten);
  }

  /**
   * Forgets by requester, because the keys of both tables begin with it.
   *
   * @param first id that is kept
   */
  private static int forget(Database db, String table, String first, int most) throws SQLException {
    int forgotten = 0;
    String requester = next(db, table, NOBODY);
    while (requester != null && forgotten < most) {
      forgotten +=
          db.update(
              "DELETE FROM %1$s WHERE requester = ?1 AND request_id IN (SELECT request_id FROM %1$s"
                      .formatted(table)
                  + " WHERE requester = ?1 AND request_id < ?2 LIMIT ?3)",
              requester,
              first,
              most - forgotten);
      requester = next(db, table, requester);
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
  public Room room() {
    return file.read(
        db -> {
          Map<String, Long> kept = new HashMap<>();
          try (ResultSet row =
              db.statement("SELECT account, bytes FROM kept_bytes").executeQuery()) {
            while (row.next()) {
              kept.put(row.getString(1), row.getLong(2));
            }
          }
          // Pages of rows that were deleted are taken again before the file grows.
          long inFile = db.count("PRAGMA page_size") * db.count("PRAGMA freelist_count");
          return new Room(kept, file.free(), inFile, minFree);
        });
  }

  @Override
  public LedgerPosition position() {
    return ledger.position();
  }

  @Override
  public boolean remembers(LedgerPosition told) {
    return file.read(db -> SqliteLedger.knows(db, told));
  }

  @Override
  public boolean recalls(LedgerPosition told) {
    return file.read(db -> SqliteLedger.recalls(db, told));
  }

  @Override
  public void noteOutside() {
    counter.follow(ledger.position().claims());
  }

  private static boolean claimSession(
      Database db, SessionId session, String requester, String requestId, String account)
      throws SQLException {
    return db.update(
            "INSERT INTO claimed_session (session_id, requester, request_id, account, ran_ms)"
                + " VALUES (?, ?, ?, ?, "
                + SqliteLedger.RAN_MS
                + ") ON CONFLICT DO NOTHING",
            session.bytes().toByteArray(),
            requester,
            requestId,
            account)
        == 1;
  }

  /**
   * A request that this party knows.
   *
   * @param digest of its intent, or of the one that cancelled it
   * @param never whether the party has said that it never signs for it
   */
  private record Request(byte[] digest, boolean never) {}

  private static @Nullable Request request(Database db, String requester, String requestId)
      throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT intent_digest, never FROM claimed_request WHERE requester = ? AND"
                    + " request_id = ?",
                requester,
                requestId)
            .executeQuery()) {
      return row.next() ? new Request(row.getBytes(1), row.getBoolean(2)) : null;
    }
  }
}
