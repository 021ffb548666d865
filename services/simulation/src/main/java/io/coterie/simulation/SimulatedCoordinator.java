package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.ObservedSession;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionCancel;
import io.coterie.trust.Member;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Orders sessions as a coordinator does, and lies if the schedule says so. It is the workload of
 * the simulation, not the coordinator that ships.
 */
final class SimulatedCoordinator {
  /** A party whose clock is behind by no more than this knows no request as one of the future. */
  static final Duration DRAWN_AGO = Duration.ofSeconds(10);

  /** Most refreshes and reshares of a schedule. */
  private static final int MOST_RENEWALS = 5;

  private final World world;

  /** Decides about what is being done now. */
  private Chance chance;

  private final List<Replica> replicas = new ArrayList<>();

  /** The replica that gave each order first. */
  private final Map<ByteString, SecureChannel> givers = new HashMap<>();

  /** Sessions that a replica follows, and that have not ended for it. */
  private final Set<Ordered> followed = new LinkedHashSet<>();

  private final Map<String, SimulatedKey> keys = new LinkedHashMap<>();
  private final List<Ordered> orders = new ArrayList<>();
  private final List<SigningRequest> requests = new ArrayList<>();
  private final List<Stock> stock = new ArrayList<>();
  private final LedgerMemory ledgers;

  /** The receivers of each reshare. */
  private final Map<ByteString, List<Integer>> receiversOf = new HashMap<>();

  private final CoordinatorLies lies;
  private boolean honest;
  private int renewals;

  /** A presignature that the parties have. */
  record Stock(
      Replica replica, SimulatedKey key, int epoch, List<Integer> parties, ByteString id) {}

  /**
   * @param members the replicas, which share what they know
   */
  SimulatedCoordinator(World world, List<Member> members) {
    this.world = world;
    this.chance = world.chance().part("coordinator");
    this.honest = !world.setting().has(Plague.LYING_COORDINATOR);
    this.lies = new CoordinatorLies(this);
    this.ledgers = new LedgerMemory(world.coverage(), !honest && chance.perMille(500));
    for (Member member : members) {
      Replica replica =
          new Replica(world, member, ledgers, world.checker()::wentBackForCoordinator);
      replicas.add(replica);
      replica.start(this::receive);
    }
  }

  /** From now on it does as it should. */
  void repent() {
    honest = true;
    ledgers.remember();
  }

  /** Goes on with the keys that another one has had made. */
  void goOnFrom(SimulatedCoordinator other) {
    other.keys.forEach((name, key) -> keys.put(name, key.copy()));
    orders.addAll(other.orders);
    ledgers.learn(other.ledgers);
  }

  World world() {
    return world;
  }

  SimulatedKey key(String name) {
    SimulatedKey key = keys.get(name);
    if (key == null) {
      throw new IllegalStateException("no key " + name);
    }
    return key;
  }

  Collection<SimulatedKey> keys() {
    return keys.values();
  }

  /** Whether all parties have said that they use each key. */
  boolean everybodyUsesKeys() {
    return keys().stream().allMatch(key -> key.users.size() == everybody().size());
  }

  // ---- the workload ----------------------------------------------------------------------------

  /** Has all parties make a key. */
  void createKey(String name, Scheme scheme) {
    SimulatedKey key = new SimulatedKey(name, scheme);
    key.holders = everybody();
    keys.put(name, key);
    SignedIntent intent =
        Identities.intents()
            .sign(Intents.key(requestId(), name, scheme, world.setting(), world.now()));
    give(
        new SessionPlan.Work.Keygen(),
        key,
        1,
        world.setting().threshold(),
        everybody(),
        20,
        intent,
        new Ordered.Cause("key " + name, content(intent), true));
  }

  /** Has the parties of a key replace their shares. */
  Ordered refresh(SimulatedKey key) {
    KeyPublic current = known(key);
    SignedIntent intent =
        Identities.intents().sign(Intents.refresh(requestId(), current, key.scheme, world.now()));
    renewals++;
    return give(
        new SessionPlan.Work.Refresh(current),
        key,
        current.getEpoch(),
        current.getThreshold(),
        key.holders,
        20,
        intent,
        new Ordered.Cause("refresh " + renewals, content(intent), true));
  }

  /**
   * Has a key shared anew: without one of its parties, or with all again. Enough honest parties
   * stay, and the corrupt ones are fewer than the threshold.
   */
  private void reshare(SimulatedKey key) {
    Setting setting = world.setting();
    KeyPublic current = known(key);
    List<Integer> receivers = everybody();
    int threshold = setting.threshold();
    if (key.holders.size() == receivers.size()) {
      receivers.remove(chance.below(receivers.size()));
      boolean fewer = chance.perMille(300) && threshold > 2;
      threshold -= fewer ? 1 : 0;
      long honest = receivers.stream().filter(party -> !setting.isCorrupt(party)).count();
      if (honest < threshold || setting.corrupt().size() >= threshold) {
        return;
      }
    }
    SignedIntent intent =
        Identities.intents()
            .sign(
                Intents.reshare(
                    requestId(), current, key.scheme, threshold, receivers, world.now()));
    Set<Integer> members = new TreeSet<>(key.holders);
    members.addAll(receivers);
    renewals++;
    Ordered ordered =
        give(
            new SessionPlan.Work.Reshare(current, key.holders, receivers),
            key,
            current.getEpoch(),
            threshold,
            List.copyOf(members),
            20,
            intent,
            new Ordered.Cause("reshare " + renewals, content(intent), true));
    receiversOf.put(ordered.session(), receivers);
    world.coverage().count("work RESHARE");
  }

  /** Orders a signature of something new. */
  Ordered sign(SimulatedKey key, List<Integer> parties) {
    return sign(newRequest(key, true), parties);
  }

  /**
   * A new wish of the requester.
   *
   * @param signed whether it has signed it, and not somebody else
   */
  SigningRequest newRequest(SimulatedKey key, boolean signed) {
    SigningRequest request = request(requestId(), key, chance.bytes(16), signed);
    if (signed) {
      requests.add(request);
    }
    return request;
  }

  /** A wish of the requester, or what somebody says is one. */
  SigningRequest request(String id, SimulatedKey key, byte[] payload, boolean signed) {
    SignedIntent intent =
        (signed ? Identities.intents() : Identities.forgedIntents())
            .sign(
                Intents.signing(
                    id, known(key), key.reshareEpoch, key.scheme, payload, world.now()));
    boolean allowed = signed && payload.length < Intents.TOO_LONG;
    return new SigningRequest(
        id, key, intent, new Ordered.Cause(Ordered.REQUEST + id, content(intent), allowed));
  }

  Ordered sign(SigningRequest request, List<Integer> parties) {
    return sign(request, parties, known(request.key()).getEpoch());
  }

  Ordered sign(SigningRequest request, List<Integer> parties, int epoch) {
    return sign(chance.any(replicas), request, parties, epoch, null);
  }

  void signPresigned(Stock one, SigningRequest request) {
    // Its parties have it for that replica.
    sign(one.replica(), request, one.parties(), one.epoch(), one.id());
  }

  private Ordered sign(
      Replica replica,
      SigningRequest request,
      List<Integer> parties,
      int epoch,
      @Nullable ByteString presignature) {
    KeyPublic current = known(request.key());
    return give(
        replica,
        new SessionPlan.Work.Sign(request.toSign(current), current, presignature, List.of()),
        request.key(),
        epoch,
        current.getThreshold(),
        parties,
        2 + chance.below(8),
        request.intent(),
        request.cause());
  }

  /** An order of a signature, for a lie: no replica follows it. */
  Ordered signOrder(SigningRequest request, List<Integer> parties) {
    KeyPublic current = known(request.key());
    Instant deadline = world.now().plusSeconds(2 + chance.below(8));
    Order order =
        Order.newBuilder()
            .setCoordinatorNonce(ByteString.copyFrom(chance.bytes(32)))
            .setProtocol(request.key().protocol(Protocol.Operation.SIGN).id())
            .setKey(request.key().name)
            .setEpoch(current.getEpoch())
            .setThreshold(current.getThreshold())
            .addAllSigningSet(parties)
            .setDeadline(Intents.timestamp(deadline))
            .setSignedIntent(request.intent())
            .build();
    return ordered(order.toByteString(), request.cause());
  }

  private void presign(SimulatedKey key) {
    KeyPublic current = known(key);
    give(
        new SessionPlan.Work.Presign(KeyTarget.SELF, 1 + chance.below(2), 0),
        key,
        current.getEpoch(),
        current.getThreshold(),
        quorum(key),
        2 + chance.below(8),
        null,
        Ordered.Cause.NONE);
  }

  /**
   * Does something of what a coordinator does, or should not do.
   *
   * @param own decides what
   */
  void act(Chance own) {
    chance = own;
    if (!honest && chance.perMille(450)) {
      lies.tellOne(own);
      return;
    }
    SimulatedKey key = anyKey();
    boolean random = key.scheme != Scheme.SCHEME_BLS12381;
    int choice = chance.below(20);
    if (choice == 0 && renewals < MOST_RENEWALS) {
      if (chance.perMille(400)) {
        reshare(key);
      } else {
        refresh(key);
      }
      if (!honest && chance.perMille(500)) {
        lies.orderEarly(key, own.part("early"));
      }
    } else if (choice < 5 && random) {
      presign(key);
    } else if (choice < 9 && !stock.isEmpty()) {
      Stock one = takeStock();
      signPresigned(one, newRequest(one.key(), true));
    } else if (choice < 12 && !requests.isEmpty()) {
      retry();
    } else {
      sign(key, quorum(key));
    }
  }

  /** Goes on with a request whose sessions are over without a signature. */
  private void retry() {
    SigningRequest request = chance.any(requests);
    List<Ordered> sessions =
        orders.stream().filter(o -> o.request().equals(Ordered.REQUEST + request.id())).toList();
    boolean over =
        sessions.stream()
            .allMatch(
                o ->
                    o.order().getDeadline().getSeconds() < world.now().getEpochSecond()
                        && !world.checker().isSigned(o.session()));
    if (over) {
      sign(request, quorum(request.key()));
    }
  }

  // ---- for lies --------------------------------------------------------------------------------

  List<Ordered> orders() {
    return orders;
  }

  List<SigningRequest> requests() {
    return requests;
  }

  boolean hasStock() {
    return !stock.isEmpty();
  }

  /** Takes a presignature out of the stock. */
  Stock takeStock() {
    return stock.remove(chance.below(stock.size()));
  }

  /** Tells parties of a session that nobody wants it any more. */
  void cancel(Ordered order) {
    PartyMessage cancel =
        PartyMessage.newBuilder()
            .setCancel(SessionCancel.newBuilder().setSessionId(order.session()))
            .build();
    send(chance.any(replicas).channel(), cancel, order.parties());
  }

  // ---- orders ----------------------------------------------------------------------------------

  private Ordered give(
      SessionPlan.Work work,
      SimulatedKey key,
      int epoch,
      int threshold,
      List<Integer> parties,
      int seconds,
      @Nullable SignedIntent intent,
      Ordered.Cause cause) {
    return give(chance.any(replicas), work, key, epoch, threshold, parties, seconds, intent, cause);
  }

  /** Has a replica order a session and follow it. */
  private Ordered give(
      Replica replica,
      SessionPlan.Work work,
      SimulatedKey key,
      int epoch,
      int threshold,
      List<Integer> parties,
      int seconds,
      @Nullable SignedIntent intent,
      Ordered.Cause cause) {
    Duration time = Duration.ofSeconds(seconds);
    ObservedSession session =
        replica.start(
            new SessionPlan(
                work,
                key.scheme,
                key.name,
                epoch,
                threshold,
                intent,
                members(parties),
                world.now().plus(time),
                TraceContext.create(chance)));
    Ordered ordered = ordered(session.order(), cause);
    givers.put(ordered.session(), replica.channel());
    world.trace().line(replica.channel().self().name() + " orders " + ordered);
    followed.add(ordered);
    session.endWithin(time).thenAccept(outcome -> ended(replica, key, ordered, outcome));
    return ordered;
  }

  private List<Member> members(Collection<Integer> parties) {
    return parties.stream()
        .map(id -> world.network().roster().byPartyId(id).orElseThrow())
        .toList();
  }

  /** An order exists; nobody has it. */
  Ordered ordered(ByteString bytes, Ordered.Cause cause) {
    Ordered ordered = Ordered.of(orders.size() + 1, bytes, cause);
    orders.add(ordered);
    world.checker().ordered(ordered);
    return ordered;
  }

  /** A session that a replica follows has ended for it. */
  private void ended(Replica replica, SimulatedKey key, Ordered ordered, SessionOutcome outcome) {
    followed.remove(ordered);
    String label = outcome.getClass().getSimpleName();
    world.trace().line(replica.channel().self().name() + ": " + label + " of " + ordered);
    world.coverage().count("outcome " + label);
    world.checker().ended(ordered, outcome);
    if (outcome instanceof SessionOutcome.Presigned presigned) {
      for (ByteString id : presigned.ids()) {
        stock.add(new Stock(replica, key, ordered.order().getEpoch(), ordered.parties(), id));
      }
    }
  }

  /** Sessions that a replica follows, and that have not ended for it. */
  Collection<Ordered> followed() {
    return followed;
  }

  void send(Ordered order, Collection<Integer> to) {
    SecureChannel channel = chance.any(replicas).channel();
    SecureChannel first = givers.putIfAbsent(order.session(), channel);
    String does = first == null ? " orders " : channel.equals(first) ? " repeats " : " takes over ";
    if (first != null && !channel.equals(first)) {
      world.coverage().count("fault TAKEN_OVER");
    }
    world.trace().line(channel.self().name() + does + order + " to " + to);
    send(channel, PartyMessage.newBuilder().setOrder(order.bytes()).build(), to);
  }

  private void send(SecureChannel channel, PartyMessage message, Collection<Integer> to) {
    channel.broadcast(members(to), message.toByteArray(), SecureChannel.SendOptions.online(null));
  }

  static KeyPublic known(SimulatedKey key) {
    KeyPublic current = key.current;
    if (current == null) {
      throw new IllegalStateException("nobody uses " + key.name);
    }
    return current;
  }

  private static ByteString content(SignedIntent intent) {
    return IntentVerifier.digest(intent.getPayload());
  }

  String requestId() {
    return RequestId.at(world.now().minus(DRAWN_AGO), chance);
  }

  private List<Integer> everybody() {
    List<Integer> all = new ArrayList<>();
    for (int id = 1; id <= world.setting().parties(); id++) {
      all.add(id);
    }
    return all;
  }

  /** The ECDSA key more often than the others: most rules are about it. */
  SimulatedKey anyKey() {
    return anyKey(chance);
  }

  SimulatedKey anyKey(Chance own) {
    return own.perMille(300) ? key(World.ECDSA_KEY) : own.any(List.copyOf(keys.values()));
  }

  /** Chooses as many parties of a key as must sign together. */
  List<Integer> quorum(SimulatedKey key) {
    List<Integer> all = new ArrayList<>(key.holders);
    Collections.shuffle(all, new Random(chance.nextLong()));
    return all.subList(0, known(key).getThreshold()).stream().sorted().toList();
  }

  // ---- what the parties say --------------------------------------------------------------------

  /** Beside what the replica makes of a message: which epoch the parties use. */
  private void receive(InboundMessage message) {
    PartyMessage body;
    try {
      body = PartyMessage.parseFrom(message.body());
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
    Completed completed = body.getReport().getCompleted();
    if (completed.hasKeyPublic() && completed.getActive()) {
      uses(message.sender(), body.getReport().getSessionId(), completed.getKeyPublic());
    }
  }

  private void uses(Member sender, ByteString session, KeyPublic keyPublic) {
    SimulatedKey key = keys.get(keyPublic.getKeyId());
    if (key == null) {
      return;
    }
    KeyPublic current = key.current;
    if (current == null || keyPublic.getEpoch() > current.getEpoch()) {
      key.current = keyPublic;
      if (receiversOf.containsKey(session)) {
        key.reshareEpoch = keyPublic.getEpoch();
      }
      key.holders = receiversOf.getOrDefault(session, world.checker().order(session).parties());
      key.users.clear();
      world.uses(key, world.checker().order(session).order().getSignedIntent());
    }
    if (keyPublic.getEpoch() == known(key).getEpoch()) {
      key.users.add(sender.partyId());
    }
  }
}
