package io.coterie.signer.operation;

/** Measurements of the presignatures of this party. Called on the latency path: must be cheap. */
public interface PresignatureTelemetry {
  /** A presignature is ready. */
  void presignatureMade();

  /** A signing began with one. */
  void presignatureUsed();

  /** One was lost, and will never be used. */
  void presignatureDropped(String reason);

  /** How many of a key are ready now, for a gauge. */
  void presignaturesReady(String key, int count);
}
