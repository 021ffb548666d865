package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Places for connections of one kind. When all are taken, a source that has fewer than another gets
 * one from it: the newest of the source that has most.
 *
 * @param <C> a connection
 */
final class Places<C> {
  private final int most;
  private final Map<Source, Deque<C>> bySource = new HashMap<>();
  private int taken;

  /** How an application for a place ended. */
  sealed interface Outcome<C> {
    /**
     * @param displaced the connection that lost its place, to be closed
     */
    record Admitted<C>(Optional<C> displaced) implements Outcome<C> {}

    /** All places are taken, by sources that have no more than this one. */
    record Refused<C>() implements Outcome<C> {}
  }

  /**
   * @param most places
   */
  Places(int most) {
    this.most = most;
  }

  synchronized Outcome<C> take(Source source, C connection) {
    Optional<C> displaced = Optional.empty();
    if (taken >= most) {
      Optional<Map.Entry<Source, Deque<C>>> largest =
          bySource.entrySet().stream()
              .max(Comparator.comparingInt(entry -> entry.getValue().size()));
      if (largest.isEmpty() || size(source) + 1 >= largest.get().getValue().size()) {
        return new Outcome.Refused<>();
      }
      C newest = largest.get().getValue().getLast();
      release(largest.get().getKey(), newest);
      displaced = Optional.of(newest);
    }
    bySource.computeIfAbsent(source, key -> new ArrayDeque<>()).addLast(connection);
    taken++;
    return new Outcome.Admitted<>(displaced);
  }

  /** Frees the place of a connection, if it still has one. */
  synchronized void release(Source source, C connection) {
    Deque<C> connections = bySource.get(source);
    if (connections != null && connections.remove(connection)) {
      taken--;
      if (connections.isEmpty()) {
        bySource.remove(source);
      }
    }
  }

  private int size(Source source) {
    Deque<C> connections = bySource.get(source);
    return connections == null ? 0 : connections.size();
  }
}
