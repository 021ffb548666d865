package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

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

  private final Map<C, Source> holders = new HashMap<>();

  /** They hold places and nobody needs them: each gives way to anybody, the oldest first. */
  private final Set<C> resting = new LinkedHashSet<>();

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
    if (holders.size() + resting.size() >= most && !resting.isEmpty()) {
      C oldest = resting.iterator().next();
      resting.remove(oldest);
      displaced = Optional.of(oldest);
    } else if (holders.size() >= most) {
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
      release(newest);
      displaced = Optional.of(newest);
    }
    add(source, connection);
    return new Outcome.Admitted<>(displaced);
  }

  private void add(Source source, C connection) {
    bySource.computeIfAbsent(source, key -> new ArrayDeque<>()).addLast(connection);
    holders.put(connection, source);
  }

  /** Frees the place of a connection; false if it has none, or none any more. */
  synchronized boolean release(C connection) {
    Source source = holders.remove(connection);
    if (source == null) {
      return resting.remove(connection);
    }
    Deque<C> connections = Objects.requireNonNull(bySource.get(source));
    connections.remove(connection);
    if (connections.isEmpty()) {
      bySource.remove(source);
    }
    return true;
  }

  /** Whether a connection has a place. */
  synchronized boolean holds(C connection) {
    return holders.containsKey(connection) || resting.contains(connection);
  }

  /** The place of a connection, if it still has one, is of that source from now on. */
  synchronized void move(C connection, Source to) {
    if (release(connection)) {
      add(to, connection);
    }
  }

  /** The connection keeps its place, if it still has one, until somebody needs it. */
  synchronized void rest(C connection) {
    if (release(connection)) {
      resting.add(connection);
    }
  }

  private int size(Source source) {
    Deque<C> connections = bySource.get(source);
    return connections == null ? 0 : connections.size();
  }
}
