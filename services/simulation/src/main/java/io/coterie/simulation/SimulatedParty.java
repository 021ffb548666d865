package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.signer.channel.ChannelNetwork;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.PresignatureLimits;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.policy.ConfiguredPolicy;
import io.coterie.signer.policy.PathPrefix;
import io.coterie.signer.policy.RequesterRule;
import io.coterie.signer.policy.ShareFloor;
import io.coterie.signer.session.SessionPorts;
import io.coterie.signer.session.SessionService;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.storage.Backup;
import io.coterie.signer.storage.OperatorRequests;
import io.coterie.signer.storage.PartyStore;
import io.coterie.trust.Glob;
import io.coterie.trust.Member;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One party: the signer that ships, on the timeline, the network and the disk of the simulation. A
 * kill leaves what is on disk; a start is a new process.
 */
final class SimulatedParty {
  static final Duration CLOCK_SKEW = Duration.ofMillis(500);

  private static final SessionLimits LIMITS =
      new SessionLimits(
          256,
          256,
          Duration.ofSeconds(60),
          CLOCK_SKEW,
          Duration.ofMillis(20),
          new PresignatureLimits(64, 100, 16, 4, Duration.ofHours(1)));

  private static final RequesterRule RULE =
      new RequesterRule(
          List.of(new Glob("keys/sim-*")),
          EnumSet.of(
              Scheme.SCHEME_BLS12381,
              Scheme.SCHEME_ECDSA_SECP256K1,
              Scheme.SCHEME_ED25519,
              Scheme.SCHEME_BIP340_SECP256K1),
          true,
          false,
          true,
          true,
          false,
          false,
          new ShareFloor(2, 2, Set.of()),
          EnumSet.allOf(PayloadKind.class),
          List.of(PathPrefix.parse("m")),
          List.of(new Glob("*")),
          1024,
          RequesterRule.Lapse.AFTER_DEADLINE,
          null);

  /** The policy of every party. */
  static PolicyGate policy() {
    return new ConfiguredPolicy(Identities.requesters(), Map.of(Identities.REQUESTER, RULE));
  }

  private final World world;
  private final int id;
  private final String name;
  private final Member self;
  private final Path parent;
  private final Path folder;
  private final Chance chance;
  private final List<Path> copies = new ArrayList<>();
  private final Map<Member, ClaimCount> stated = new HashMap<>();
  private final Multiplications multiplications;
  private int incarnations;
  private int failedCommits;

  /** The first request id that may be claimed, by what is on disk; empty if there is none. */
  private String fence = "";

  /** The same of each copy. */
  private final List<String> fences = new ArrayList<>();

  /** Whether {@code restore} has marked the store, and no process has opened it since. */
  private boolean marked;

  private @Nullable Incarnation current;

  /** The difference between its clock and the timeline. */
  private Duration clockOffset = Duration.ZERO;

  /** One run of the signer. */
  private record Incarnation(
      SimulatedDisk disk,
      PartyStore store,
      KeyShareStore shares,
      SessionService service,
      SimulatedPool pool,
      SecureChannel channel,
      WatchedCore core,
      Runnable closeCore) {}

  /**
   * @param name of its processes; the roster's, but for a twin
   * @param parent of the folders of all
   */
  SimulatedParty(World world, int id, String name, Path parent) {
    this.world = world;
    this.id = id;
    this.name = name;
    this.parent = parent;
    this.folder = parent.resolve(name);
    this.self = world.network().roster().byPartyId(id).orElseThrow();
    this.chance = world.chance().part(name);
    this.multiplications = new Multiplications(id);
  }

  /** The same party with a copy of what is on its disk now; it does not run yet. */
  SimulatedParty twin(int number) {
    SimulatedParty twin = new SimulatedParty(world, id, name + "-twin-" + number, parent);
    StoreFiles.copy(folder, twin.folder);
    twin.clockOffset = clockOffset;
    twin.fence = fence;
    world.checker().cloned(id);
    return twin;
  }

  int id() {
    return id;
  }

  Member member() {
    return self;
  }

  boolean runs() {
    return current != null;
  }

  void clockOffset(Duration offset) {
    clockOffset = offset;
  }

  /** The store of the process that runs. */
  PartyStore store() {
    return running().store();
  }

  /** The shares of the process that runs, as that process sees them. */
  KeyShareStore shares() {
    return running().shares();
  }

  /** The record of its multiplications, as the world saw them. */
  Multiplications multiplications() {
    return multiplications;
  }

  /** The run of a session is closed in a core; nothing if that process is gone. */
  void closed(ByteString session, WatchedCore core) {
    Incarnation now = current;
    if (now != null && now.core() == core) {
      multiplications.over(session, now.disk());
    }
  }

  /** The first request id that may be claimed here since a restore; empty if there was none. */
  String fence() {
    return fence;
  }

  /** Whether the operator holds a key here. */
  boolean holds(String key) {
    return store().holds().all().stream()
        .map(hold -> hold.scope().text())
        .anyMatch(scope -> scope.equals(key) || scope.equals("installation"));
  }

  /** Whether a share that a session made is on disk. */
  boolean hasShareOf(ByteString session) {
    return store().shares().ofSession(new SessionId(session)).isPresent();
  }

  /** The disk of the process that runs. */
  SimulatedDisk disk() {
    return running().disk();
  }

  /** Whether a commit of it has ever failed while it lived. */
  boolean hasFailedCommits() {
    Incarnation now = current;
    return failedCommits + (now == null ? 0 : now.disk().failures()) > 0;
  }

  private Incarnation running() {
    Incarnation now = current;
    if (now == null) {
      throw new IllegalStateException(name + " does not run");
    }
    return now;
  }

  /** A peer has stated how far its ledger has come. */
  void stated(Member peer, ClaimCount count) {
    stated.put(peer, count);
  }

  private Clock clock() {
    return new Clock() {
      @Override
      public ZoneId getZone() {
        return ZoneOffset.UTC;
      }

      @Override
      public Clock withZone(ZoneId zone) {
        return this;
      }

      @Override
      public Instant instant() {
        return world.now().plus(clockOffset);
      }
    };
  }

  /** Starts a process with the store of one before it, in another world. */
  void start(Map<String, byte[]> store) {
    StoreFiles.write(store, folder);
    incarnations++;
    start();
  }

  /** The files of its store, as that goes to another world. It does not run. */
  Map<String, byte[]> files() {
    return StoreFiles.read(folder);
  }

  /** Starts a process, wired as in production but for its means. */
  void start() {
    incarnations++;
    Mutant mutant = world.setting().isCorrupt(id) ? Mutant.NONE : world.mutant();
    Chance means = chance.part("process " + incarnations);
    Clock clock = clock();
    SimulatedDisk disk = new SimulatedDisk(world.timeline(), means.part("disk"));
    PartyStore store =
        PartyStore.open(folder, self.name(), clock, (_, _) -> {}, () -> disk, means.part("ledger"));
    disk.opened();
    if (marked) {
      marked = false;
      String here = RequestId.first(clock.instant());
      fence = here.compareTo(fence) > 0 ? here : fence;
    }
    SimulatedPool pool =
        new SimulatedPool(world.timeline(), means.part("pool"), LIMITS.combineDelay());
    SecureChannel channel = world.network().channel(self);
    Observed telemetry = new Observed(world.coverage());
    ChannelNetwork network = new ChannelNetwork(channel, pool, telemetry, false);
    Cores.Opened opened =
        world
            .cores()
            .open(
                id,
                mutant == Mutant.REPEATS_ONE_TIME_VALUES
                    ? world.chance().part(self.name()).part("core")
                    : means.part("core"));
    WatchedCore core = new WatchedCore(Weakened.core(opened.core(), mutant), world.checker(), this);
    KeyShareStore shares = Weakened.shares(store.shares(), mutant);
    SessionService service =
        new SessionService(
            new SessionPorts(
                Weakened.network(network, mutant, stated::get),
                Weakened.policy(world.policy(), mutant),
                new SessionPorts.Ledgers(
                    Weakened.claims(watched(store.claims(), disk), mutant),
                    shares,
                    Weakened.shown(store.shownClaims(), mutant),
                    Weakened.holds(store.holds(), mutant),
                    store.exactNonces()),
                core,
                store.audit(),
                telemetry,
                clock),
            LIMITS,
            _ -> Duration.ZERO,
            pool);
    current = new Incarnation(disk, store, shares, service, pool, channel, core, opened.close());
    network.deliverTo(service);
    channel.start();
    world.trace().line(name + " starts");
  }

  private ClaimLedger watched(ClaimLedger claims, SimulatedDisk disk) {
    Port.Instead watched =
        (real, given) ->
            real.<ClaimLedger.Outcome>later(given)
                .thenApply(
                    outcome -> {
                      if (outcome == ClaimLedger.Outcome.CLAIMED) {
                        SessionId session =
                            given[0] instanceof ClaimLedger.Claim claim
                                ? claim.session()
                                : (SessionId) given[0];
                        multiplications.claimed(world.checker().order(session.bytes()), disk);
                      }
                      return outcome;
                    });
    return Port.with(
        ClaimLedger.class, claims, Map.of("claimOnce", watched, "claimSession", watched));
  }

  /**
   * Ends abruptly; only the disk remains. The store is closed to give back its memory, but whatever
   * it writes meanwhile is not what a killed process writes.
   */
  void kill() {
    Incarnation gone = running();
    current = null;
    failedCommits += gone.disk().failures();
    multiplications.processEnds(gone.disk());
    world.trace().line(name + " is killed");
    gone.disk().kill();
    gone.pool().close();
    gone.channel().close();
    gone.core().kill();
    gone.closeCore().run();
    Path left = folder.resolveSibling(folder.getFileName() + "-left");
    StoreFiles.copy(folder, left);
    gone.store().close();
    boolean loses = world.mutant() == Mutant.LOSES_COMMITS && !copies.isEmpty();
    if (loses) {
      StoreFiles.copy(copies.getLast(), folder);
    } else {
      StoreFiles.move(left, folder);
    }
  }

  /** Ends in order: its sessions end, and all that it has given to write is on disk. */
  void stop() {
    Incarnation gone = running();
    world.trace().line(self.name() + " stops");
    gone.pool().hurry();
    gone.service().close();
    close(gone);
    multiplications.processEnds(gone.disk());
  }

  /** Ends with the schedule: nobody looks at its disk any more. */
  void end() {
    Incarnation gone = current;
    if (gone != null) {
      gone.disk().kill();
      close(gone);
    }
  }

  private void close(Incarnation gone) {
    current = null;
    failedCommits += gone.disk().failures();
    gone.pool().close();
    gone.channel().close();
    gone.core().kill();
    gone.closeCore().run();
    gone.store().close();
  }

  /** Keeps a copy of what is on disk now. */
  void keepCopy() {
    Path copy = folder.resolveSibling(folder.getFileName() + "-copy-" + copies.size());
    StoreFiles.copy(folder, copy);
    copies.add(copy);
    fences.add(fence);
    Incarnation now = current;
    multiplications.copied(now == null ? null : now.disk());
  }

  boolean hasCopies() {
    return !copies.isEmpty();
  }

  /**
   * Puts an older copy in the place of the store. The party does not run.
   *
   * @param own says which
   * @param byRestore whether the operator restores a backup, or somebody moves files
   */
  void putBack(Chance own, boolean byRestore) {
    int which = own.below(copies.size());
    fence = fences.get(which);
    multiplications.putBack(which);
    if (byRestore) {
      restore(copies.get(which));
      marked = true;
    } else {
      StoreFiles.copy(copies.get(which), folder);
    }
    world
        .trace()
        .line(name + (byRestore ? " is restored from copy " : " has its store of copy ") + which);
    world.checker().putBack(id, claimed());
  }

  /** Puts a copy back as the commands {@code backup} and {@code restore} do. */
  private void restore(Path copy) {
    try {
      Files.write(copy.resolve(Backup.DATA_KEY), new byte[0]);
      ByteArrayOutputStream zip = new ByteArrayOutputStream();
      Backup.write(copy, zip);
      StoreFiles.clear(folder);
      Backup.restore(new ByteArrayInputStream(zip.toByteArray()), folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  // ---- its operator ----------------------------------------------------------------------------

  /** Holds the orders of a key; soon. */
  void hold(String key) {
    ask(OperatorRequests.Kind.HOLD, key);
  }

  /** Ends that; soon. */
  void lift(String key) {
    ask(OperatorRequests.Kind.LIFT, key);
  }

  /** Ends every hold; soon. */
  void liftAll() {
    // This ends one that was asked for and is not done, too, or that came back with a copy.
    try {
      for (Path file : StoreFiles.files(folder)) {
        if (file.getFileName().toString().startsWith("hold-")) {
          Files.delete(file);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    store().holds().all().forEach(hold -> lift(hold.scope().text()));
  }

  private void ask(OperatorRequests.Kind kind, String key) {
    try {
      PartyStore.createFolder(folder);
      new OperatorRequests(folder).ask(new OperatorRequests.Request(kind, key, "simulated"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Set<ByteString> claimed() {
    Set<ByteString> sessions = new LinkedHashSet<>();
    try (Connection connection =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT session_id FROM claimed_session")) {
      while (rows.next()) {
        sessions.add(ByteString.copyFrom(rows.getBytes(1)));
      }
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
    return sessions;
  }
}
