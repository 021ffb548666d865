package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.order.PolicyGate;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
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
  static final String BIP340_KEY = "keys/sim-bip340";

  private static final long MILLI = 1_000_000L;
  private static final long SECOND = 1_000 * MILLI;

  /** Longer than any session of the hostile time goes on. */
  private static final Duration CALM = Duration.ofSeconds(45);

  /** Far beyond what parties allow for, s: a step of a time server, a wrong time zone, a day. */
  private static final List<Integer> JUMPS = List.of(10, 120, 3_600, 100_000);

  private final Setting setting;
  private final Mutant mutant;
  private final Faults faults;
  private final Chance chance;
  private final Timeline timeline;
  private final Trace trace;
  private final Coverage coverage = new Coverage();
  private final PolicyGate policy = new Admissions(SimulatedParty.policy());
  private final Cores cores;
  private final Liar liar;
  private final Checker checker;
  private final SimulatedNetwork network;
  private final List<SimulatedParty> parties = new ArrayList<>();
  private final List<SimulatedParty> clones = new ArrayList<>();
  private final SimulatedCoordinator coordinator;

  /** Null if no client asks for anything. */
  private final @Nullable RequestWorld requests;

  /** Null if the parties make the keys in this world. */
  private final @Nullable Prepared prepared;

  private boolean hostile;

  /**
   * @param folder for the stores, empty
   * @param out where the trace is printed; null to print none
   */
  World(
      long seed,
      Setting setting,
      Mutant mutant,
      Faults faults,
      Path folder,
      @Nullable PrintStream out) {
    this.setting = setting;
    this.mutant = mutant;
    this.faults = faults;
    this.chance = Chance.of(seed);
    this.prepared = setting.prepared() ? Prepared.of(setting) : null;
    this.timeline = new Timeline(prepared == null ? SECOND : prepared.nanos());
    this.trace = new Trace(timeline, out);
    this.liar = new Liar(chance.part("liar"), faults, coverage, setting.lyingPerMille());
    this.checker = new Checker(setting, liar);
    this.cores =
        prepared == null ? Cores.of(setting, chance.part("data keys")) : prepared.world().cores();
    int replicas = setting.requests() ? RequestWorld.REPLICAS : 0;
    Roster roster = Identities.roster(setting.coordinators() + replicas, cores.evidence());
    this.network =
        new SimulatedNetwork(timeline, roster, chance.part("network"), faults, coverage, this);
    for (int id = 1; id <= setting.parties(); id++) {
      parties.add(new SimulatedParty(this, id, Identities.party(id), folder));
    }
    List<Member> coordinators =
        roster.members().stream()
            .filter(member -> member.role() == Member.Role.COORDINATOR)
            .toList();
    this.requests =
        setting.requests()
            ? new RequestWorld(
                this, coordinators.subList(setting.coordinators(), coordinators.size()))
            : null;
    this.coordinator =
        new SimulatedCoordinator(this, coordinators.subList(0, setting.coordinators()));
    trace.line(setting.toString());
    coverage.count(setting.shape());
  }

  Setting setting() {
    return setting;
  }

  Mutant mutant() {
    return mutant;
  }

  Faults faults() {
    return faults;
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

  SimulatedCoordinator coordinator() {
    return coordinator;
  }

  /** The world of the clients and of the replicas that they ask. */
  RequestWorld requests() {
    RequestWorld some = requests;
    if (some == null) {
      throw new IllegalStateException("no client asks for anything");
    }
    return some;
  }

  /** The parties use other shares of a key. */
  void uses(SimulatedKey key, SignedIntent intent) {
    if (requests != null) {
      requests.uses(key, intent);
    }
  }

  /** Whether faults still come. */
  boolean isHostile() {
    return hostile;
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
      if (requests != null) {
        requests.end();
      }
      clones.forEach(SimulatedParty::end);
      parties.forEach(SimulatedParty::end);
    }
  }

  /** Makes the keys and ends; says who has them. */
  List<SimulatedParty> prepare() {
    begin();
    pass(CALM.toNanos());
    parties.forEach(SimulatedParty::stop);
    return parties;
  }

  private void begin() {
    if (prepared == null) {
      makeKeys();
    } else {
      prepared.begin(this, parties);
    }
    if (requests != null) {
      requests.start();
    }
    pass(100 * MILLI);
  }

  private void makeKeys() {
    parties.forEach(SimulatedParty::start);
    coordinator.createKey(BLS_KEY, Scheme.SCHEME_BLS12381);
    coordinator.createKey(ECDSA_KEY, Scheme.SCHEME_ECDSA_SECP256K1);
    coordinator.createKey(ED25519_KEY, Scheme.SCHEME_ED25519);
    coordinator.createKey(BIP340_KEY, Scheme.SCHEME_BIP340_SECP256K1);
    for (int tenths = 0; !coordinator.everybodyUsesKeys(); tenths++) {
      if (tenths == 200) {
        throw new IllegalStateException("the keys are not made");
      }
      pass(100 * MILLI);
    }
  }

  private void pass(long nanos) {
    timeline.runUntil(timeline.nanos() + nanos);
  }

  private void beHostile() {
    trace.line("the world becomes hostile");
    hostile = true;
    network.faultsPerMille(setting.networkPerMille());
    liar.begin();
    again("act", 10 * MILLI, 700 * MILLI, coordinator::act);
    if (setting.has(Plague.KILLS)) {
      again("kill", SECOND / 2, 8 * SECOND, own -> killAndStart(own, own.any(parties)));
    }
    if (setting.has(Plague.PUT_BACK)) {
      SimulatedParty party = parties.get(setting.unsound() - 1);
      again("copy", SECOND / 2, 4 * SECOND, _ -> party.keepCopy());
      again("restore", 3 * SECOND, 15 * SECOND, own -> putBack(own, party));
    }
    if (setting.has(Plague.CLONES)) {
      SimulatedParty party = parties.get(setting.unsound() - 1);
      again("clone", 2 * SECOND, 15 * SECOND, own -> cloneOf(own, party));
    }
    if (requests != null) {
      again("client", 50 * MILLI, 1_500 * MILLI, requests.clients()::act);
    }
    if (setting.has(Plague.REPLICA_KILLS)) {
      again("replica", 2 * SECOND, 10 * SECOND, requests()::kill);
    }
    if (setting.has(Plague.DATABASE_AWAY)) {
      again("database", 2 * SECOND, 10 * SECOND, requests()::cutOff);
      again("answer", SECOND, 6 * SECOND, requests()::loseAnswer);
      again("slow database", 2 * SECOND, 8 * SECOND, requests()::slowDown);
    }
    if (setting.has(Plague.DATABASE_CRASHES)) {
      again("crash", SECOND, 8 * SECOND, requests()::crash);
    }
    if (mutant == Mutant.LOSES_COMMITS) {
      again("lossy disk", SECOND / 10, SECOND, _ -> parties.forEach(SimulatedParty::keepCopy));
    }
    if (setting.has(Plague.FULL_DISKS)) {
      again("full disk", 2 * SECOND, 10 * SECOND, own -> fillDisk(own, own.any(parties)));
    }
    if (setting.has(Plague.CUTS)) {
      again("cut", SECOND, 8 * SECOND, this::cutOff);
    }
    if (setting.has(Plague.SKEWS)) {
      again("clock", SECOND, 6 * SECOND, this::setClock);
    }
    if (setting.has(Plague.JUMPS)) {
      SimulatedParty party = parties.get(setting.jumping() - 1);
      again("jump", SECOND, 10 * SECOND, own -> jump(own, party));
    }
    if (setting.has(Plague.HOLDS)) {
      again("hold", SECOND, 8 * SECOND, own -> hold(own, own.any(parties)));
    }
    if (setting.has(Plague.RESTARTS)) {
      again("restart", SECOND / 10, SECOND, own -> restart(own, own.any(parties)));
      again("leave", 5 * SECOND, 15 * SECOND, own -> leave(own, own.any(parties)));
      again("clock back", 5 * SECOND, 20 * SECOND, own -> setClockBack(own, own.any(parties)));
    }
    pass(setting.hostile().toNanos());
    hostile = false;
  }

  /**
   * Does something again and again while the world is hostile, each time by a stream of its own.
   */
  private void again(String what, long leastNanos, long mostNanos, Consumer<Chance> task) {
    again(what, 1, leastNanos, mostNanos, task);
  }

  private void again(
      String what, int number, long leastNanos, long mostNanos, Consumer<Chance> task) {
    Chance own = chance.part(what + " " + number);
    timeline.in(
        own.between(leastNanos, mostNanos),
        () -> {
          if (hostile) {
            if (faults.strikes(what)) {
              task.accept(own);
            }
            again(what, number + 1, leastNanos, mostNanos, task);
          }
        });
  }

  private void killAndStart(Chance own, SimulatedParty party) {
    long down = own.between(10 * MILLI, 3 * SECOND);
    if (!party.runs()) {
      return;
    }
    if (own.perMille(500)) {
      kill(party, down);
    } else {
      // The kill falls between its next write and the commit of that.
      long soon = own.between(0, MILLI);
      party.disk().whenGiven(() -> timeline.in(soon, () -> kill(party, down)));
    }
  }

  private void kill(SimulatedParty party, long downNanos) {
    if (hostile && party.runs()) {
      coverage.count(party.disk().isBusy() ? "fault KILLED_BEFORE_COMMIT" : "fault KILLED");
      party.kill();
      startLater(party, downNanos);
    }
  }

  private void restart(Chance own, SimulatedParty party) {
    if (party.runs() && own.perMille(300)) {
      coverage.count("fault STOPPED");
      party.stop();
      startLater(party, own.between(10 * MILLI, 3 * SECOND));
    } else {
      killAndStart(own, party);
    }
  }

  /** Stops a party for longer than the others wait for it at their starts. */
  private void leave(Chance own, SimulatedParty party) {
    if (party.runs()) {
      coverage.count("fault AWAY");
      party.stop();
      startLater(party, own.between(4 * SECOND, 12 * SECOND));
    }
  }

  private void setClockBack(Chance own, SimulatedParty party) {
    coverage.count("fault CLOCK_BACK");
    party.clockOffset(Duration.ofSeconds(-own.between(60, 600)));
    timeline.in(5 * SECOND, () -> party.clockOffset(Duration.ZERO));
  }

  private void startLater(SimulatedParty party, long downNanos) {
    timeline.in(
        downNanos,
        () -> {
          if (!party.runs()) {
            party.start();
          }
        });
  }

  private void putBack(Chance own, SimulatedParty party) {
    if (party.runs() && party.hasCopies()) {
      boolean byRestore = own.perMille(400);
      coverage.count(byRestore ? "fault RESTORED" : "fault PUT_BACK");
      party.kill();
      party.putBack(own, byRestore);
      long down = own.between(10 * MILLI, 3 * SECOND);
      startLater(party, down);
      // Its operator looks at the holds after a restore.
      timeline.in(
          down + SECOND,
          () -> {
            if (byRestore && party.runs()) {
              party.liftAll();
            }
          });
    }
  }

  /** The same party a second time, for a while, from what is on its disk now. */
  private void cloneOf(Chance own, SimulatedParty party) {
    if (party.runs()) {
      coverage.count("fault CLONED");
      SimulatedParty clone = party.twin(clones.size() + 1);
      clones.add(clone);
      clone.start();
      timeline.in(own.between(SECOND, 8 * SECOND), () -> end(clone));
    }
  }

  private static void end(SimulatedParty process) {
    if (process.runs()) {
      process.kill();
    }
  }

  private void fillDisk(Chance own, SimulatedParty party) {
    if (!party.runs()) {
      return;
    }
    coverage.count("fault DISK_FULL");
    trace.line(party.member().name() + " has a full disk");
    SimulatedDisk disk = party.disk();
    disk.full(true);
    timeline.in(own.between(SECOND / 10, 3 * SECOND), () -> disk.full(false));
  }

  private void cutOff(Chance own) {
    Member from = own.any(network.roster().members());
    Member to = own.any(network.roster().members());
    trace.line(from.name() + " does not reach " + to.name());
    network.cut(from.name(), to.name());
    if (own.perMille(500)) {
      network.cut(to.name(), from.name());
    }
    timeline.in(own.between(SECOND / 10, 8 * SECOND), network::heal);
  }

  private void setClock(Chance own) {
    // Two clocks differ by what the parties allow for, at most.
    long most = SimulatedParty.CLOCK_SKEW.toNanos() / 2;
    own.any(parties).clockOffset(Duration.ofNanos(own.between(0, 2 * most) - most));
    coverage.count("fault CLOCK_SET");
  }

  /** A clock goes far ahead or back, and later it is right again. */
  private void jump(Chance own, SimulatedParty party) {
    Duration by = Duration.ofSeconds(own.any(JUMPS));
    boolean ahead = own.perMille(500);
    trace.line(party.member().name() + " has a clock that is off by " + by);
    party.clockOffset(ahead ? by : by.negated());
    coverage.count(ahead ? "fault CLOCK_AHEAD" : "fault CLOCK_BEHIND");
    timeline.in(own.between(SECOND / 10, 6 * SECOND), () -> party.clockOffset(Duration.ZERO));
  }

  private void hold(Chance own, SimulatedParty party) {
    String key = own.any(List.copyOf(coordinator.keys())).name;
    coverage.count("fault HELD");
    trace.line("the operator of " + party.member().name() + " holds " + key);
    party.hold(key);
    timeline.in(own.between(SECOND, 5 * SECOND), () -> party.lift(key));
  }

  private void calmDown() {
    trace.line("faults and lies stop");
    network.faultsPerMille(0);
    network.heal();
    liar.stop();
    coordinator.repent();
    clones.forEach(World::end);
    for (SimulatedParty party : parties) {
      party.clockOffset(Duration.ZERO);
      if (party.runs()) {
        party.disk().full(false);
      } else {
        party.start();
      }
      party.liftAll();
    }
    if (requests != null) {
      requests.calm();
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
    PartyMessage message = Messages.parse(body);
    trace.line(from.name() + " -> " + to.name() + "  " + Messages.describe(message, checker));
    if (setting.isCorrupt(from.partyId())) {
      return liar.tells(to, body, broadcast);
    }
    if (requests != null && message.hasCancelAnswer()) {
      requests.checker().answers(message.getCancelAnswer());
    }
    if (!isExcused(from.partyId(), message)) {
      checkDisk(from.partyId(), message.getReport());
      checker.left(from.partyId(), to, message);
    }
    return List.of(body);
  }

  /** A share is on disk when its party first says so. */
  private void checkDisk(int party, SessionReport report) {
    ByteString session = report.getSessionId();
    if (report.getCompleted().hasKeyPublic() && !checker.hasToldOfShare(party, session)) {
      checker.hasTold(party, session, parties.get(party - 1).hasShareOf(session));
    }
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
    if (requests != null && requests.isReplica(to)) {
      requests.arrived(from, to, Messages.parse(body));
    }
    if (mutant == Mutant.FORGETS_LEDGERS && to.role() == Member.Role.PARTY) {
      PartyMessage message = Messages.parse(body);
      if (message.hasClaimCount()) {
        parties.get(to.partyId() - 1).stated(from, message.getClaimCount());
      }
    }
  }
}
