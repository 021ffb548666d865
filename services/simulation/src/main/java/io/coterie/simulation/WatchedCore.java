package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.util.LinkedHashSet;
import java.util.Set;

/** The core of one process of a party, with the checker beside it. */
final class WatchedCore implements ProtocolCore {
  private final ProtocolCore core;
  private final Checker checker;
  private final SimulatedParty party;
  private final Set<Run> open = new LinkedHashSet<>();

  WatchedCore(ProtocolCore core, Checker checker, SimulatedParty party) {
    this.core = core;
    this.checker = checker;
    this.party = party;
  }

  @Override
  public Run start(SessionConfig config, ByteString sealedShare) throws RefusedException {
    Run run = core.start(config, sealedShare);
    checker.started(party, config);
    party.multiplications().begun(config.getSessionId());
    WatchedRun watched = new WatchedRun(run, config.getSessionId());
    open.add(watched);
    return watched;
  }

  @Override
  public void discardPresignature(ByteString id) {
    core.discardPresignature(id);
  }

  @Override
  public ByteString signStatement(ByteString statement) {
    return core.signStatement(statement);
  }

  /** Closes what a killed process has left open. */
  void kill() {
    Set.copyOf(open).forEach(Run::close);
  }

  private final class WatchedRun implements Run {
    private final Run run;
    private final ByteString session;

    WatchedRun(Run run, ByteString session) {
      this.run = run;
      this.session = session;
    }

    @Override
    public Step firstStep() {
      return watched(run.firstStep());
    }

    @Override
    public Step handle(int sender, byte[] envelope) {
      checker.heard(party, session);
      return watched(run.handle(sender, envelope));
    }

    private Step watched(Step step) {
      step.getOutgoingList().forEach(message -> checker.made(party, session, message));
      return step;
    }

    @Override
    public void close() {
      open.remove(this);
      run.close();
      party.closed(session, WatchedCore.this);
    }
  }
}
