package io.coterie.simulation;

import io.coterie.platform.protocol.Protocol;
import io.coterie.signer.session.SessionLifecycle;
import io.coterie.signer.session.SessionTelemetry;
import java.util.function.IntSupplier;

/** Counts the states that sessions reach, and how they end. */
final class Observed implements SessionTelemetry {
  private final Coverage coverage;

  Observed(Coverage coverage) {
    this.coverage = coverage;
  }

  @Override
  public void moved(
      SessionLifecycle.State from, SessionLifecycle.Event event, SessionLifecycle.State to) {
    coverage.count("state " + to);
  }

  @Override
  public void ended(String protocol, SessionLifecycle.State outcome, String cause) {
    coverage.count("end " + outcome + " " + cause);
  }

  @Override
  public void started(Protocol protocol, long nanos) {}

  @Override
  public void roundLeft(Protocol protocol, int round, long nanos) {}

  @Override
  public void waited(Protocol protocol, int round, String straggler, long nanos) {}

  @Override
  public void dropped(String reason) {
    coverage.count("dropped " + reason);
  }

  @Override
  public void live(IntSupplier sessions) {}

  @Override
  public void presignatureMade() {}

  @Override
  public void presignatureUsed() {}

  @Override
  public void presignatureDropped(String reason) {
    coverage.count("presignature dropped " + reason);
  }

  @Override
  public void presignaturesReady(String key, int count) {}
}
