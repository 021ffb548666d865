package io.coterie.platform.telemetry;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.time.Duration;

/** The metrics of protocol sessions, with the same names and labels in signers and coordinators. */
public final class ProtocolMetrics {
  /**
   * Timer {protocol, round, party, region}: from entering a round to leaving it. At a signer of
   * BLS, which waits for no peer, from the order to the own contribution.
   */
  public static final String ROUND = "coterie.protocol.round";

  /** Timer {protocol, round, straggler}: from the own message sent to the last missing peer's. */
  public static final String WAIT = "coterie.protocol.wait";

  /** Counter {protocol, outcome, cause}: sessions ended. */
  public static final String SESSIONS = "coterie.sessions";

  private final MeterRegistry registry;
  private final Tags self;

  /**
   * Metrics of one party.
   *
   * @param party own name in the roster
   * @param region where it runs
   */
  public ProtocolMetrics(MeterRegistry registry, String party, String region) {
    this.registry = registry;
    this.self = Tags.of("party", party, "region", region);
  }

  /** This party left a round. */
  public void roundLeft(String protocol, int round, Duration took) {
    registry
        .timer(ROUND, self.and("protocol", protocol, "round", Integer.toString(round)))
        .record(took);
  }

  /** The last missing message of a round came, from {@code straggler}. */
  public void waited(String protocol, int round, String straggler, Duration waited) {
    registry
        .timer(WAIT, "protocol", protocol, "round", Integer.toString(round), "straggler", straggler)
        .record(waited);
  }

  /**
   * A session ended.
   *
   * @param outcome {@code completed}, {@code aborted}, {@code refused} or {@code timed_out}
   * @param cause name of the abort cause or refusal reason in lower case, {@code none} on success
   */
  public void sessionEnded(String protocol, String outcome, String cause) {
    registry
        .counter(SESSIONS, "protocol", protocol, "outcome", outcome, "cause", cause)
        .increment();
  }
}
