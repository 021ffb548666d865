package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.storage.memory.MemoryDatabase;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcSession;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The part of a world in which clients ask the coordinator that ships for signatures: its replicas,
 * which are other members than those of the lying one, and the database that they share.
 */
final class RequestWorld {
  /** Replicas of the coordinator. */
  static final int REPLICAS = 2;

  /** Under this name the workload writes down which shares the parties use. */
  private static final String WRITER = "workload";

  private static final long MILLI = 1_000_000L;
  private static final long SECOND = 1_000 * MILLI;

  private final World world;
  private final List<Member> members;
  private final MemoryDatabase database;
  private final Map<Member, ReplicaDatabase> ways = new LinkedHashMap<>();
  private final Map<Member, CoordinatorProcess> processes = new LinkedHashMap<>();
  private final Map<Member, Integer> incarnations = new HashMap<>();
  private final RequestChecker checker;
  private final OrderChecker orders;
  private final Clients clients;

  /** Run when the next request is stored; null if nothing is. */
  private @Nullable Runnable afterNextClaim;

  /** The parties that held a key since each reshare of it: by key and the epoch that it made. */
  private final Map<String, RequestChecker.Holders> holders = new HashMap<>();

  /**
   * @param members the replicas
   */
  RequestWorld(World world, List<Member> members) {
    this.world = world;
    this.members = members;
    this.database = new MemoryDatabase(world.timeline()::nanos, CoordinatorProcess.GONE_AFTER);
    this.checker = new RequestChecker(world);
    this.orders = new OrderChecker(world);
    this.clients = new Clients(world, this);
    RowLocks locks = new RowLocks();
    database.skip(row -> locks.isHeld(RowLocks.row(row)));
    for (Member member : members) {
      ways.put(member, new ReplicaDatabase(world, database, locks, orders, member.name()));
    }
  }

  RequestChecker checker() {
    return checker;
  }

  Clients clients() {
    return clients;
  }

  /** Starts all replicas that do not run. */
  void start() {
    members.forEach(this::start);
  }

  private void start(Member member) {
    ReplicaDatabase way = ways.get(member);
    if (way != null && !processes.containsKey(member)) {
      int number = incarnations.merge(member, 1, Integer::sum);
      world.trace().line(member.name() + " starts");
      processes.put(
          member,
          new CoordinatorProcess(
              world, way, member, world.chance().part(member.name()).part("process " + number)));
    }
  }

  /** A replica, whether it runs or not. */
  Member any(Chance own) {
    return own.any(members);
  }

  /** The process of a replica; null if it does not run. */
  @Nullable CoordinatorProcess process(Member member) {
    return processes.get(member);
  }

  // ---- faults ----------------------------------------------------------------------------------

  /** Ends a replica abruptly, for a while. */
  void kill(Chance own) {
    Member member = any(own);
    long down = own.between(10 * MILLI, 6 * SECOND);
    CoordinatorProcess gone = processes.remove(member);
    if (gone == null) {
      return;
    }
    world.coverage().count("fault REPLICA_KILLED");
    world.trace().line(member.name() + " is killed");
    gone.kill();
    orders.killed(member.name());
    world.timeline().in(down, () -> start(member));
  }

  /** Cuts a replica off from the database, for a while. */
  void cutOff(Chance own) {
    Member member = any(own);
    ReplicaDatabase way = ways.get(member);
    if (way != null) {
      world.trace().line(member.name() + " does not reach the database");
      way.away(true);
      world.timeline().in(own.between(SECOND / 10, 6 * SECOND), () -> way.away(false));
    }
  }

  /** The database ends, at once or soon after the next request is stored. */
  void crash(Chance own) {
    if (own.perMille(500)) {
      crashNow(own);
    } else {
      afterNextClaim = () -> world.timeline().in(own.between(0, SECOND / 5), () -> crashNow(own));
    }
  }

  /** A replica has stored a request. */
  void claimed() {
    Runnable then = afterNextClaim;
    afterNextClaim = null;
    if (then != null) {
      then.run();
    }
  }

  /** The database ends, without the last commits, and starts again after a while. */
  private void crashNow(Chance own) {
    if (!world.isHostile()) {
      return;
    }
    long claims = storedClaims();
    long now = world.timeline().nanos();
    int lost = database.crash(now - own.between(0, MemoryDatabase.WRITTEN_AFTER.toNanos()));
    world.coverage().count("fault DATABASE_CRASHED");
    if (lost > 0) {
      orders.crashed();
    }
    if (storedClaims() < claims) {
      world.coverage().count("fault CLAIM_LOST");
    }
    world.trace().line("the database crashes and loses " + lost + " commits");
    ways.values().forEach(way -> way.down(true));
    world
        .timeline()
        .in(
            own.between(SECOND / 10, 6 * SECOND),
            () -> ways.values().forEach(way -> way.down(false)));
  }

  private long storedClaims() {
    return checker.requests().stream().filter(request -> stored(request).isPresent()).count();
  }

  /** A replica gets no answer to a statement that is done. */
  void loseAnswer(Chance own) {
    Member member = any(own);
    Objects.requireNonNull(ways.get(member)).loseAnswer(own);
    world.trace().line(member.name() + " loses an answer of the database");
  }

  /** Statements of a replica take long, for a while. */
  void slowDown(Chance own) {
    Member member = any(own);
    ReplicaDatabase way = Objects.requireNonNull(ways.get(member));
    world.trace().line("the database is slow for " + member.name());
    way.slow(true);
    world.timeline().in(own.between(SECOND / 2, 6 * SECOND), () -> way.slow(false));
  }

  /** Faults have stopped. */
  void calm() {
    ways.values()
        .forEach(
            way -> {
              way.away(false);
              way.down(false);
              way.slow(false);
              way.loseNothing();
            });
    start();
  }

  /** Ends all threads. */
  void end() {
    processes.values().forEach(CoordinatorProcess::kill);
    processes.clear();
  }

  // ---- keys ------------------------------------------------------------------------------------

  /**
   * The parties use other shares of a key: the database learns of it as from the replica that made
   * them.
   *
   * @param intent of the key creation or renewal that made them
   */
  void uses(SimulatedKey key, SignedIntent intent) {
    KeyPublic current = SimulatedCoordinator.known(key);
    holders.put(key.name + "/" + key.reshareEpoch, RequestChecker.Holders.of(current));
    RequestHeader header = header(intent);
    Completion completion =
        Completion.newBuilder()
            .setKeyPublic(current.toByteString())
            .setSignedIntent(intent)
            .build();
    List<KeyRecord.Holder> parties = new ArrayList<>();
    RequestChecker.Holders.of(current)
        .parties()
        .forEach(party -> parties.add(new KeyRecord.Holder(party, Identities.party(party))));
    KeyStore keys = database.keys(WRITER);
    KeyRecord known = keys.find(key.name).orElse(null);
    MadeKey made = known == null ? null : known.made();
    if (known == null || made == null) {
      KeyRecord begun =
          KeyRecord.creating(header, key.name, key.scheme, current.getThreshold(), parties);
      if (keys.create(begun) instanceof KeyStore.Creation.Stored(KeyRecord stored)) {
        keys.finish(stored.id(), MadeKey.created(completion), null, 1);
      }
      return;
    }
    Renewal renewal =
        Renewal.running(header, key.name, known.epoch(), current.getThreshold(), parties);
    RenewalStore renewals = database.renewals(WRITER);
    if (renewals.start(renewal) instanceof RenewalStore.Start.Stored(Renewal stored)) {
      renewals.switchEpoch(stored.id(), made.renewed(completion), 1);
    }
  }

  private RequestHeader header(SignedIntent intent) {
    try {
      return RequestHeader.of(IntentVerifier.verify(intent, Identities.requesters()), world.now());
    } catch (IntentException e) {
      throw new IllegalStateException("shares were made that nobody asked for", e);
    }
  }

  /** A client has a new request. */
  void begun(SigningRequest request) {
    RequestChecker.Holders then =
        holders.get(request.key().name + "/" + request.key().reshareEpoch);
    if (then == null) {
      throw new IllegalStateException("nobody holds " + request.key().name);
    }
    checker.begun(request, then);
    orders.begun(request.id());
  }

  // ---- the wire --------------------------------------------------------------------------------

  boolean isReplica(Member member) {
    return members.contains(member);
  }

  /** The channel of a replica, which is watched. */
  SecureChannel channel(Member member) {
    return Port.with(
        SecureChannel.class,
        world.network().channel(member),
        Map.of(
            "reachable",
            (real, given) -> {
              Object reachable = Objects.requireNonNull(real.call(given));
              for (Member party : world.network().roster().members()) {
                if (!((Set<?>) reachable).contains(party)) {
                  orders.away(member.name(), party.partyId());
                }
              }
              return reachable;
            },
            "broadcast",
            (real, given) -> {
              PartyMessage message = Messages.parse((byte[]) given[1]);
              if (!message.hasOrder()) {
                return real.call(given);
              }
              Ordered order = ordered(member, message.getOrder());
              CompletableFuture<?> taken = real.later(given).toCompletableFuture();
              if (taken.isCompletedExceptionally()) {
                orders.untaken(member.name(), order.session());
              }
              return taken;
            }));
  }

  /** The core of a replica: a session that it ends needs no settling. */
  MpcCore observer(Member member) {
    return Port.with(
        MpcCore.class,
        world.cores().observer(),
        Map.of(
            "observe",
            (real, given) -> {
              ByteString session = ((SessionConfig) given[0]).getSessionId();
              Hearing hearing = orders.hears(member.name(), world.checker().order(session));
              return Port.with(
                  MpcSession.class,
                  (MpcSession) Objects.requireNonNull(real.call(given)),
                  Map.of(
                      "handle",
                      (heard, envelope) -> {
                        Step step = (Step) Objects.requireNonNull(heard.call(envelope));
                        hearing.took(step);
                        if (step.hasAbort()) {
                          orders.settled(member.name(), session);
                          step.getAbort().getCulpritsList().forEach(orders::excluded);
                        }
                        return step;
                      }));
            }));
  }

  private Ordered ordered(Member from, ByteString bytes) {
    Ordered order = Ordered.of(0, bytes, Ordered.Cause.NONE);
    if (!world.checker().knows(order.session())) {
      order = world.coordinator().ordered(bytes, cause(order));
      world.trace().line(from.name() + " orders " + order);
    }
    Ordered known = world.checker().order(order.session());
    orders.ordered(from.name(), known);
    return known;
  }

  private Ordered.Cause cause(Ordered order) {
    try {
      String id =
          IntentVerifier.verify(order.order().getSignedIntent(), Identities.requesters())
              .requestId();
      return checker
          .request(id)
          .map(SigningRequest::cause)
          .orElseThrow(() -> new IllegalStateException("no client has asked for " + id));
    } catch (IntentException e) {
      throw new IllegalStateException("the coordinator orders what nobody has signed", e);
    }
  }

  /** Something comes to a replica. */
  void arrived(Member from, Member to, PartyMessage message) {
    if (message.hasReport()) {
      orders.reported(to.name(), from.partyId(), message.getReport());
    }
  }

  // ---- the end ---------------------------------------------------------------------------------

  /** Clients ask once more for all that they have asked for. */
  void check() {
    for (SigningRequest request : checker.requests()) {
      if (stored(request).filter(r -> r.state() == Signing.State.PENDING).isPresent()) {
        checker.violated(Breach.REQUEST_WITHOUT_END, request);
      }
    }
    clients.askAgain();
    checker.check();
  }

  Optional<SigningRecord> stored(SigningRequest request) {
    return database.signings(WRITER).find(SigningRecord.idOf(Identities.REQUESTER, request.id()));
  }

  /** Without corrupt parties and stores that went back, a request is signed at once. */
  void checkProgress(SimulatedKey key) {
    if (world.setting().corrupt().isEmpty() && world.setting().unsound() == 0) {
      SigningRequest request = clients.askNow(key);
      if (!world.waitFor(Duration.ofSeconds(20), () -> checker.isTold(request))) {
        checker.violated(Breach.REQUEST_NOT_SIGNED, request);
      }
    }
  }
}
