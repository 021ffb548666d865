package io.coterie.signer.group;

/** Measurements of groups. */
public interface GroupTelemetry {
  /**
   * A step has ended here.
   *
   * @param step as in {@link GroupStep#label}, or {@code unknown} of an order that names none
   * @param outcome {@code done}, {@code aborted}, {@code timed_out}, {@code stopped} or {@code
   *     refused}
   * @param cause reason of a refusal, cause of an abort, or {@code none}
   */
  void groupStep(String step, String outcome, String cause);

  /** A message was ignored. */
  void dropped(String reason);
}
