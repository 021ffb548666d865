package io.coterie.coordinator.custody.request;

import io.coterie.coordinator.session.ReplicaTime;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;

/**
 * Requests of one kind that the database left alone: a statement about each had no answer, so that
 * it may be this replica's while nobody works on it. Each is looked for after a pause. Thread-safe.
 */
final class LeftAlone {
  /** How often a request is looked for that is not stored: its claim may be under way still. */
  static final int LOOKS = 5;

  /** Looks for a request. */
  @FunctionalInterface
  interface Look {
    /**
     * Looks once, and adds the request again if it may still be left alone.
     *
     * @param looks how many there are with this one, if it is not stored
     */
    void at(Run.Key key, int looks);
  }

  private final ConcurrentHashMap<Run.Key, Integer> keys = new ConcurrentHashMap<>();
  private final Executor threads;
  private final Stopping stopping;
  private final ReplicaTime time;
  private final Look look;

  LeftAlone(Executor threads, Stopping stopping, ReplicaTime time, Look look) {
    this.threads = threads;
    this.stopping = stopping;
    this.time = time;
    this.look = look;
  }

  /** How many there are. */
  int size() {
    return keys.size();
  }

  /** Looks for a request after a pause. A replica that stops leaves it to the others. */
  void add(Run.Key key, int looks) {
    if (!stopping.hasBegun() && keys.put(key, looks) == null) {
      threads.execute(() -> lookFor(key));
    }
  }

  private void lookFor(Run.Key key) {
    try {
      Pace.ofReturns(stopping, time).pause();
      // Before the look: the request may be left alone again from here on, which is another look.
      int looks = Objects.requireNonNull(keys.remove(key));
      if (!stopping.hasBegun()) {
        look.at(key, looks);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
