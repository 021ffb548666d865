package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.LinkedHashMap;
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
  private final boolean forNewcomers;

  /** The source that has had places for longest is first. */
  private final Map<Source, Deque<C>> bySource = new LinkedHashMap<>();

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

  /** Places that are kept while nobody else has fewer. */
  Places(int most) {
    this(most, false);
  }

  /**
   * @param most places
   * @param forNewcomers whether a source that has none gets one even if all others have only one:
   *     that of the source that has had its own for longest
   */
  Places(int most, boolean forNewcomers) {
    this.most = most;
    this.forNewcomers = forNewcomers;
  }

  synchronized Outcome<C> take(Source source, C connection) {
    Optional<C> displaced = Optional.empty();
    if (taken >= most) {
      Optional<Map.Entry<Source, Deque<C>>> largest =
          bySource.entrySet().stream()
              .max(Comparator.comparingInt(entry -> entry.getValue().size()));
      if (largest.isEmpty() || size(source) + 1 >= largest.get().getValue().size()) {
        if (!forNewcomers || size(source) > 0) {
          return new Outcome.Refused<>();
        }
        largest = bySource.entrySet().stream().findFirst();
      }
      C newest = largest.orElseThrow().getValue().getLast();
      release(largest.orElseThrow().getKey(), newest);
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
