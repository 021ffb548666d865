package io.coterie.signer.telemetry;

import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.coterie.signer.group.GroupTelemetry;
import io.coterie.signer.order.Hold;
import io.coterie.signer.session.SessionLifecycle;
import io.coterie.signer.session.SessionTelemetry;
import io.coterie.signer.share.KeyTrouble;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.DoubleSupplier;
import java.util.function.IntSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** The metrics of a signer, beside those that {@link ProtocolMetrics} names for all services. */
public final class SignerMetrics implements SessionTelemetry, GroupTelemetry {
  /** Gauge: sessions alive now. */
  public static final String LIVE = "coterie.sessions.live";

  /** Timer {protocol}: from an order to this party's first message; claim and fsync included. */
  public static final String START = "coterie.sessions.start";

  /** Counter {reason}: messages that were ignored. */
  public static final String DROPPED = "coterie.sessions.dropped";

  /** Timer: a transaction of the party's store, fsync included. */
  public static final String COMMIT = "coterie.store.commit";

  /** Summary: writes that shared a transaction. */
  public static final String BATCH = "coterie.store.batch";

  /** Gauge, bytes that can still be written beside the party's file. */
  public static final String FREE = "coterie.store.free";

  /** Gauge, bytes: the size of the file system with the party's file. */
  public static final String TOTAL = "coterie.store.total";

  /** Gauge, seconds: how far the clocks of the peers are ahead of this party's, their median. */
  public static final String CLOCK = "coterie.clock.ahead";

  /** Gauge: 1 when the vault is open, 0 when the party is sealed. */
  public static final String VAULT = "coterie.vault.open";

  /** Gauge {key}: presignatures that are ready. */
  public static final String PRESIGNATURES_READY = "coterie.presignatures.ready";

  /** Counter: presignatures made. */
  public static final String PRESIGNATURES_MADE = "coterie.presignatures.made";

  /** Counter: presignatures with which a signing began. */
  public static final String PRESIGNATURES_USED = "coterie.presignatures.used";

  /** Counter {reason}: presignatures that were never used. */
  public static final String PRESIGNATURES_DROPPED = "coterie.presignatures.dropped";

  /** Gauge {kind}: keys and pairs that cannot be used as they might be; see {@link KeyTrouble}. */
  public static final String TROUBLES = "coterie.keys.troubles";

  /** Gauge {scope, cause} of the holds at this party; see {@link Hold}. */
  public static final String HOLDS = "coterie.holds";

  /** Counter {step, outcome, cause}: steps in the making of groups of approvers. */
  public static final String GROUP_STEPS = "coterie.groups.steps";

  private final MeterRegistry registry;
  private final ProtocolMetrics protocols;
  private final Timer commit;
  private final DistributionSummary batch;
  private final Map<String, AtomicInteger> ready = new ConcurrentHashMap<>();
  private final AtomicReference<IntSupplier> live = new AtomicReference<>(() -> 0);

  /**
   * @param party own name in the roster
   * @param region where it runs
   */
  public SignerMetrics(MeterRegistry registry, String party, String region) {
    this.registry = registry;
    this.protocols = new ProtocolMetrics(registry, party, region);
    this.commit = registry.timer(COMMIT);
    this.batch = registry.summary(BATCH);
    Gauge.builder(LIVE, () -> live.get().getAsInt()).strongReference(true).register(registry);
  }

  @Override
  public void started(Protocol protocol, long nanos) {
    registry.timer(START, "protocol", protocol.label()).record(Duration.ofNanos(nanos));
  }

  @Override
  public void roundLeft(Protocol protocol, int round, long nanos) {
    protocols.roundLeft(protocol.label(), round, Duration.ofNanos(nanos));
  }

  @Override
  public void waited(Protocol protocol, int round, String straggler, long nanos) {
    protocols.waited(protocol.label(), round, straggler, Duration.ofNanos(nanos));
  }

  @Override
  public void ended(String protocol, SessionLifecycle.State outcome, String cause) {
    protocols.sessionEnded(protocol, outcome.label(), cause);
  }

  @Override
  public void dropped(String reason) {
    registry.counter(DROPPED, "reason", reason).increment();
  }

  @Override
  public void groupStep(String step, String outcome, String cause) {
    registry.counter(GROUP_STEPS, "step", step, "outcome", outcome, "cause", cause).increment();
  }

  @Override
  public void presignatureMade() {
    registry.counter(PRESIGNATURES_MADE).increment();
  }

  @Override
  public void presignatureUsed() {
    registry.counter(PRESIGNATURES_USED).increment();
  }

  @Override
  public void presignatureDropped(String reason) {
    registry.counter(PRESIGNATURES_DROPPED, "reason", reason).increment();
  }

  @Override
  public void presignaturesReady(String key, int count) {
    ready.computeIfAbsent(key, this::readyGauge).set(count);
  }

  private AtomicInteger readyGauge(String key) {
    AtomicInteger count = new AtomicInteger();
    Gauge.builder(PRESIGNATURES_READY, count::get)
        .tag("key", key)
        .strongReference(true)
        .register(registry);
    return count;
  }

  @Override
  public void live(IntSupplier sessions) {
    live.set(sessions);
  }

  /** A transaction is on disk. */
  public void committed(int writes, long nanos) {
    commit.record(Duration.ofNanos(nanos));
    batch.record(writes);
  }

  /** The count behind {@link #TROUBLES}. */
  public void troubles(Supplier<List<KeyTrouble>> troubles) {
    for (KeyTrouble.Kind kind : KeyTrouble.Kind.values()) {
      Gauge.builder(TROUBLES, () -> troubles.get().stream().filter(t -> t.kind() == kind).count())
          .tag("kind", kind.name().toLowerCase(Locale.ROOT))
          .strongReference(true)
          .register(registry);
    }
  }

  /** The sizes behind {@link #FREE} and {@link #TOTAL}. */
  public void room(LongSupplier free, LongSupplier total) {
    bytes(FREE, free);
    bytes(TOTAL, total);
  }

  /** The time behind {@link #CLOCK}. */
  public void clock(DoubleSupplier aheadSeconds) {
    Gauge.builder(CLOCK, aheadSeconds::getAsDouble)
        .baseUnit("seconds")
        .strongReference(true)
        .register(registry);
  }

  private void bytes(String name, LongSupplier bytes) {
    Gauge.builder(name, bytes::getAsLong)
        .baseUnit("bytes")
        .strongReference(true)
        .register(registry);
  }

  /** The count behind {@link #HOLDS}. */
  public void holds(Supplier<List<Hold>> holds) {
    for (Hold.Cause cause : Hold.Cause.values()) {
      for (String scope : Hold.Scope.KINDS) {
        Gauge.builder(
                HOLDS,
                () ->
                    holds.get().stream()
                        .filter(h -> h.cause() == cause && h.scope().kind().equals(scope))
                        .count())
            .tag("scope", scope)
            .tag("cause", cause.name().toLowerCase(Locale.ROOT))
            .strongReference(true)
            .register(registry);
      }
    }
  }

  /** Whether the vault is open, for {@link #VAULT}. */
  public void vault(BooleanSupplier open) {
    Gauge.builder(VAULT, () -> open.getAsBoolean() ? 1 : 0)
        .strongReference(true)
        .register(registry);
  }
}
