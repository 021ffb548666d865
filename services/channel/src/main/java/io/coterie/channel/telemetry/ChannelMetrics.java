package io.coterie.channel.telemetry;

import io.coterie.channel.ChannelException;
import io.coterie.channel.SendMode;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Every metric of the channel, by name. */
public final class ChannelMetrics {
  /** Broadcasts and sends by how they ended: label {@code mode}, {@code outcome}. */
  public static final String SENDS = "coterie.channel.sends";

  /** Requests to the messaging service: label {@code mode}. */
  public static final String REQUESTS = "coterie.channel.requests";

  /** WebSocket payload bytes: labels {@code mode}, {@code direction} (in, out). */
  public static final String BYTES = "coterie.channel.bytes";

  /** From the call until the messaging service accepted it for all recipients: label mode. */
  public static final String SEND = "coterie.channel.send";

  /** Bodies that left as one message, by mode. */
  public static final String BATCH = "coterie.channel.batch.bodies";

  /** Members that are reachable now. */
  public static final String REACHABLE = "coterie.channel.reachable";

  /** Inbound messages that were not handed on: label {@code cause}. */
  public static final String REJECTED = "coterie.channel.rejected";

  /** Seconds until the first certificate of the channel ends: its authority's, or its own. */
  public static final String CERTIFICATE = "coterie.channel.certificate.seconds";

  /** Hellos sent: label {@code session} (fresh, kept). */
  static final String HELLOS = "coterie.channel.hellos";

  /** The purpose of a request. */
  public enum Mode {
    GROUP,
    PAIRWISE_SEQUENTIAL,
    PAIRWISE_PARALLEL,
    NAMED_STORED,
    /** A body for one member. */
    PAIRWISE,
    /** Keys, hellos, heartbeats, keep-alive. */
    CONTROL;

    public String label() {
      return name().toLowerCase(Locale.ROOT);
    }

    public static Mode of(SendMode mode) {
      return switch (mode) {
        case GROUP -> GROUP;
        case PAIRWISE_SEQUENTIAL -> PAIRWISE_SEQUENTIAL;
        case PAIRWISE_PARALLEL -> PAIRWISE_PARALLEL;
        case NAMED_STORED -> NAMED_STORED;
      };
    }
  }

  /** Why an inbound message was not handed on. */
  public enum Rejection {
    /** No envelope, no sealed sender, or not for this identity. */
    MALFORMED,
    /** The sender certificate does not verify against the pinned trust root, or has expired. */
    CERTIFICATE,
    /** The sender is not in the roster. */
    STRANGER,
    /** The certificate names a member, with another identity key than the pinned one. */
    IDENTITY,
    /** No session or a damaged message. */
    UNDECRYPTABLE,
    /** Received before. */
    DUPLICATE,
    /** A sender key that did not come in time. */
    UNKNOWN_SENDER_KEY,
    /** Decrypted, but not a frame. */
    FRAME,
    /** Chunks that do not fit together, are too many, or came too late. */
    REASSEMBLY
  }

  /** Histogram bounds of all timers of the system. */
  private static final Duration[] BUCKETS = {
    Duration.ofMillis(1),
    Duration.ofMillis(2),
    Duration.ofMillis(5),
    Duration.ofMillis(10),
    Duration.ofMillis(20),
    Duration.ofMillis(50),
    Duration.ofMillis(100),
    Duration.ofMillis(200),
    Duration.ofMillis(500),
    Duration.ofSeconds(1),
    Duration.ofSeconds(2),
    Duration.ofSeconds(5),
    Duration.ofSeconds(10)
  };

  private final MeterRegistry registry;
  private final Map<Mode, Counter> requests = new EnumMap<>(Mode.class);
  private final Map<Mode, Counter> bytesOut = new EnumMap<>(Mode.class);
  private final Map<Mode, Counter> bytesIn = new EnumMap<>(Mode.class);
  private final Map<Mode, DistributionSummary> batches = new EnumMap<>(Mode.class);
  private final Map<Mode, Timer> send = new EnumMap<>(Mode.class);
  private final Map<Rejection, Counter> rejected = new EnumMap<>(Rejection.class);
  private final Map<String, Counter> sends = new ConcurrentHashMap<>();
  private final Counter freshHellos;
  private final Counter keptHellos;

  public ChannelMetrics(MeterRegistry registry, Supplier<Number> reachable) {
    this.registry = registry;
    for (Mode mode : Mode.values()) {
      requests.put(mode, registry.counter(REQUESTS, "mode", mode.label()));
      bytesOut.put(mode, registry.counter(BYTES, "mode", mode.label(), "direction", "out"));
      bytesIn.put(mode, registry.counter(BYTES, "mode", mode.label(), "direction", "in"));
      batches.put(
          mode,
          DistributionSummary.builder(BATCH)
              .tag("mode", mode.label())
              .serviceLevelObjectives(1, 2, 4, 8, 16, 32, 64)
              .register(registry));
      send.put(
          mode,
          Timer.builder(SEND)
              .tag("mode", mode.label())
              .serviceLevelObjectives(BUCKETS)
              .register(registry));
    }
    for (Rejection cause : Rejection.values()) {
      rejected.put(
          cause, registry.counter(REJECTED, "cause", cause.name().toLowerCase(Locale.ROOT)));
    }
    freshHellos = registry.counter(HELLOS, "session", "fresh");
    keptHellos = registry.counter(HELLOS, "session", "kept");
    Gauge.builder(REACHABLE, reachable).register(registry);
  }

  /**
   * Shows how long the certificates are valid that this process has read.
   *
   * @param end of the first one that ends
   */
  public void certificates(Instant end) {
    Gauge.builder(CERTIFICATE, () -> Duration.between(Instant.now(), end).toSeconds())
        .register(registry);
  }

  public void request(Mode mode, int bytes) {
    get(requests, mode).increment();
    get(bytesOut, mode).increment(bytes);
  }

  public void received(Mode mode, int bytes) {
    get(bytesIn, mode).increment(bytes);
  }

  public void rejected(Rejection cause) {
    get(rejected, cause).increment();
  }

  public void hello(boolean freshSession) {
    (freshSession ? freshHellos : keptHellos).increment();
  }

  /** A message has left with so many bodies. */
  public void left(Mode mode, int bodies) {
    get(batches, mode).record(bodies);
  }

  /** One broadcast or send has ended. */
  public void sent(Mode mode, long startNanos, @Nullable Throwable failure) {
    String outcome =
        failure == null
            ? "ok"
            : ChannelException.of(failure).reason().name().toLowerCase(Locale.ROOT);
    sends
        .computeIfAbsent(
            mode.label() + ' ' + outcome,
            key -> registry.counter(SENDS, "mode", mode.label(), "outcome", outcome))
        .increment();
    get(send, mode).record(Duration.ofNanos(System.nanoTime() - startNanos));
  }

  private static <K, V> V get(Map<K, V> map, K key) {
    return java.util.Objects.requireNonNull(map.get(key));
  }
}
