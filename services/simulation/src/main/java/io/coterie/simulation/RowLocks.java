package io.coterie.simulation;

import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.signing.SigningRecord;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/** The rows of the database that a statement in progress has locked, as in PostgreSQL. */
final class RowLocks {
  private static final long FOR_EVER_NANOS = Long.MAX_VALUE;

  private final Map<Object, CompletableFuture<Void>> held = new HashMap<>();

  /** The id of the row that a method of a store takes, returns, or returns the id of. */
  static Object row(Object value) {
    return switch (value) {
      case SigningRecord signing -> signing.id();
      case Renewal renewal -> renewal.id();
      default -> value;
    };
  }

  /** The rows that a statement has taken, by its answer. */
  static Collection<Object> rows(Object answer) {
    Stream<?> values =
        switch (answer) {
          case Optional<?> one -> one.stream();
          case Collection<?> all -> all.stream();
          default -> Stream.of();
        };
    return values.map(RowLocks::row).toList();
  }

  boolean isHeld(Object row) {
    return held.containsKey(row);
  }

  /** Waits for the statement that has the row locked, if there is one. */
  void await(Object row, SimulatedThreads process) {
    for (CompletableFuture<Void> end = held.get(row); end != null; end = held.get(row)) {
      boolean _ = process.await(end, FOR_EVER_NANOS);
    }
  }

  /** Locks rows for so long, or until the process is killed. */
  void hold(Collection<Object> rows, long nanos, SimulatedThreads process) {
    CompletableFuture<Void> end = new CompletableFuture<>();
    rows.forEach(row -> held.put(row, end));
    try {
      boolean _ = process.await(new CompletableFuture<>(), nanos);
    } finally {
      held.keySet().removeAll(rows);
      end.complete(null);
    }
  }
}
