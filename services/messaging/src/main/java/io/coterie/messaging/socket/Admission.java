package io.coterie.messaging.socket;

import com.github.benmanes.caffeine.cache.Ticker;
import io.coterie.messaging.limit.RateLimit;
import io.coterie.messaging.limit.RateLimit.Rate;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.telemetry.MessagingMetrics;
import java.util.Optional;

/**
 * Decides before the TLS handshake, which is the dearest that a stranger can ask for, whether a
 * connection may stay: each network has a rate of new connections, and they share the places of
 * connections that have not become WebSockets.
 *
 * @param <C> a connection
 */
final class Admission<C> {
  private final RateLimit<Source> rate;
  private final Places<C> places;
  private final MessagingMetrics metrics;

  /**
   * @param rate of new connections, for each network
   * @param places of connections that have not become WebSockets
   * @param ticker monotonic nanoseconds
   */
  Admission(Rate rate, int places, Ticker ticker, MessagingMetrics metrics) {
    this.rate = new RateLimit<>(rate, ticker);
    this.places = new Places<>(places, true);
    this.metrics = metrics;
  }

  Places.Outcome<C> admit(Source network, C connection) {
    try {
      rate.take(network);
    } catch (RateLimitedException e) {
      metrics.refused("rate");
      return new Places.Outcome.Refused<>();
    }
    Places.Outcome<C> outcome = places.take(network, connection);
    switch (outcome) {
      case Places.Outcome.Admitted<C>(Optional<C> displaced) ->
          displaced.ifPresent(other -> metrics.refused("displaced"));
      case Places.Outcome.Refused<C> refused -> metrics.refused("places");
    }
    return outcome;
  }

  /** The connection has become a WebSocket, or has ended. */
  void release(Source network, C connection) {
    places.release(network, connection);
  }
}
