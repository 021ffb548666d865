package io.coterie.coordinator.custody.request;

import io.coterie.platform.error.CustodyException;
import io.coterie.platform.intent.VerifiedIntent;
import java.time.Instant;
import java.util.Optional;

/**
 * The steps in which kinds of requests differ. {@link Requests} has the life cycle around them.
 *
 * @param <Q> the request as it is stored
 * @param <V> the verified intent of a request
 * @param <R> the result that callers wait for
 */
public interface RequestKind<Q extends StoredRequest, V extends VerifiedIntent, R> {

  /**
   * A request in the store.
   *
   * @param isNew whether this call stored it, so that it is this replica's work
   */
  record Claim<Q>(Q request, boolean isNew) {}

  /** As in log lines: "signing". */
  String name();

  /** As in metrics: a constant of {@code CoordinatorMetrics}. */
  String metricLabel();

  /** The class of the intents. */
  Class<V> intents();

  /** Name of the resource that a request with this intent makes or changes. */
  default String resource(V intent) {
    return intent.key();
  }

  /**
   * The request to store for an intent.
   *
   * @param now in microseconds
   * @throws CustodyException if it cannot be accepted
   */
  Q prepare(V intent, Instant now);

  /**
   * Stores a request as this replica's work, or finds the one that the requester made under that
   * id; the database decides.
   *
   * @throws CustodyException if it cannot be accepted
   */
  Claim<Q> store(Q prepared);

  /** The request as it is stored; empty if there is none, or a crash of the database lost it. */
  Optional<Q> find(String requester, String requestId);

  /**
   * Makes a request this replica's work, unless another replica works on it that is there, or may
   * be there ({@link ReplicaStore}).
   *
   * @return as it is stored; empty if it has ended, or is another's work
   */
  Optional<Q> take(Q request);

  /**
   * Gives the run the result of a request that has ended.
   *
   * @return false if it has not ended
   */
  boolean giveEnd(Q stored, Run<R> run);

  /** Whether anyone besides callers waits for the end of a request. */
  default boolean isWatched(Q request) {
    return false;
  }

  /**
   * Works on a request of this replica until it has ended, and gives the run its result.
   *
   * @return false if it has become another replica's work
   */
  boolean work(Run<R> run, Q request, V intent) throws InterruptedException;

  /** Stores that a request of this replica failed without a session, and gives the run that end. */
  void refuse(Run<R> run, Q request, Failure why) throws InterruptedException;
}
