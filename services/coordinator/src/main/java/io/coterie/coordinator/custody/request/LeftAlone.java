package io.coterie.coordinator.custody.request;

import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.platform.limit.FairPlaces;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Requests of one kind that the database left alone: a statement about each had no answer, so that
 * it may be this replica's while nobody works on it. Each is looked for after a pause, which grows.
 * Thread-safe.
 */
final class LeftAlone {
  private static final Logger log = LoggerFactory.getLogger(LeftAlone.class);

  /**
   * How often a request is looked for that is not stored, since its claim may be under way still,
   * or for which somebody waits here, who may leave it.
   */
  private static final int LOOKS = 5;

  /** The request is being looked for; any other number is of the looks that are left. */
  private static final int LOOKING = 0;

  /** How a look ended. */
  enum Found {
    /** The work on the request has begun, or nothing is to be done. */
    ALL,
    /** The request is not there, or somebody waits for it here. */
    NOTHING_YET,
    /** The database did not answer. */
    NO_ANSWER
  }

  private final ConcurrentHashMap<Run.Key, Integer> looks = new ConcurrentHashMap<>();
  private final FairPlaces places;
  private final Executor threads;
  private final Stopping stopping;
  private final ReplicaTime time;
  private final Function<Run.Key, Found> look;

  /**
   * None yet.
   *
   * @param most places for requests that are left alone, and for claims that may yet be
   * @param look looks for a request once, and goes on with it
   */
  LeftAlone(
      int most,
      Executor threads,
      Stopping stopping,
      ReplicaTime time,
      Function<Run.Key, Found> look) {
    this.places = new FairPlaces(most);
    this.threads = threads;
    this.stopping = stopping;
    this.time = time;
    this.look = look;
  }

  /** A claim begins, which has a place until {@link #claimed}. */
  void claiming(String requester) {
    places.add(requester);
  }

  /** A claim has ended. */
  void claimed(String requester) {
    places.giveBack(requester);
  }

  /** Whether there is a place for each claim and for each request that is left alone. */
  boolean isEnough() {
    return places.isEnough();
  }

  /** Whether the requester's last claim would leave the others their places. */
  boolean isWithin(String requester) {
    return places.isWithin(requester);
  }

  /** Looks for a request after a pause. A replica that stops leaves it to the others. */
  void add(Run.Key key) {
    if (!stopping.hasBegun() && looks.put(key, LOOKS) == null) {
      places.add(key.requester());
      threads.execute(() -> lookFor(key));
    }
  }

  private void lookFor(Run.Key key) {
    Pace pace = Pace.ofReturns(stopping, time);
    try {
      do {
        pace.pause();
      } while (!stopping.hasBegun() && lookOnce(key));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      places.giveBack(key.requester());
    }
  }

  /** Whether it is to be looked for once more. */
  private boolean lookOnce(Run.Key key) {
    Integer left = looks.put(key, LOOKING);
    Found found = Found.NOTHING_YET;
    try {
      found = look.apply(key);
    } catch (RuntimeException e) {
      log.error("a request that the database left alone cannot be looked for", e);
    }
    Integer next = next(found, left == null ? LOOKS : left);
    // If it was left alone again meanwhile, the looks begin anew.
    return looks.computeIfPresent(key, (_, now) -> now == LOOKING ? next : now) != null;
  }

  /** How many looks are left after one; null if none is. */
  private static @Nullable Integer next(Found found, int left) {
    return switch (found) {
      case ALL -> null;
      case NOTHING_YET -> left > 1 ? left - 1 : null;
      case NO_ANSWER -> left;
    };
  }
}
