package io.coterie.messaging.telemetry;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Every metric of the service. No label names an account, a device or a number. */
public final class MessagingMetrics {
  private final MeterRegistry registry;
  private final Map<RequestKey, Timer> requests = new ConcurrentHashMap<>();
  private final Counter deliveredOnline;
  private final Counter deliveredStored;
  private final DistributionSummary fanout;

  private record RequestKey(String route, int status) {}

  public MessagingMetrics(MeterRegistry registry) {
    this.registry = registry;
    this.deliveredOnline = delivered("online");
    this.deliveredStored = delivered("stored");
    this.fanout =
        DistributionSummary.builder("coterie.messaging.fanout")
            .description("Devices that one accepted request reaches")
            .serviceLevelObjectives(1, 2, 5, 10, 20, 50, 100)
            .register(registry);
  }

  private Counter delivered(String kind) {
    return Counter.builder("coterie.messaging.delivered")
        .description("Messages that their device has acknowledged")
        .tag("kind", kind)
        .register(registry);
  }

  /**
   * @param route the template, never the path
   */
  public void request(String route, int status, long nanos) {
    requests
        .computeIfAbsent(
            new RequestKey(route, status),
            key ->
                Timer.builder("coterie.messaging.requests")
                    .description("Calls, over REST and inside WebSockets")
                    .tag("route", key.route())
                    .tag("status", Integer.toString(key.status()))
                    .register(registry))
        .record(nanos, TimeUnit.NANOSECONDS);
  }

  public void delivered(boolean stored) {
    (stored ? deliveredStored : deliveredOnline).increment();
  }

  public void fanout(int devices) {
    fanout.record(devices);
  }

  /** WebSockets that the service closed, by reason. */
  public void closed(String reason) {
    registry.counter("coterie.messaging.closed", "reason", reason).increment();
  }

  /** Connections that were not admitted, or had to give way before they became WebSockets. */
  public void refused(String reason) {
    registry.counter("coterie.messaging.refused", "reason", reason).increment();
  }

  /** An address without credentials sends more than its rate, so its next bytes wait. */
  public void readLater() {
    registry.counter("coterie.messaging.read.later").increment();
  }

  /** Registers the number of connections that have not completed their handshake. */
  public void handshakes(Supplier<Number> count) {
    Gauge.builder("coterie.messaging.handshakes", count)
        .description("Connections in their TLS handshake")
        .register(registry);
  }

  /** Registers the number of connections that wait for a thread. */
  public void waiting(String kind, Supplier<Number> count) {
    Gauge.builder("coterie.messaging.waiting", count)
        .description("Connections that wait for their turn to be worked for")
        .tag("kind", kind)
        .register(registry);
  }

  /** The time that one wait for Redis took. */
  public void relay(String outcome, long nanos) {
    Timer.builder("coterie.messaging.relay")
        .description("Answers of Redis, through which replicas reach each other")
        .tag("outcome", outcome)
        .register(registry)
        .record(nanos, TimeUnit.NANOSECONDS);
  }

  /** Registers the depth of a queue. */
  public void queueDepth(String kind, Supplier<Number> depth) {
    Gauge.builder("coterie.messaging.queue.depth", depth)
        .description("Messages that wait to be fetched")
        .tag("kind", kind)
        .register(registry);
  }

  /** Registers the number of WebSockets. */
  public void connections(String kind, Supplier<Number> count) {
    Gauge.builder("coterie.messaging.connections", count)
        .description("Open WebSockets")
        .tag("kind", kind)
        .register(registry);
  }
}
