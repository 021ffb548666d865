package io.coterie.messaging.socket;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Ticker;
import io.coterie.messaging.limit.RateLimit;
import io.coterie.messaging.limit.RateLimit.Rate;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.telemetry.MessagingMetrics;
import java.time.Duration;
import java.util.Optional;

/**
 * Decides before the TLS handshake, which is the dearest that a stranger can ask for, whether a
 * connection may stay: each network has a rate of new connections, and they share the places of
 * connections that have not become WebSockets.
 *
 * <p>The edge speaks for many clients. Its connections have places of their own and no rate; each
 * place counts for the client whose request the connection carries, and that client has the rate of
 * new WebSockets. An address is the edge's for {@link #REMEMBERED} after it has shown the edge's
 * certificate.
 *
 * @param <C> a connection
 */
final class Admission<C> {
  private static final Duration REMEMBERED = Duration.ofMinutes(10);
  private static final int MAX_EDGES = 1_000;

  private final RateLimit<Source> rate;
  private final Places<C> places;
  private final Places<C> edgePlaces;
  private final Cache<Source, Boolean> edges;
  private final MessagingMetrics metrics;

  /**
   * @param rate of new connections, for each network
   * @param places of connections that have not become WebSockets
   * @param edgePlaces of those of the edge
   * @param ticker monotonic nanoseconds
   */
  Admission(Rate rate, int places, int edgePlaces, Ticker ticker, MessagingMetrics metrics) {
    this.rate = new RateLimit<>(rate, ticker);
    this.places = new Places<>(places, true);
    this.edgePlaces = new Places<>(edgePlaces, true);
    this.edges =
        Caffeine.newBuilder()
            .ticker(ticker)
            .executor(Runnable::run)
            .expireAfterWrite(REMEMBERED)
            .maximumSize(MAX_EDGES)
            .build();
    this.metrics = metrics;
  }

  /** A connection has come in and has said nothing yet. */
  Places.Outcome<C> admit(Source network, C connection) {
    return edges.getIfPresent(network) == null
        ? admitStranger(network, connection)
        : counted(edgePlaces.take(network, connection));
  }

  private Places.Outcome<C> admitStranger(Source network, C connection) {
    try {
      rate.take(network);
    } catch (RateLimitedException e) {
      metrics.refused("rate");
      return new Places.Outcome.Refused<>();
    }
    return counted(places.take(network, connection));
  }

  private Places.Outcome<C> counted(Places.Outcome<C> outcome) {
    switch (outcome) {
      case Places.Outcome.Admitted<C>(Optional<C> displaced) ->
          displaced.ifPresent(other -> metrics.refused("displaced"));
      case Places.Outcome.Refused<C> refused -> metrics.refused("places");
    }
    return outcome;
  }

  /**
   * A connection that was admitted has completed its handshake, and may have been taken for what it
   * is not.
   *
   * @param isEdge whether it has shown the edge's certificate
   */
  Places.Outcome<C> identified(Source network, C connection, boolean isEdge) {
    if (isEdge) {
      edges.put(network, true);
    }
    if (isEdge == edgePlaces.holds(connection)) {
      return new Places.Outcome.Admitted<>(Optional.empty());
    }
    release(connection);
    return isEdge
        ? counted(edgePlaces.take(network, connection))
        : admitStranger(network, connection);
  }

  /** A connection of the edge carries a request of that client. */
  void serves(C connection, Source client) {
    edgePlaces.move(connection, client);
  }

  /** A connection of the edge waits for its next request. */
  void rests(C connection) {
    edgePlaces.rest(connection);
  }

  /**
   * A client of the edge asks for a WebSocket, which costs it as much of its rate as a connection
   * of its own.
   *
   * @throws RateLimitedException if there is none left now
   */
  void admitSocket(Source client) {
    try {
      rate.take(client);
    } catch (RateLimitedException e) {
      metrics.refused("rate");
      throw e;
    }
  }

  /** The connection has become a WebSocket, or has ended. */
  void release(C connection) {
    places.release(connection);
    edgePlaces.release(connection);
  }
}
