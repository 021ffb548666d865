package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
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

  private static final String REQUEST = "request ";

  /** Of so many orders the last ones are replayed more often. */
  private static final int LATELY = 10;

  private final World world;
  private final Chance chance;

  /** Of each replica. */
  private final List<SecureChannel> channels = new ArrayList<>();

  /** The replica that gave each order first. */
  private final Map<ByteString, SecureChannel> givers = new HashMap<>();

  private final Map<String, Key> keys = new LinkedHashMap<>();
  private final List<Ordered> orders = new ArrayList<>();
  private final List<Request> requests = new ArrayList<>();
  private final List<Stock> stock = new ArrayList<>();
  private final Map<Member, List<ClaimCount>> ledgers = new HashMap<>();
  private final Map<ByteString, Map<Member, List<ByteString>>> made = new HashMap<>();
  private boolean lies;
  private boolean forgets;
  private int refreshes;

  /** A key that the parties have. */
  static final class Key {
    final String name;
    final Scheme scheme;

    /** Public data in the latest epoch that a party has said it uses; null before. */
    @Nullable KeyPublic current;

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

  private record Stock(Key key, int epoch, List<Integer> parties, ByteString id) {}

  /**
   * @param replicas that share what they know
   */
  SimulatedCoordinator(World world, List<Member> replicas) {
    this.world = world;
    this.chance = world.chance().part("coordinator");
    this.lies = world.setting().coordinatorLies();
    this.forgets = lies && chance.perMille(500);
    for (Member replica : replicas) {
      SecureChannel channel = world.network().channel(replica);
      channels.add(channel);
      channel.onMessage(message -> receive(channel, message));
      channel.start();
    }
  }

  /** From now on it does as it should. */
  void repent() {
    lies = false;
    forgets = false;
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
    keys.put(name, key);
    SignedIntent intent =
        Identities.intents()
            .sign(Intents.key(requestId(), name, scheme, world.setting(), world.now()));
    Order.Builder order =
        order(key.protocol(Protocol.Operation.KEYGEN), name, 1, everybody(), 20)
            .setSignedIntent(intent);
    give(order, "key " + name, content(intent), true);
  }

  /** Has all parties replace their shares of a key. */
  Ordered refresh(Key key) {
    KeyPublic current = known(key);
    SignedIntent intent =
        Identities.intents().sign(Intents.refresh(requestId(), current, key.scheme, world.now()));
    Order.Builder order =
        order(
                key.protocol(Protocol.Operation.REFRESH),
                key.name,
                current.getEpoch(),
                everybody(),
                20)
            .setSignedIntent(intent);
    refreshes++;
    return give(order, "refresh " + refreshes, content(intent), true);
  }

  /** Orders a signature of something new. */
  Ordered sign(Key key, List<Integer> parties) {
    Request request = request(key, chance.bytes(16), true);
    requests.add(request);
    return sign(request, parties);
  }

  private Request request(Key key, byte[] payload, boolean signed) {
    return request(requestId(), key, payload, signed);
  }

  private Request request(String id, Key key, byte[] payload, boolean signed) {
    SignedIntent intent =
        (signed ? Identities.intents() : Identities.forgedIntents())
            .sign(Intents.signing(id, known(key), key.scheme, payload, world.now()));
    boolean allowed = signed && payload.length < Intents.TOO_LONG;
    return new Request(id, key, intent, content(intent), allowed);
  }

  private Ordered sign(Request request, List<Integer> parties) {
    Protocol protocol = request.key().protocol(Protocol.Operation.SIGN);
    return give(
        signOrder(request, protocol, parties),
        REQUEST + request.id(),
        request.content(),
        request.allowed());
  }

  private Order.Builder signOrder(Request request, Protocol protocol, List<Integer> parties) {
    return order(
            protocol,
            request.key().name,
            known(request.key()).getEpoch(),
            parties,
            2 + chance.below(8))
        .setSignedIntent(request.intent());
  }

  private void signPresigned(Stock one, Request request) {
    Order.Builder order =
        signOrder(request, one.key().protocol(Protocol.Operation.SIGN_PRESIGNED), one.parties())
            .setEpoch(one.epoch())
            .setPresignatureId(one.id());
    give(order, REQUEST + request.id(), request.content(), request.allowed());
  }

  private void presign(Key key) {
    Order.Builder order =
        order(
                key.protocol(Protocol.Operation.PRESIGN),
                key.name,
                known(key).getEpoch(),
                quorum(),
                2 + chance.below(8))
            .setPresignatureCount(1 + chance.below(2))
            .setCoordinatorIncarnation(ByteString.copyFrom(new byte[16]));
    give(order, "", ByteString.EMPTY, true);
  }

  /** Does something of what a coordinator does, or should not do. */
  void act() {
    if (lies && chance.perMille(450)) {
      lie();
      return;
    }
    Key key = anyKey();
    boolean random = key.scheme != Scheme.SCHEME_BLS12381;
    int choice = chance.below(20);
    if (choice == 0 && refreshes < 3) {
      refresh(key);
    } else if (choice < 5 && random) {
      presign(key);
    } else if (choice < 9 && !stock.isEmpty()) {
      Stock one = stock.remove(chance.below(stock.size()));
      Request request = request(one.key(), chance.bytes(16), true);
      requests.add(request);
      signPresigned(one, request);
    } else if (choice < 12 && !requests.isEmpty()) {
      retry();
    } else {
      sign(key, quorum());
    }
  }

  /** Goes on with a request whose sessions are over without a signature. */
  private void retry() {
    Request request = chance.any(requests);
    List<Ordered> sessions =
        orders.stream().filter(o -> o.request().equals(REQUEST + request.id())).toList();
    boolean over =
        sessions.stream()
            .allMatch(
                o ->
                    o.order().getDeadline().getSeconds() < world.now().getEpochSecond()
                        && !world.checker().isSigned(o.session()));
    if (over) {
      sign(request, quorum());
    }
  }

  private void lie() {
    Lie lie =
        chance.any(
            List.of(
                Lie.REPLAYS_ORDER,
                Lie.REPLAYS_ORDER,
                Lie.ORDERS_TWICE,
                Lie.ORDERS_TWICE,
                Lie.ORDERS_TWICE,
                Lie.ORDERS_OTHER_INTENT,
                Lie.EQUIVOCATES_ORDER,
                Lie.FORGES_INTENT,
                Lie.ORDERS_FORBIDDEN,
                Lie.CANCELS,
                Lie.ORDERS_SOME,
                Lie.SPENDS_TWICE));
    if (tell(lie)) {
      world.coverage().count(lie.label());
    }
  }

  /** False if there is no occasion for it. */
  private boolean tell(Lie lie) {
    Key key = anyKey();
    switch (lie) {
      case REPLAYS_ORDER -> {
        if (orders.isEmpty()) {
          return false;
        }
        Ordered old =
            orders.get(
                orders.size()
                    - 1
                    - chance.below(
                        chance.perMille(500) ? Math.min(LATELY, orders.size()) : orders.size()));
        List<Integer> to =
            chance.perMille(500) ? old.parties() : List.of(chance.any(old.parties()));
        send(old, to);
      }
      case ORDERS_TWICE -> {
        List<Request> random =
            requests.stream().filter(r -> r.key().scheme != Scheme.SCHEME_BLS12381).toList();
        if (random.isEmpty()) {
          return false;
        }
        sign(chance.perMille(300) ? random.getLast() : chance.any(random), quorum());
      }
      case ORDERS_OTHER_INTENT -> {
        if (requests.isEmpty()) {
          return false;
        }
        Request used = chance.any(requests);
        sign(request(used.id(), used.key(), chance.bytes(16), true), quorum());
      }
      case EQUIVOCATES_ORDER -> {
        Request request = request(key, chance.bytes(16), true);
        requests.add(request);
        List<Integer> parties = quorum();
        Protocol protocol = key.protocol(Protocol.Operation.SIGN);
        for (int party : parties) {
          Ordered order =
              ordered(
                  signOrder(request, protocol, parties),
                  REQUEST + request.id(),
                  request.content(),
                  true);
          send(order, List.of(party));
        }
      }
      case FORGES_INTENT -> sign(request(key, chance.bytes(16), false), quorum());
      case ORDERS_FORBIDDEN -> {
        Key bls = key(World.BLS_KEY);
        sign(request(bls, chance.bytes(Intents.TOO_LONG), true), quorum());
      }
      case CANCELS -> {
        if (orders.isEmpty()) {
          return false;
        }
        Ordered order = orders.get(Math.max(0, orders.size() - 1 - chance.below(3)));
        PartyMessage cancel =
            PartyMessage.newBuilder()
                .setCancel(SessionCancel.newBuilder().setSessionId(order.session()))
                .build();
        send(chance.any(channels), cancel, order.parties());
      }
      case ORDERS_SOME -> {
        Request request = request(key, chance.bytes(16), true);
        requests.add(request);
        List<Integer> parties = quorum();
        Ordered order =
            ordered(
                signOrder(request, key.protocol(Protocol.Operation.SIGN), parties),
                REQUEST + request.id(),
                request.content(),
                true);
        send(order, parties.subList(0, parties.size() - 1));
      }
      case SPENDS_TWICE -> {
        if (stock.isEmpty()) {
          return false;
        }
        Stock one = stock.remove(chance.below(stock.size()));
        for (int i = 0; i < 2; i++) {
          Request request = request(one.key(), chance.bytes(16), true);
          requests.add(request);
          signPresigned(one, request);
        }
      }
      default -> throw new IllegalStateException(lie + " is no lie of a coordinator");
    }
    return true;
  }

  // ---- orders ----------------------------------------------------------------------------------

  private Order.Builder order(
      Protocol protocol, String key, int epoch, List<Integer> parties, int seconds) {
    return Order.newBuilder()
        .setCoordinatorNonce(ByteString.copyFrom(chance.bytes(32)))
        .setProtocol(protocol.id())
        .setKey(key)
        .setEpoch(epoch)
        .setThreshold(world.setting().threshold())
        .addAllSigningSet(parties)
        .setDeadline(Intents.timestamp(world.now().plus(Duration.ofSeconds(seconds))));
  }

  private Ordered give(Order.Builder order, String request, ByteString content, boolean allowed) {
    Ordered ordered = ordered(order, request, content, allowed);
    send(ordered, ordered.parties());
    return ordered;
  }

  private Ordered ordered(
      Order.Builder builder, String request, ByteString content, boolean allowed) {
    Order order = builder.build();
    ByteString session = SessionId.ofOrder(order.toByteString()).bytes();
    Ordered ordered = new Ordered(orders.size() + 1, session, order, request, content, allowed);
    orders.add(ordered);
    world.checker().ordered(ordered);
    return ordered;
  }

  private void send(Ordered order, Collection<Integer> to) {
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

  private static KeyPublic known(Key key) {
    KeyPublic current = key.current;
    if (current == null) {
      throw new IllegalStateException("nobody uses " + key.name);
    }
    return current;
  }

  private static ByteString content(SignedIntent intent) {
    return IntentVerifier.digest(intent.getPayload());
  }

  private String requestId() {
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
  private Key anyKey() {
    return chance.perMille(300) ? key(World.ECDSA_KEY) : chance.any(List.copyOf(keys.values()));
  }

  private List<Integer> quorum() {
    List<Integer> all = everybody();
    Collections.shuffle(all, new Random(chance.nextLong()));
    return all.subList(0, world.setting().threshold()).stream().sorted().toList();
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
      answer(channel, message.sender(), body.getClaimCount());
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
      uses(sender, completed.getKeyPublic());
    } else if (completed.getPresignatureIdsCount() > 0) {
      presigned(sender, report.getSessionId(), completed.getPresignatureIdsList());
    }
  }

  private void uses(Member sender, KeyPublic keyPublic) {
    Key key = keys.get(keyPublic.getKeyId());
    if (key == null) {
      return;
    }
    KeyPublic current = key.current;
    if (current == null || keyPublic.getEpoch() > current.getEpoch()) {
      key.current = keyPublic;
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

  /** Says what it remembers of a party's ledger, never less than before. */
  private void answer(SecureChannel channel, Member party, ClaimCount stated) {
    LedgerHead head = LedgerHead.of(Identities.INSTALLATION, stated).orElse(null);
    if (head == null || !head.isSigned(stated.getSignature(), party.evidenceKey())) {
      return;
    }
    LedgerPosition now = head.position();
    if (forgets) {
      world.coverage().count(Lie.FORGETS_LEDGER.label());
      say(channel, party, List.of(stated));
      return;
    }
    List<ClaimCount> before = ledgers.getOrDefault(party, List.of());
    LedgerPosition latest =
        before.isEmpty() ? null : LedgerHead.position(before.getLast()).orElseThrow();
    if (now.against(latest) == LedgerPosition.Judgement.LATER) {
      List<ClaimCount> next = new ArrayList<>(before);
      if (latest != null && (before.size() == 2 || latest.mark().equals(now.mark()))) {
        next.remove(latest.mark().equals(now.mark()) ? before.getLast() : before.getFirst());
      }
      next.add(stated);
      ledgers.put(party, List.copyOf(next));
    }
    say(channel, party, ledgers.getOrDefault(party, List.of()));
  }

  private static void say(SecureChannel channel, Member party, List<ClaimCount> remembered) {
    PartyMessage answer =
        PartyMessage.newBuilder()
            .setClaimMemory(ClaimMemory.newBuilder().addAllRemembered(remembered))
            .build();
    channel.send(party, answer.toByteArray(), SecureChannel.SendOptions.online(null));
  }
}
