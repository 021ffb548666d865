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
import java.util.function.Supplier;

/**
 * The holds of this party. One of the operator is in force at once and on disk soon after, and it
 * is lifted once that is on disk; each is in the audit trail with its reason. Frozen keys are rows
 * of the same table; {@link SqliteExclusions} has them in memory, because a key must be frozen also
 * while the disk takes nothing.
 */
final class SqliteHolds implements Holds {
  private final PartyFile file;
  private final SqliteAudit.Chain audit;
  private final Clock clock;

  private final Supplier<List<Hold>> freezes;

  /** The operator's. Changed in one step under {@link #changing}; readers take no lock. */
  private volatile List<Hold> memory;

  private final Object changing = new Object();

  /**
   * @param freezes the frozen keys in memory
   */
  SqliteHolds(PartyFile file, SqliteAudit.Chain audit, Clock clock, Supplier<List<Hold>> freezes) {
    this.file = file;
    this.audit = audit;
    this.clock = clock;
    this.freezes = freezes;
    this.memory = file.read(db -> read(db, Hold.Cause.OPERATOR));
  }

  @Override
  public List<Hold> all() {
    return all(memory, freezes.get());
  }

  /** Both, in the order of their scopes. */
  static List<Hold> all(List<Hold> operators, List<Hold> freezes) {
    if (freezes.isEmpty()) {
      return operators;
    }
    List<Hold> all = new ArrayList<>(operators);
    all.addAll(freezes);
    all.sort(Comparator.comparing((Hold hold) -> hold.scope().text()).thenComparing(Hold::cause));
    return List.copyOf(all);
  }

  /**
   * Freezes a key in a transaction; says how many rows that adds.
   *
   * @param nowMs counts if it is not known since when it is frozen
   */
  static int freeze(Database db, Hold freeze, long nowMs) throws SQLException {
    Instant since = freeze.since();
    return db.update(
        "INSERT INTO hold (scope, cause, reason, since_ms) VALUES (?, 'FREEZE', ?, ?)"
            + " ON CONFLICT DO NOTHING",
        freeze.scope().text(),
        freeze.reason(),
        since == null ? nowMs : since.toEpochMilli());
  }

  /** Lifts the freeze of a key in a transaction; false if it is not frozen on disk. */
  static boolean unfreeze(Database db, String key) throws SQLException {
    return db.update("DELETE FROM hold WHERE scope = ? AND cause = 'FREEZE'", key) == 1;
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
                  "INSERT INTO hold (scope, cause, reason, since_ms) VALUES (?, 'OPERATOR', ?, ?)"
                      + " ON CONFLICT (scope, cause) DO UPDATE"
                      + " SET reason = excluded.reason, since_ms = excluded.since_ms",
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

  /** Lifts a hold of the operator; false if there is none of that scope. */
  CompletionStage<Boolean> lift(Hold.Scope scope, String reason) {
    List<Hold> known = memory;
    return file.writer()
        .submitVital(
            db -> {
              boolean lifted =
                  db.update("DELETE FROM hold WHERE scope = ? AND cause = 'OPERATOR'", scope.text())
                      == 1;
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

  /** Those of a cause on disk, in the order of their scopes. */
  static List<Hold> read(Database db, Hold.Cause cause) throws SQLException {
    List<Hold> holds = new ArrayList<>();
    try (ResultSet row =
        db.statement(
                "SELECT scope, reason, since_ms FROM hold WHERE cause = ? ORDER BY scope",
                cause.name())
            .executeQuery()) {
      while (row.next()) {
        holds.add(
            new Hold(
                new Hold.Scope(row.getString(1)),
                cause,
                row.getString(2),
                Instant.ofEpochMilli(row.getLong(3))));
      }
    }
    return List.copyOf(holds);
  }
}
