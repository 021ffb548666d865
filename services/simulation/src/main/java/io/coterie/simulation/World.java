package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.PolicyGate;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One schedule: parties, coordinator, network and disks on one timeline. First the parties make
 * keys undisturbed, then the world is hostile for a while, then faults and lies stop and the honest
 * parties must sign again. Everything follows from the seed.
 */
final class World implements SimulatedNetwork.Tap {
  static final String BLS_KEY = "keys/sim-bls";
  static final String ECDSA_KEY = "keys/sim-ecdsa";
  static final String ED25519_KEY = "keys/sim-ed25519";

  private static final long MILLI = 1_000_000L;
  private static final long SECOND = 1_000 * MILLI;

  /** Longer than any session of the hostile time goes on. */
  private static final Duration CALM = Duration.ofSeconds(45);

  private final Setting setting;
  private final Mutant mutant;
  private final Chance chance;
  private final Timeline timeline = new Timeline();
  private final Trace trace;
  private final Coverage coverage = new Coverage();
  private final PolicyGate policy = new Admissions(SimulatedParty.policy());
  private final Cores cores;
  private final Liar liar;
  private final Checker checker;
  private final SimulatedNetwork network;
  private final List<SimulatedParty> parties = new ArrayList<>();
  private final SimulatedCoordinator coordinator;
  private final Map<String, Chance> choices = new HashMap<>();
  private boolean hostile;

  /**
   * @param folder for the stores, empty
   * @param out where the trace is printed; null to print none
   */
  World(long seed, Setting setting, Mutant mutant, Path folder, @Nullable PrintStream out) {
    this.setting = setting;
    this.mutant = mutant;
    this.chance = Chance.of(seed);
    this.trace = new Trace(timeline, out);
    this.liar = new Liar(chance.part("liar"), coverage, setting.lyingPerMille());
    this.checker = new Checker(setting, liar);
    this.cores =
        setting.nativeCore()
            ? new Cores.Native(setting.parties(), chance.part("data keys"))
            : new Cores.Fast(setting.parties());
    Roster roster = Identities.roster(setting.coordinators(), cores.evidence());
    this.network = new SimulatedNetwork(timeline, roster, chance.part("network"), coverage, this);
    for (int id = 1; id <= setting.parties(); id++) {
      parties.add(new SimulatedParty(this, id, folder.resolve(Identities.party(id))));
    }
    this.coordinator =
        new SimulatedCoordinator(
            this,
            roster.members().stream()
                .filter(member -> member.role() == Member.Role.COORDINATOR)
                .toList());
    trace.line(setting.toString());
  }

  Setting setting() {
    return setting;
  }

  Mutant mutant() {
    return mutant;
  }

  Chance chance() {
    return chance;
  }

  Timeline timeline() {
    return timeline;
  }

  Trace trace() {
    return trace;
  }

  Coverage coverage() {
    return coverage;
  }

  Checker checker() {
    return checker;
  }

  Cores cores() {
    return cores;
  }

  PolicyGate policy() {
    return policy;
  }

  SimulatedNetwork network() {
    return network;
  }

  /** The time by the clock of the coordinator, which is right. */
  Instant now() {
    return Instant.ofEpochSecond(Timeline.START_SECONDS, timeline.nanos());
  }

  // ---- the schedule ----------------------------------------------------------------------------

  /** Runs the whole schedule, and closes everything. */
  void run() {
    try {
      begin();
      beHostile();
      calmDown();
      new Ending(this, coordinator, parties).check();
    } finally {
      for (SimulatedParty party : parties) {
        if (party.runs()) {
          party.kill();
        }
      }
    }
  }

  private void begin() {
    parties.forEach(SimulatedParty::start);
    coordinator.createKey(BLS_KEY, Scheme.SCHEME_BLS12381);
    coordinator.createKey(ECDSA_KEY, Scheme.SCHEME_ECDSA_SECP256K1);
    coordinator.createKey(ED25519_KEY, Scheme.SCHEME_ED25519);
    for (int tenths = 0; !keysAreUsed(); tenths++) {
      if (tenths == 200) {
        throw new IllegalStateException("the keys are not made");
      }
      pass(100 * MILLI);
    }
  }

  private boolean keysAreUsed() {
    return coordinator.keys().stream().allMatch(key -> key.users.size() == setting.parties());
  }

  private void pass(long nanos) {
    timeline.runUntil(timeline.nanos() + nanos);
  }

  private void beHostile() {
    trace.line("the world becomes hostile");
    hostile = true;
    network.faultsPerMille(setting.networkPerMille());
    liar.begin();
    again("work", 10 * MILLI, 700 * MILLI, coordinator::act);
    if (setting.kills()) {
      again("kill", SECOND / 2, 8 * SECOND, () -> killAndStart(any("whom to kill")));
    }
    if (setting.restored() != 0) {
      SimulatedParty party = parties.get(setting.restored() - 1);
      again("copy", SECOND / 2, 4 * SECOND, party::keepCopy);
      again("restore", 3 * SECOND, 15 * SECOND, () -> putBack(party));
    }
    if (mutant == Mutant.LOSES_COMMITS) {
      again("lossy disk", SECOND / 10, SECOND, () -> parties.forEach(SimulatedParty::keepCopy));
    }
    if (setting.fullDisks()) {
      again("full disk", 2 * SECOND, 10 * SECOND, () -> fillDisk(any("whose disk")));
    }
    if (setting.cuts()) {
      again("cut", SECOND, 8 * SECOND, this::cutOff);
    }
    if (setting.skews()) {
      again("clock", SECOND, 6 * SECOND, this::setClock);
    }
    if (setting.restarts()) {
      again("restart", SECOND / 10, SECOND, () -> restart(any("whom to start anew")));
      again("leave", 5 * SECOND, 15 * SECOND, () -> leave(any("who leaves")));
      again("clock back", 5 * SECOND, 20 * SECOND, this::setClockBack);
    }
    pass(setting.hostile().toNanos());
    hostile = false;
  }

  /** Does something again and again while the world is hostile. */
  private void again(String what, long leastNanos, long mostNanos, Runnable task) {
    again(chance.part(what), leastNanos, mostNanos, task);
  }

  private void again(Chance when, long leastNanos, long mostNanos, Runnable task) {
    timeline.in(
        when.between(leastNanos, mostNanos),
        () -> {
          if (hostile) {
            task.run();
            again(when, leastNanos, mostNanos, task);
          }
        });
  }

  private Chance choice(String what) {
    return choices.computeIfAbsent(what, chance::part);
  }

  private SimulatedParty any(String what) {
    return choice(what).any(parties);
  }

  private void killAndStart(SimulatedParty party) {
    if (!party.runs()) {
      return;
    }
    if (choice("when to kill").perMille(500)) {
      kill(party);
    } else {
      // Between what it gives the disk next and the commit of that.
      party
          .disk()
          .whenGiven(
              () -> timeline.in(choice("before the commit").between(0, MILLI), () -> kill(party)));
    }
  }

  private void kill(SimulatedParty party) {
    if (hostile && party.runs()) {
      coverage.count(party.disk().isBusy() ? "fault KILLED_BEFORE_COMMIT" : "fault KILLED");
      party.kill();
      startLater(party);
    }
  }

  private void restart(SimulatedParty party) {
    if (party.runs() && choice("how to end").perMille(300)) {
      coverage.count("fault STOPPED");
      party.stop();
      startLater(party);
    } else {
      killAndStart(party);
    }
  }

  /** For longer than the others wait for it at their starts. */
  private void leave(SimulatedParty party) {
    if (party.runs()) {
      coverage.count("fault AWAY");
      party.stop();
      timeline.in(
          choice("how long away").between(4 * SECOND, 12 * SECOND),
          () -> {
            if (!party.runs()) {
              party.start();
            }
          });
    }
  }

  private void setClockBack() {
    SimulatedParty party = any("whose clock is set back");
    coverage.count("fault CLOCK_BACK");
    party.clockOffset(Duration.ofSeconds(-choice("how far back").between(60, 600)));
    timeline.in(5 * SECOND, () -> party.clockOffset(Duration.ZERO));
  }

  private void startLater(SimulatedParty party) {
    timeline.in(
        choice("when to start").between(10 * MILLI, 3 * SECOND),
        () -> {
          if (!party.runs()) {
            party.start();
          }
        });
  }

  private void putBack(SimulatedParty party) {
    if (party.runs() && party.hasCopies()) {
      coverage.count("fault PUT_BACK");
      party.kill();
      party.putBack();
      startLater(party);
    }
  }

  private void fillDisk(SimulatedParty party) {
    if (!party.runs()) {
      return;
    }
    coverage.count("fault DISK_FULL");
    trace.line(party.member().name() + " has a full disk");
    SimulatedDisk disk = party.disk();
    disk.full(true);
    timeline.in(
        choice("when there is room").between(SECOND / 10, 3 * SECOND), () -> disk.full(false));
  }

  private void cutOff() {
    Member from = choice("whom to cut off").any(network.roster().members());
    Member to = choice("from whom").any(network.roster().members());
    trace.line(from.name() + " does not reach " + to.name());
    network.cut(from.name(), to.name());
    if (choice("both ways").perMille(500)) {
      network.cut(to.name(), from.name());
    }
    timeline.in(choice("how long").between(SECOND / 10, 8 * SECOND), network::heal);
  }

  private void setClock() {
    SimulatedParty party = any("whose clock");
    // Two clocks differ by what the parties allow for, at most.
    long most = SimulatedParty.CLOCK_SKEW.toNanos() / 2;
    party.clockOffset(Duration.ofNanos(choice("clock").between(0, 2 * most) - most));
    coverage.count("fault CLOCK_SET");
  }

  private void calmDown() {
    trace.line("faults and lies stop");
    network.faultsPerMille(0);
    network.heal();
    liar.stop();
    coordinator.repent();
    for (SimulatedParty party : parties) {
      party.clockOffset(Duration.ZERO);
      if (party.runs()) {
        party.disk().full(false);
      } else {
        party.start();
      }
    }
    pass(CALM.toNanos());
  }

  /** Lets time go by until something holds. */
  boolean waitFor(Duration patience, BooleanSupplier condition) {
    long until = timeline.nanos() + patience.toNanos();
    while (!condition.getAsBoolean()) {
      if (timeline.nanos() >= until) {
        return false;
      }
      pass(50 * MILLI);
    }
    return true;
  }

  // ---- the wire --------------------------------------------------------------------------------

  @Override
  public List<byte[]> sent(Member from, Member to, byte[] body, boolean broadcast) {
    if (from.role() != Member.Role.PARTY) {
      return List.of(body);
    }
    PartyMessage message = parse(body);
    trace.line(from.name() + " -> " + to.name() + "  " + describe(message));
    if (setting.isCorrupt(from.partyId())) {
      return liar.tells(to, body, broadcast);
    }
    if (!isExcused(from.partyId(), message)) {
      checker.left(from.partyId(), message);
    }
    return List.of(body);
  }

  /** A party that could not write says so. */
  private boolean isExcused(int party, PartyMessage message) {
    return message.getReport().getRefused().getReason() == RefusalReason.REFUSAL_REASON_INTERNAL
        && parties.get(party - 1).hasFailedCommits();
  }

  @Override
  public void arrived(Member from, Member to, byte[] body) {
    if (setting.isCorrupt(to.partyId())) {
      liar.hears(body);
    }
    if (mutant == Mutant.FORGETS_LEDGERS && to.role() == Member.Role.PARTY) {
      PartyMessage message = parse(body);
      if (message.hasClaimCount()) {
        parties.get(to.partyId() - 1).stated(from, message.getClaimCount());
      }
    }
  }

  private static PartyMessage parse(byte[] body) {
    try {
      return PartyMessage.parseFrom(body);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a member sent what does not decode", e);
    }
  }

  private String describe(PartyMessage message) {
    return switch (message.getBodyCase()) {
      case ENVELOPE -> "envelope of " + checker.name(message.getEnvelope().getSessionId());
      case REPORT -> {
        ByteString session = message.getReport().getSessionId();
        yield "report "
            + message.getReport().getOutcomeCase()
            + reason(message)
            + " of "
            + checker.name(session);
      }
      case CLAIM_COUNT ->
          "has claimed "
              + message.getClaimCount().getCount()
              + " in start "
              + message.getClaimCount().getStarts();
      default -> message.getBodyCase().name();
    };
  }

  private static String reason(PartyMessage message) {
    return switch (message.getReport().getOutcomeCase()) {
      case REFUSED -> " " + message.getReport().getRefused().getReason();
      case ABORTED ->
          " "
              + message.getReport().getAborted().getCause()
              + message.getReport().getAborted().getCulpritsList();
      default -> "";
    };
  }
}
