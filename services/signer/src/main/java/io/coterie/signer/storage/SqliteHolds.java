package io.coterie.signer.storage;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.Holds;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;

/**
 * The operator's holds: one is in force at once and on disk soon after, and it is lifted once that
 * is on disk. Each is in the audit trail with its reason.
 */
final class SqliteHolds implements Holds {
  private final PartyFile file;
  private final SqliteAudit.Chain audit;
  private final Clock clock;

  /** Changed in one step under {@link #changing}; readers take no lock. */
  private volatile List<Hold> memory;

  private final Object changing = new Object();

  SqliteHolds(PartyFile file, SqliteAudit.Chain audit, Clock clock) {
    this.file = file;
    this.audit = audit;
    this.clock = clock;
    this.memory = file.read(SqliteHolds::read);
  }

  @Override
  public List<Hold> all() {
    return memory;
  }

  /**
   * Sets a hold, or gives the one of its scope another reason.
   *
   * @return completes once it is on disk; it is in force before, and stays so if that fails
   */
  CompletionStage<Hold> hold(Hold.Scope scope, String reason) {
    Instant since = clock.instant().truncatedTo(ChronoUnit.MILLIS);
    Hold hold = new Hold(scope, Hold.Cause.OPERATOR, reason, since);
    change(all -> all.put(scope, hold));
    return file.writer()
        .submitVital(
            db -> {
              db.update(
                  "INSERT INTO hold (scope, reason, since_ms) VALUES (?, ?, ?) ON CONFLICT (scope)"
                      + " DO UPDATE SET reason = excluded.reason, since_ms = excluded.since_ms",
                  scope.text(),
                  reason,
                  since.toEpochMilli());
              audit.append(
                  db,
                  AuditEvent.of(
                      "operator",
                      "hold.set",
                      "ok",
                      Map.of("scope", scope.text(), "reason", reason)));
              return hold;
            });
  }

  /** Lifts a hold; false if there is none of that scope. */
  CompletionStage<Boolean> lift(Hold.Scope scope, String reason) {
    List<Hold> known = memory;
    return file.writer()
        .submitVital(
            db -> {
              boolean lifted = db.update("DELETE FROM hold WHERE scope = ?", scope.text()) == 1;
              if (lifted) {
                audit.append(
                    db,
                    AuditEvent.of(
                        "operator",
                        "hold.lift",
                        "ok",
                        Map.of("scope", scope.text(), "reason", reason)));
              }
              return lifted;
            })
        .whenComplete(
            (_, failure) -> {
              if (failure == null) {
                // Not one that was set meanwhile.
                change(
                    all ->
                        all.values().removeIf(h -> h.scope().equals(scope) && known.contains(h)));
              }
            });
  }

  private void change(Consumer<Map<Hold.Scope, Hold>> change) {
    synchronized (changing) {
      Map<Hold.Scope, Hold> all = new TreeMap<>(Comparator.comparing(Hold.Scope::text));
      memory.forEach(hold -> all.put(hold.scope(), hold));
      change.accept(all);
      memory = List.copyOf(all.values());
    }
  }

  /** In the order of their scopes. */
  static List<Hold> read(Database db) throws SQLException {
    List<Hold> holds = new ArrayList<>();
    try (ResultSet row =
        db.statement("SELECT scope, reason, since_ms FROM hold ORDER BY scope").executeQuery()) {
      while (row.next()) {
        holds.add(
            new Hold(
                new Hold.Scope(row.getString(1)),
                Hold.Cause.OPERATOR,
                row.getString(2),
                Instant.ofEpochMilli(row.getLong(3))));
      }
    }
    return List.copyOf(holds);
  }
}
