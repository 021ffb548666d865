package io.coterie.coordinator.telemetry;

import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.Scheme;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;

/** The metrics of this service about its requests. Protocol rounds: {@code ProtocolMetrics}. */
public final class CoordinatorMetrics {
  /** Counter and timer {scheme, outcome}: from the first request to the end of the signing. */
  public static final String SIGNINGS = "coterie.signings";

  public static final String SIGNING = "coterie.signing";

  /** Counter {scheme, outcome}. */
  public static final String KEY_CREATIONS = "coterie.key.creations";

  /** Counter {scheme, outcome}. */
  public static final String KEY_RENEWALS = "coterie.key.renewals";

  /** Counter {cause}: messages of parties that were ignored. */
  public static final String DROPPED = "coterie.coordinator.dropped";

  /**
   * Timer {method, status, reason}: client calls as the client sees them, an expired one included.
   */
  public static final String REQUESTS = "coterie.coordinator.requests";

  /** Gauge: signings and key creations that are running. */
  public static final String RUNS = "coterie.coordinator.runs";

  /** Gauge: signings that wait until one of their sessions may begin. */
  public static final String WAITING = "coterie.coordinator.waiting";

  /** Gauge {requester}: running signings of the requester. */
  public static final String REQUESTER_RUNS = "coterie.coordinator.requester.runs";

  /** Gauge {requester}: those of them that wait until one of their sessions may begin. */
  public static final String REQUESTER_WAITING = "coterie.coordinator.requester.waiting";

  /** Counter {requester, reason}: new requests that were refused because there were too many. */
  public static final String REQUESTER_REFUSED = "coterie.coordinator.requester.refused";

  /** Gauge: signing sessions that may run at once with the party that allows the fewest now. */
  public static final String AT_ONCE = "coterie.coordinator.at.once";

  /** Gauge: replicas of this coordinator that show signs of life, this one included. */
  public static final String REPLICAS = "coterie.coordinator.replicas";

  /**
   * Counter {work}: requests that this replica has taken over from one that is gone or has stopped.
   */
  public static final String TAKEN_OVER = "coterie.coordinator.taken.over";

  /** Values of the label of {@link #TAKEN_OVER}. */
  public static final String SIGNING_WORK = "signing";

  public static final String KEY_CREATION_WORK = "key_creation";

  public static final String KEY_RENEWAL_WORK = "key_renewal";

  public static final String GROUP_CREATION_WORK = "group_creation";

  /** Counter {outcome}: epochs of groups of approvers that were made, or not. */
  public static final String GROUP_CREATIONS = "coterie.coordinator.groups.creations";

  /** Gauge: presignatures ready for use. */
  public static final String PRESIGNATURES_READY = "coterie.coordinator.presignatures.ready";

  /** Gauge: presignatures being made. */
  public static final String PRESIGNATURES_MAKING = "coterie.coordinator.presignatures.making";

  /** Gauge: presignatures that should be ready for the combinations in use. */
  public static final String PRESIGNATURES_WANTED = "coterie.coordinator.presignatures.wanted";

  /**
   * Gauge: how many more parties can be lost before some key cannot sign; negative if one cannot
   * now, not a number if there are no keys.
   */
  public static final String QUORUM_MARGIN = "coterie.quorum.margin";

  /** Counters: presignatures that were made, and that were taken for a signature. */
  public static final String PRESIGNATURES_MADE = "coterie.coordinator.presignatures.made";

  public static final String PRESIGNATURES_USED = "coterie.coordinator.presignatures.used";

  /** Counter {reason}: presignatures that were abandoned unused. */
  public static final String PRESIGNATURES_DROPPED = "coterie.coordinator.presignatures.dropped";

  /** Counter: signings that could have used a presignature and found none. */
  public static final String PRESIGNATURES_MISSED = "coterie.coordinator.presignatures.missed";

  /** Counter: records of evidence that could not be stored. */
  public static final String EVIDENCE_LOST = "coterie.coordinator.evidence.lost";

  /** Party label of this service in the metrics of protocol rounds. */
  public static final String PARTY = "coordinator";

  /** Outcome of a signing or key creation that ended well. */
  public static final String OK = "ok";

  private final MeterRegistry registry;

  public CoordinatorMetrics(MeterRegistry registry) {
    this.registry = registry;
    // From the start, so that an increase can be seen.
    for (String work :
        List.of(SIGNING_WORK, KEY_CREATION_WORK, KEY_RENEWAL_WORK, GROUP_CREATION_WORK)) {
      takenOver(work, 0);
    }
    registry.counter(EVIDENCE_LOST);
  }

  /** A signing ended with {@link #OK} or the name of an error reason. */
  public void signingEnded(Scheme scheme, String outcome, Duration took) {
    String label = scheme(scheme);
    String result = outcome.toLowerCase(Locale.ROOT);
    registry.counter(SIGNINGS, "scheme", label, "outcome", result).increment();
    registry.timer(SIGNING, "scheme", label, "outcome", result).record(took);
  }

  /** A key creation ended with {@link #OK} or the name of an error reason. */
  public void keyCreationEnded(Scheme scheme, String outcome) {
    registry
        .counter(
            KEY_CREATIONS, "scheme", scheme(scheme), "outcome", outcome.toLowerCase(Locale.ROOT))
        .increment();
  }

  /** The making of an epoch of a group ended with {@link #OK} or the name of an error reason. */
  public void groupCreationEnded(String outcome) {
    registry.counter(GROUP_CREATIONS, "outcome", outcome.toLowerCase(Locale.ROOT)).increment();
  }

  /** A message was ignored. */
  public void dropped(String cause) {
    registry.counter(DROPPED, "cause", cause).increment();
  }

  /** A client call ended. */
  public void requested(String method, String status, String reason, Duration took) {
    registry.timer(REQUESTS, "method", method, "status", status, "reason", reason).record(took);
  }

  /**
   * Requests were taken over.
   *
   * @param work a value of the label
   */
  public void takenOver(String work, int count) {
    registry.counter(TAKEN_OVER, "work", work).increment(count);
  }

  /** A record of evidence could not be stored. */
  public void evidenceLost() {
    registry.counter(EVIDENCE_LOST).increment();
  }

  /** Watches {@link #REPLICAS}. */
  public void watchReplicas(Supplier<Number> replicas) {
    Gauge.builder(REPLICAS, replicas).register(registry);
  }

  /** Watches the number of running requests. */
  public void watchRuns(Supplier<Number> runs) {
    Gauge.builder(RUNS, runs).register(registry);
  }

  /** Watches {@link #WAITING} and {@link #AT_ONCE}. */
  public void watchTurns(Supplier<Number> waiting, Supplier<Number> atOnce) {
    Gauge.builder(WAITING, waiting).register(registry);
    Gauge.builder(AT_ONCE, atOnce).register(registry);
  }

  /**
   * Watches {@link #REQUESTER_RUNS} and {@link #REQUESTER_WAITING} of one requester, and counts
   * {@link #REQUESTER_REFUSED} from the start.
   *
   * @param requester a name of the configuration, so that there are not many
   */
  public void watchRequester(String requester, Supplier<Number> runs, Supplier<Number> waiting) {
    Gauge.builder(REQUESTER_RUNS, runs).tag("requester", requester).register(registry);
    Gauge.builder(REQUESTER_WAITING, waiting).tag("requester", requester).register(registry);
    for (ErrorReason reason : List.of(ErrorReason.OVERLOADED, ErrorReason.REQUESTER_OVERLOADED)) {
      refusals(requester, reason).increment(0);
    }
  }

  /** A new request was refused because there were too many. */
  public void refused(String requester, ErrorReason reason) {
    refusals(requester, reason).increment();
  }

  private Counter refusals(String requester, ErrorReason reason) {
    return registry.counter(
        REQUESTER_REFUSED,
        "requester",
        requester,
        "reason",
        reason.name().toLowerCase(Locale.ROOT));
  }

  /** Watches the pool of presignatures. */
  public void watchPresignatures(
      Supplier<Number> ready, Supplier<Number> making, Supplier<Number> wanted) {
    Gauge.builder(PRESIGNATURES_READY, ready).register(registry);
    Gauge.builder(PRESIGNATURES_MAKING, making).register(registry);
    Gauge.builder(PRESIGNATURES_WANTED, wanted).register(registry);
  }

  /** Watches {@link #QUORUM_MARGIN}. */
  public void watchQuorumMargin(Supplier<Number> margin) {
    Gauge.builder(QUORUM_MARGIN, margin).register(registry);
  }

  public void presignaturesMade(int count) {
    registry.counter(PRESIGNATURES_MADE).increment(count);
  }

  public void presignatureUsed() {
    registry.counter(PRESIGNATURES_USED).increment();
  }

  public void presignatureMissed() {
    registry.counter(PRESIGNATURES_MISSED).increment();
  }

  /** Presignatures were abandoned for a reason in capitals. */
  public void presignaturesDropped(String reason, int count) {
    registry
        .counter(PRESIGNATURES_DROPPED, "reason", reason.toLowerCase(Locale.ROOT))
        .increment(count);
  }

  /**
   * A refresh or reshare of a key ended with {@link #OK} or the name of an error reason.
   *
   * @param operation {@code refresh} or {@code reshare}
   */
  public void keyRenewalEnded(Scheme scheme, String operation, String outcome) {
    registry
        .counter(
            KEY_RENEWALS,
            "scheme",
            scheme(scheme),
            "operation",
            operation,
            "outcome",
            outcome.toLowerCase(Locale.ROOT))
        .increment();
  }

  private static String scheme(Scheme scheme) {
    return scheme.name().substring("SCHEME_".length()).toLowerCase(Locale.ROOT);
  }
}
