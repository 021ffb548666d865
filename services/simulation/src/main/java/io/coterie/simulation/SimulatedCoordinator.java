package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionCancel;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
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
  private static final Duration DRAWN_AGO = Duration.ofSeconds(10);

  /** Most refreshes and reshares of a schedule. */
  private static final int MOST_RENEWALS = 5;

  private final World world;

  /** Decides about what is being done now. */
  private Chance chance;

  /** Of each replica. */
  private final List<SecureChannel> channels = new ArrayList<>();

  /** The replica that gave each order first. */
  private final Map<ByteString, SecureChannel> givers = new HashMap<>();

  private final Map<String, Key> keys = new LinkedHashMap<>();
  private final List<Ordered> orders = new ArrayList<>();
  private final List<Request> requests = new ArrayList<>();
  private final List<Stock> stock = new ArrayList<>();
  private final LedgerMemory ledgers;
  private final Map<ByteString, Map<Member, List<ByteString>>> made = new HashMap<>();

  /** Of each reshare. */
  private final Map<ByteString, List<Integer>> receiversOf = new HashMap<>();

  private final CoordinatorLies lies;
  private boolean honest;
  private int renewals;

  /** A key that the parties have. */
  static final class Key {
    final String name;
    final Scheme scheme;

    /** Public data in the latest epoch that a party has said it uses; null before. */
    @Nullable KeyPublic current;

    /** Ids of the parties that hold a share of it. */
    List<Integer> holders = List.of();

    /** The latest epoch's users. */
    final Set<Integer> users = new TreeSet<>();

    Key(String name, Scheme scheme) {
      this.name = name;
      this.scheme = scheme;
    }

    Protocol protocol(Protocol.Operation operation) {
      return Protocol.of(scheme, operation).orElseThrow();
    }
  }

  /** A wish of the requester for a signature. */
  record Request(String id, Key key, SignedIntent intent, ByteString content, boolean allowed) {}

  /** A presignature that the parties have. */
  record Stock(Key key, int epoch, List<Integer> parties, ByteString id) {}

  /**
   * @param replicas that share what they know
   */
  SimulatedCoordinator(World world, List<Member> replicas) {
    this.world = world;
    this.chance = world.chance().part("coordinator");
    this.honest = !world.setting().has(Plague.LYING_COORDINATOR);
    this.lies = new CoordinatorLies(this);
    this.ledgers = new LedgerMemory(world.coverage(), !honest && chance.perMille(500));
    for (Member replica : replicas) {
      SecureChannel channel = world.network().channel(replica);
      channels.add(channel);
      channel.onMessage(message -> receive(channel, message));
      channel.start();
    }
  }

  /** From now on it does as it should. */
  void repent() {
    honest = true;
    ledgers.remember();
  }

  World world() {
    return world;
  }

  Key key(String name) {
    Key key = keys.get(name);
    if (key == null) {
      throw new IllegalStateException("no key " + name);
    }
    return key;
  }

  Collection<Key> keys() {
    return keys.values();
  }

  // ---- the workload ----------------------------------------------------------------------------

  /** Has all parties make a key. */
  void createKey(String name, Scheme scheme) {
    Key key = new Key(name, scheme);
    key.holders = everybody();
    keys.put(name, key);
    SignedIntent intent =
        Identities.intents()
            .sign(Intents.key(requestId(), name, scheme, world.setting(), world.now()));
    Order.Builder order =
        order(
                key.protocol(Protocol.Operation.KEYGEN),
                name,
                1,
                world.setting().threshold(),
                everybody(),
                20)
            .setSignedIntent(intent);
    give(order, "key " + name, content(intent), true);
  }

  /** Has the parties of a key replace their shares. */
  Ordered refresh(Key key) {
    KeyPublic current = known(key);
    SignedIntent intent =
        Identities.intents().sign(Intents.refresh(requestId(), current, key.scheme, world.now()));
    Order.Builder order =
        order(
                key.protocol(Protocol.Operation.REFRESH),
                key.name,
                current.getEpoch(),
                current.getThreshold(),
                key.holders,
                20)
            .setSignedIntent(intent);
    renewals++;
    return give(order, "refresh " + renewals, content(intent), true);
  }

  /**
   * Has a key shared anew: without one of its parties, or with all again. Enough honest parties
   * stay, and the corrupt ones are fewer than the threshold.
   */
  private void reshare(Key key) {
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
    Order.Builder order =
        order(
                key.protocol(Protocol.Operation.RESHARE),
                key.name,
                current.getEpoch(),
                threshold,
                List.copyOf(members),
                20)
            .addAllDealers(key.holders)
            .setKeyPublic(current)
            .setSignedIntent(intent);
    renewals++;
    Ordered ordered = give(order, "reshare " + renewals, content(intent), true);
    receiversOf.put(ordered.session(), receivers);
    world.coverage().count("work RESHARE");
  }

  /** Orders a signature of something new. */
  Ordered sign(Key key, List<Integer> parties) {
    return sign(newRequest(key, true), parties);
  }

  /**
   * A new wish of the requester.
   *
   * @param signed whether it has signed it, and not somebody else
   */
  Request newRequest(Key key, boolean signed) {
    Request request = request(requestId(), key, chance.bytes(16), signed);
    if (signed) {
      requests.add(request);
    }
    return request;
  }

  /** A wish of the requester, or what somebody says is one. */
  Request request(String id, Key key, byte[] payload, boolean signed) {
    SignedIntent intent =
        (signed ? Identities.intents() : Identities.forgedIntents())
            .sign(Intents.signing(id, known(key), key.scheme, payload, world.now()));
    boolean allowed = signed && payload.length < Intents.TOO_LONG;
    return new Request(id, key, intent, content(intent), allowed);
  }

  Ordered sign(Request request, List<Integer> parties) {
    return sign(request, parties, known(request.key()).getEpoch());
  }

  Ordered sign(Request request, List<Integer> parties, int epoch) {
    Order.Builder order = signOrder(request, Protocol.Operation.SIGN, parties).setEpoch(epoch);
    return give(order, Ordered.REQUEST + request.id(), request.content(), request.allowed());
  }

  Order.Builder signOrder(Request request, Protocol.Operation operation, List<Integer> parties) {
    return order(
            request.key().protocol(operation),
            request.key().name,
            known(request.key()).getEpoch(),
            known(request.key()).getThreshold(),
            parties,
            2 + chance.below(8))
        .setSignedIntent(request.intent());
  }

  void signPresigned(Stock one, Request request) {
    Order.Builder order =
        signOrder(request, Protocol.Operation.SIGN_PRESIGNED, one.parties())
            .setEpoch(one.epoch())
            .setPresignatureId(one.id());
    give(order, Ordered.REQUEST + request.id(), request.content(), request.allowed());
  }

  private void presign(Key key) {
    KeyPublic current = known(key);
    Order.Builder order =
        order(
                key.protocol(Protocol.Operation.PRESIGN),
                key.name,
                current.getEpoch(),
                current.getThreshold(),
                quorum(key),
                2 + chance.below(8))
            .setPresignatureCount(1 + chance.below(2))
            .setCoordinatorIncarnation(ByteString.copyFrom(new byte[16]));
    give(order, "", ByteString.EMPTY, true);
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
    Key key = anyKey();
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
    Request request = chance.any(requests);
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

  List<Request> requests() {
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
    send(chance.any(channels), cancel, order.parties());
  }

  // ---- orders ----------------------------------------------------------------------------------

  private Order.Builder order(
      Protocol protocol, String key, int epoch, int threshold, List<Integer> parties, int seconds) {
    return Order.newBuilder()
        .setCoordinatorNonce(ByteString.copyFrom(chance.bytes(32)))
        .setProtocol(protocol.id())
        .setKey(key)
        .setEpoch(epoch)
        .setThreshold(threshold)
        .addAllSigningSet(parties)
        .setDeadline(Intents.timestamp(world.now().plus(Duration.ofSeconds(seconds))));
  }

  private Ordered give(Order.Builder order, String request, ByteString content, boolean allowed) {
    Ordered ordered = ordered(order, request, content, allowed);
    send(ordered, ordered.parties());
    return ordered;
  }

  /** An order exists; nobody has it. */
  Ordered ordered(Order.Builder builder, String request, ByteString content, boolean allowed) {
    Order order = builder.build();
    ByteString session = SessionId.ofOrder(order.toByteString()).bytes();
    Ordered ordered = new Ordered(orders.size() + 1, session, order, request, content, allowed);
    orders.add(ordered);
    world.checker().ordered(ordered);
    return ordered;
  }

  void send(Ordered order, Collection<Integer> to) {
    SecureChannel channel = chance.any(channels);
    SecureChannel first = givers.putIfAbsent(order.session(), channel);
    String does = first == null ? " orders " : channel.equals(first) ? " repeats " : " takes over ";
    if (first != null && !channel.equals(first)) {
      world.coverage().count("fault TAKEN_OVER");
    }
    world.trace().line(channel.self().name() + does + order + " to " + to);
    send(channel, PartyMessage.newBuilder().setOrder(order.order().toByteString()).build(), to);
  }

  private static void send(SecureChannel channel, PartyMessage message, Collection<Integer> to) {
    channel.broadcast(
        to.stream().map(id -> channel.roster().byPartyId(id).orElseThrow()).toList(),
        message.toByteArray(),
        SecureChannel.SendOptions.online(null));
  }

  static KeyPublic known(Key key) {
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
  Key anyKey() {
    return chance.perMille(300) ? key(World.ECDSA_KEY) : chance.any(List.copyOf(keys.values()));
  }

  /** As many parties of a key as must sign together. */
  List<Integer> quorum(Key key) {
    List<Integer> all = new ArrayList<>(key.holders);
    Collections.shuffle(all, new Random(chance.nextLong()));
    return all.subList(0, known(key).getThreshold()).stream().sorted().toList();
  }

  // ---- what the parties say --------------------------------------------------------------------

  private void receive(SecureChannel channel, InboundMessage message) {
    PartyMessage body;
    try {
      body = PartyMessage.parseFrom(message.body());
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
    if (body.hasClaimCount()) {
      ledgers.answer(channel, message.sender(), body.getClaimCount());
    } else if (body.hasReport()) {
      reported(message.sender(), body.getReport());
    }
  }

  private void reported(Member sender, SessionReport report) {
    if (!report.hasCompleted()) {
      return;
    }
    Completed completed = report.getCompleted();
    if (completed.hasKeyPublic() && completed.getActive()) {
      uses(sender, report.getSessionId(), completed.getKeyPublic());
    } else if (completed.getPresignatureIdsCount() > 0) {
      presigned(sender, report.getSessionId(), completed.getPresignatureIdsList());
    }
  }

  private void uses(Member sender, ByteString session, KeyPublic keyPublic) {
    Key key = keys.get(keyPublic.getKeyId());
    if (key == null) {
      return;
    }
    KeyPublic current = key.current;
    if (current == null || keyPublic.getEpoch() > current.getEpoch()) {
      key.current = keyPublic;
      key.holders = receiversOf.getOrDefault(session, world.checker().order(session).parties());
      key.users.clear();
    }
    if (keyPublic.getEpoch() == known(key).getEpoch()) {
      key.users.add(sender.partyId());
    }
  }

  private void presigned(Member sender, ByteString session, List<ByteString> ids) {
    Ordered order = world.checker().order(session);
    Map<Member, List<ByteString>> said = made.computeIfAbsent(session, _ -> new HashMap<>());
    said.put(sender, ids);
    if (said.size() == order.parties().size() && Set.copyOf(said.values()).size() == 1) {
      Key key = key(order.order().getKey());
      for (ByteString id : ids) {
        stock.add(new Stock(key, order.order().getEpoch(), order.parties(), id));
      }
    }
  }
}
