package io.coterie.signer.session;

import io.coterie.platform.protocol.Protocol;
import io.coterie.signer.operation.PresignatureTelemetry;
import java.util.function.IntSupplier;

/** Measurements of sessions. Called on the latency path: must be cheap. */
public interface SessionTelemetry extends SessionLifecycle.Observer, PresignatureTelemetry {
  @Override
  default void moved(
      SessionLifecycle.State from, SessionLifecycle.Event event, SessionLifecycle.State to) {}

  /** A session's first message was handed to the network, this long after its order had come. */
  void started(Protocol protocol, long nanos);

  /** A run left a round. */
  void roundLeft(Protocol protocol, int round, long nanos);

  /**
   * The last missing message of a round came.
   *
   * @param straggler roster name of its sender
   * @param nanos since this party had sent its own; 0 if that was later
   */
  void waited(Protocol protocol, int round, String straggler, long nanos);

  /**
   * A session ended.
   *
   * @param protocol as in {@link Protocol#label}, or {@code unknown} for an order that named none
   * @param cause reason of a refusal, cause of an abort, or {@code none}
   */
  void ended(String protocol, SessionLifecycle.State outcome, String cause);

  /** The core or the driver ignored a message; the run went on. */
  void dropped(String reason);

  /** Sessions now alive, for a gauge. */
  void live(IntSupplier sessions);
}
