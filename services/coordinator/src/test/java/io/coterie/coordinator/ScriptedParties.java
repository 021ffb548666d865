package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.CancelQuestion;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.trust.Member;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/** Signers that do as they are told. */
final class ScriptedParties implements AutoCloseable {

  /** The behaviour of a party on an order. */
  sealed interface Behaviour {
    record Honest() implements Behaviour {}

    record Silent() implements Behaviour {}

    record Refuses(RefusalReason reason, String detail) implements Behaviour {
      Refuses(RefusalReason reason) {
        this(reason, "");
      }
    }

    /** Says that it has contributed to a signature in the session of that order. */
    record Claims(ByteString order) implements Behaviour {}

    /** Reports an abort and blames these. */
    record Aborts(AbortCause cause, List<Integer> culprits) implements Behaviour {}

    /** Sends a signature of something else. */
    record Lies() implements Behaviour {}

    /** Contributes, but what it sends is lost the first time. */
    record Loses() implements Behaviour {}

    /** Answers when told to. */
    record Waits(CountDownLatch until) implements Behaviour {}

    /** Reports another key than the rest. */
    record OtherKey() implements Behaviour {}

    /** Does so with one order, and is honest from then on. */
    record Once(Behaviour first) implements Behaviour {}

    /**
     * Is killed so many times before it stores its new share. When it is back and the others hold
     * theirs, it runs what is ordered then alone, until that is cancelled; it also tells them that
     * it has no share, so that they give theirs up.
     */
    record Killed(AtomicInteger times) implements Behaviour {}
  }

  private final MemoryNetwork network;
  final Map<String, SecureChannel> channels = new ConcurrentHashMap<>();
  private final Map<String, Behaviour> behaviours = new ConcurrentHashMap<>();
  private final Map<ByteString, TestBls.Dealt> dealt = new ConcurrentHashMap<>();

  /** ACTIVE keys, by name. */
  final Map<String, TestBls.Dealt> keys = new ConcurrentHashMap<>();

  /** The material of keys that are made by all and derived, by name, then epoch. */
  final Map<String, Map<Integer, TestEcdsa.Dealt>> ecdsaKeys = new ConcurrentHashMap<>();

  /** Epoch of the shares that a party uses, by party and key name. */
  final Map<String, Integer> epochs = new ConcurrentHashMap<>();

  /** New shares that a party holds, made by a request: by party and digest of its intent. */
  private final Map<String, SessionReport> refreshed = new ConcurrentHashMap<>();

  /** The reaction of a party when a session is cancelled, by party and session. */
  private final Map<String, Runnable> stops = new ConcurrentHashMap<>();

  /** Parties that have stored a share of a new key, by session and public data. */
  private final Map<List<ByteString>, Set<Integer>> created = new ConcurrentHashMap<>();

  /** The run of each of those requests. */
  private final Map<String, ByteString> runs = new ConcurrentHashMap<>();

  /** Ids of the presignatures that a party holds, by party. */
  final Map<String, Set<ByteString>> presignatures = new ConcurrentHashMap<>();

  /** The session in which a party has contributed to a request's ECDSA signature, and its order. */
  private record Given(ByteString session, Order order) {}

  /** By party and digest of the intent. */
  private final Map<String, Given> given = new ConcurrentHashMap<>();

  /** Sessions of which there will be no signature, as all their parties know. */
  private final Set<ByteString> over = ConcurrentHashMap.newKeySet();

  /** The refusal of a party that refuses an order, made of what it refuses by. */
  interface Refusing {
    Refused apply(Member self, Refused refused, Order order);
  }

  volatile Refusing refusing = (_, refused, _) -> refused;

  /** How often a party has refused because it has contributed elsewhere. */
  final AtomicInteger bound = new AtomicInteger();

  /** While true, parties that hold new shares go on using the old ones. */
  volatile boolean switching = true;

  /** While true, nobody hears that a party has new shares. */
  volatile boolean deaf;

  /** Every order any party received. */
  final ConcurrentLinkedQueue<Order> orders = new ConcurrentLinkedQueue<>();

  /** Every question which epoch a party uses, in the order in which they came. */
  final ConcurrentLinkedQueue<EpochQuestion> questions = new ConcurrentLinkedQueue<>();

  /** The messages with which a party answers one. */
  volatile BiFunction<Member, EpochQuestion, List<EpochAnswer>> answering = (_, _) -> List.of();

  /** Every cancellation that any party received. */
  final ConcurrentLinkedQueue<CancelQuestion> cancellations = new ConcurrentLinkedQueue<>();

  /** The messages with which a party answers one. */
  volatile BiFunction<Member, CancelQuestion, List<CancelAnswer>> cancelling = (_, _) -> List.of();

  /** The message with which a party answers the bytes of an order about a group. */
  volatile BiFunction<Member, ByteString, Optional<PartyMessage>> grouping =
      (_, _) -> Optional.empty();

  /** The messages with which a party answers an envelope of the member of a join. */
  volatile BiFunction<Member, SessionEnvelope, List<PartyMessage>> echoing = (_, _) -> List.of();

  final Set<ByteString> cancelled = ConcurrentHashMap.newKeySet();

  ScriptedParties(MemoryNetwork network) {
    this.network = network;
  }

  void connect(String name) {
    SecureChannel channel = network.channel(name);
    channel.onMessage(m -> receive(channel, m));
    channel.start();
    channels.put(name, channel);
  }

  void disconnect(String name) {
    SecureChannel channel = channels.remove(name);
    if (channel != null) {
      channel.close();
    }
  }

  void behave(String name, Behaviour behaviour) {
    behaviours.put(name, behaviour);
  }

  void behave() {
    behaviours.clear();
  }

  private void receive(SecureChannel channel, InboundMessage inbound) {
    try {
      PartyMessage message = PartyMessage.parseFrom(inbound.body());
      if (message.hasCancel()) {
        ByteString session = message.getCancel().getSessionId();
        cancelled.add(session);
        Runnable stop = stops.remove(channel.self().name() + session.hashCode());
        if (stop != null) {
          stop.run();
        }
      } else if (message.hasEpochQuestion()) {
        List<EpochAnswer> answers = answering.apply(channel.self(), message.getEpochQuestion());
        questions.add(message.getEpochQuestion());
        answers.forEach(answer -> say(channel.self().name(), inbound.sender(), answer));
      } else if (message.hasCancelQuestion()) {
        cancellations.add(message.getCancelQuestion());
        cancelling
            .apply(channel.self(), message.getCancelQuestion())
            .forEach(
                answer ->
                    send(
                        channel,
                        inbound.sender(),
                        PartyMessage.newBuilder().setCancelAnswer(answer).build()));
      } else if (message.hasGroupOrder()) {
        grouping
            .apply(channel.self(), message.getGroupOrder())
            .ifPresent(answer -> send(channel, inbound.sender(), answer));
      } else if (message.hasGroupEnvelope()) {
        for (PartyMessage said : echoing.apply(channel.self(), message.getGroupEnvelope())) {
          send(channel, inbound.sender(), said);
        }
      } else if (message.hasOrder()) {
        MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
        sha256.update("coterie/session/1".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
        sha256.update(message.getOrder().toByteArray());
        Order order = Order.parseFrom(message.getOrder());
        orders.add(order);
        act(
            channel,
            inbound.sender(),
            ByteString.copyFrom(sha256.digest()),
            order,
            behaviours.getOrDefault(channel.self().name(), new Behaviour.Honest()));
      }
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private void act(
      SecureChannel channel,
      Member coordinator,
      ByteString session,
      Order order,
      Behaviour behaviour)
      throws InvalidProtocolBufferException, InterruptedException {
    switch (behaviour) {
      case Behaviour.Honest h -> contribute(channel, coordinator, session, order, false);
      case Behaviour.Lies l -> {
        over.add(session);
        contribute(channel, coordinator, session, order, true);
      }
      case Behaviour.Loses l -> {
        String what = channel.self().name() + " " + order.getSignedIntent().getPayload().hashCode();
        if (!order.hasSignedIntent()
            || given.putIfAbsent(what, new Given(session, order)) != null) {
          contribute(channel, coordinator, session, order, false);
        }
      }
      case Behaviour.OtherKey o -> contribute(channel, coordinator, session, order, true);
      case Behaviour.Silent s -> {}
      case Behaviour.Once o -> {
        behaviours.put(channel.self().name(), new Behaviour.Honest());
        act(channel, coordinator, session, order, o.first());
      }
      case Behaviour.Killed k -> {
        if (isHeldOfAnother(session, order)) {
          runAlone(channel, coordinator, session, order);
        } else if (k.times().getAndDecrement() <= 0) {
          contribute(channel, coordinator, session, order, false);
        }
      }
      case Behaviour.Waits w ->
          Thread.ofVirtual()
              .start(
                  () -> {
                    try {
                      w.until().await();
                      contribute(channel, coordinator, session, order, false);
                    } catch (InterruptedException | InvalidProtocolBufferException e) {
                      throw new IllegalStateException(e);
                    }
                  });
      case Behaviour.Refuses r -> {
        over.add(session);
        report(
            channel,
            coordinator,
            SessionReport.newBuilder()
                .setSessionId(session)
                .setRefused(
                    refusing.apply(channel.self(), refused(r.reason(), r.detail()), order)));
      }
      case Behaviour.Claims c -> {
        over.add(session);
        bound(channel, coordinator, session, c.order());
      }
      case Behaviour.Aborts a -> {
        over.add(session);
        report(
            channel,
            coordinator,
            SessionReport.newBuilder()
                .setSessionId(session)
                .setAborted(
                    Abort.newBuilder()
                        .setRound(2)
                        .setCause(a.cause())
                        .addAllCulprits(a.culprits())
                        .addAllEvidence(a.culprits().stream().map(FakeCore::proof).toList())));
      }
    }
  }

  /** Whether a party holds a share that another session of the same request has made. */
  private boolean isHeldOfAnother(ByteString session, Order order) {
    return refreshed.entrySet().stream()
        .anyMatch(
            e ->
                e.getKey().endsWith(request(order.getSignedIntent()))
                    && !e.getValue().getSessionId().equals(session));
  }

  private void runAlone(
      SecureChannel channel, Member coordinator, ByteString session, Order order) {
    stops.put(
        channel.self().name() + session.hashCode(),
        () -> {
          decline(order.getSignedIntent());
          report(
              channel,
              coordinator,
              SessionReport.newBuilder()
                  .setSessionId(session)
                  .setTimedOut(TimedOut.newBuilder().setRound(1)));
        });
  }

  private void contribute(
      SecureChannel channel, Member coordinator, ByteString session, Order order, boolean lie)
      throws InvalidProtocolBufferException {
    int self = channel.self().partyId();
    if (order.getProtocol() != ProtocolId.PROTOCOL_ID_BLS_KEYGEN
        && order.getProtocol() != ProtocolId.PROTOCOL_ID_BLS_SIGN) {
      contributeEcdsa(channel, coordinator, session, order, lie);
      return;
    }
    if (order.getProtocol() == ProtocolId.PROTOCOL_ID_BLS_KEYGEN) {
      TestBls.Dealt key =
          dealt.computeIfAbsent(
              session,
              s ->
                  TestBls.deal(
                      order.getKey(),
                      order.getThreshold(),
                      order.getSigningSetList(),
                      s.hashCode()));
      KeyPublic keyPublic =
          lie
              ? TestBls.deal(order.getKey(), order.getThreshold(), order.getSigningSetList(), 4711)
                  .keyPublic()
              : key.keyPublic();
      keys.put(order.getKey(), key);
      created(channel, coordinator, session, keyPublic, order);
      return;
    }
    byte[] message =
        SigningIntent.parseFrom(order.getSignedIntent().getPayload()).getMessage().toByteArray();
    byte[] partial =
        TestBls.partial(
            keys.get(order.getKey()).shares().get(self),
            lie ? "other".getBytes(java.nio.charset.StandardCharsets.US_ASCII) : message);
    send(
        channel,
        coordinator,
        PartyMessage.newBuilder()
            .setEnvelope(
                SessionEnvelope.newBuilder()
                    .setSessionId(session)
                    .setEnvelope(ByteString.copyFrom(partial)))
            .build());
  }

  private void contributeEcdsa(
      SecureChannel channel, Member coordinator, ByteString session, Order order, boolean lie)
      throws InvalidProtocolBufferException {
    String self = channel.self().name();
    int selfId = channel.self().partyId();
    String share = self + " " + order.getKey();
    switch (order.getProtocol()) {
      case PROTOCOL_ID_ECDSA_KEYGEN -> {
        TestEcdsa.Dealt key =
            TestEcdsa.deal(
                order.getKey(),
                order.getThreshold(),
                order.getSigningSetList(),
                session.hashCode() + (lie ? 1 : 0));
        ecdsaKeys.computeIfAbsent(order.getKey(), k -> new ConcurrentHashMap<>()).put(1, key);
        epochs.put(share, 1);
        created(channel, coordinator, session, key.keyPublic(), order);
      }
      case PROTOCOL_ID_ECDSA_REFRESH, PROTOCOL_ID_ECDSA_RESHARE ->
          renew(channel, coordinator, session, order, lie);
      case PROTOCOL_ID_ECDSA_PRESIGN -> {
        if (!epochs.get(share).equals(order.getEpoch())) {
          refuse(channel, coordinator, session, RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
          return;
        }
        ByteString first = lie ? session.substring(1).concat(session.substring(0, 1)) : session;
        List<ByteString> ids =
            IntStream.range(0, order.getPresignatureCount())
                .mapToObj(
                    i -> first.substring(1).concat(ByteString.copyFrom(new byte[] {(byte) i})))
                .toList();
        presignatures.computeIfAbsent(self, s -> ConcurrentHashMap.newKeySet()).addAll(ids);
        report(
            channel,
            coordinator,
            SessionReport.newBuilder()
                .setSessionId(session)
                .setCompleted(Completed.newBuilder().addAllPresignatureIds(ids)));
      }
      default -> {
        if (!epochs.get(share).equals(order.getEpoch())) {
          over.add(session);
          refuse(channel, coordinator, session, RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
          return;
        }
        String request = self + " " + order.getSignedIntent().getPayload().hashCode();
        Given before = given.get(request);
        boolean again = before != null && before.session().equals(session);
        if (before != null && !again && !over.contains(before.session())) {
          over.add(session);
          bound(
              channel,
              coordinator,
              session,
              before.order().toBuilder().clearSignedIntent().build().toByteString());
          return;
        }
        if (order.getProtocol() == ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED
            && !again
            && !presignatures
                .computeIfAbsent(self, s -> ConcurrentHashMap.newKeySet())
                .remove(order.getPresignatureId())) {
          over.add(session);
          refuse(channel, coordinator, session, RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
          return;
        }
        given.put(request, new Given(session, order));
        SigningIntent intent = SigningIntent.parseFrom(order.getSignedIntent().getPayload());
        byte[] partial =
            TestEcdsa.partial(
                ecdsaKeys.get(order.getKey()).get(order.getEpoch()).shares().get(selfId));
        partial[31] ^= (byte) (lie ? 1 : 0);
        ByteString envelope =
            ByteString.copyFrom(partial)
                .concat(intent.getDigest())
                .concat(order.getPresignatureId());
        send(
            channel,
            coordinator,
            PartyMessage.newBuilder()
                .setEnvelope(
                    SessionEnvelope.newBuilder().setSessionId(session).setEnvelope(envelope))
                .build());
      }
    }
  }

  /** A party has stored its share of a new key; all use theirs once all say the same. */
  private void created(
      SecureChannel channel,
      Member coordinator,
      ByteString session,
      KeyPublic keyPublic,
      Order order) {
    completed(channel, coordinator, session, keyPublic, order.getSignedIntent());
    Set<Integer> same =
        created.computeIfAbsent(
            List.of(session, keyPublic.toByteString()), s -> ConcurrentHashMap.newKeySet());
    synchronized (same) {
      same.add(channel.self().partyId());
      if (same.containsAll(order.getSigningSetList())) {
        allUse(coordinator, session, keyPublic, order);
      }
    }
  }

  private void allUse(Member coordinator, ByteString session, KeyPublic keyPublic, Order order) {
    List<Integer> parties = order.getSigningSetList();
    for (int party : parties) {
      SecureChannel channel = channels.get("p" + party);
      if (channel != null) {
        report(
            channel,
            coordinator,
            TestEvidence.used(party, session, keyPublic, order.getSignedIntent(), parties));
      }
    }
  }

  /** One after another, so that the last one of a session sees that all others have theirs. */
  private synchronized void renew(
      SecureChannel channel, Member coordinator, ByteString id, Order order, boolean lie)
      throws InvalidProtocolBufferException {
    String self = channel.self().name();
    String request = request(order.getSignedIntent());
    SessionReport stored = refreshed.get(self + request);
    if (stored != null) {
      if (!deaf) {
        boolean uses = epochs.getOrDefault(self + " " + order.getKey(), 0) > order.getEpoch();
        report(channel, coordinator, uses ? used(channel, stored, order) : stored.toBuilder());
      }
      return;
    }
    if (Instant.ofEpochSecond(order.getDeadline().getSeconds(), order.getDeadline().getNanos())
        .isBefore(Instant.now())) {
      refuse(channel, coordinator, id, RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
      return;
    }
    List<Integer> receivers = order.getSigningSetList();
    List<Integer> dealers = order.getSigningSetList();
    if (order.getProtocol() == ProtocolId.PROTOCOL_ID_ECDSA_RESHARE) {
      dealers = order.getDealersList();
      receivers =
          ReshareIntent.parseFrom(order.getSignedIntent().getPayload()).getPartiesList().stream()
              .map(name -> Integer.valueOf(name.substring(1)))
              .sorted()
              .toList();
    }
    if (dealers.contains(channel.self().partyId())
        && !epochs.getOrDefault(self + " " + order.getKey(), 0).equals(order.getEpoch())) {
      refuse(channel, coordinator, id, RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
      return;
    }
    // The run that all take part in, whichever order it was for.
    ByteString session = runs.computeIfAbsent(request, r -> id);
    KeyPublic keyPublic =
        newShares(order.getKey(), order.getEpoch(), order.getThreshold(), receivers, session);
    if (lie) {
      keyPublic = keyPublic.toBuilder().setChainCode(session).build();
    }
    store(self, session, keyPublic, order.getSignedIntent());
    if (!deaf) {
      completed(channel, coordinator, session, keyPublic, order.getSignedIntent());
    }
    boolean all =
        order.getSigningSetList().stream().allMatch(p -> refreshed.containsKey("p" + p + request));
    if (all && switching) {
      switchEpoch(order.getKey(), order.getEpoch() + 1, order.getSigningSetList());
      if (!deaf) {
        allUse(coordinator, session, keyPublic, order);
      }
    }
  }

  private static SessionReport.Builder used(
      SecureChannel channel, SessionReport stored, Order order) {
    return TestEvidence.used(
        channel.self().partyId(),
        stored.getSessionId(),
        stored.getCompleted().getKeyPublic(),
        order.getSignedIntent(),
        order.getSigningSetList());
  }

  private KeyPublic newShares(
      String key, int epoch, int threshold, List<Integer> receivers, ByteString session) {
    Map<Integer, TestEcdsa.Dealt> epochsOfKey = ecdsaKeys.get(key);
    TestEcdsa.Dealt next =
        TestEcdsa.reshare(epochsOfKey.get(epoch), threshold, receivers, session.hashCode());
    epochsOfKey.put(epoch + 1, next);
    return next.keyPublic();
  }

  private void store(String party, ByteString session, KeyPublic keyPublic, SignedIntent intent) {
    int id = Integer.parseInt(party.substring(1));
    refreshed.put(
        party + request(intent), TestEvidence.completed(id, session, keyPublic, intent).build());
  }

  /** A party that has not contributed to a request's signature cannot any more. */
  void lapse(SignedIntent intent) {
    given.forEach(
        (request, part) -> {
          if (request.endsWith(" " + intent.getPayload().hashCode())) {
            over.add(part.session());
          }
        });
  }

  boolean holdsNewShares(String party, SignedIntent intent) {
    return refreshed.containsKey(party + request(intent));
  }

  /** How a party's name ends where it stands for a party and a request. */
  private static String request(SignedIntent intent) {
    return " " + intent.getPayload().hashCode();
  }

  /** Parties abandon the new shares of a request, since one of them has none. */
  private synchronized void decline(SignedIntent intent) {
    refreshed.keySet().removeIf(who -> who.endsWith(request(intent)));
    runs.remove(request(intent));
  }

  /** All parties have the new shares of that request, and use them. */
  synchronized void completeRefresh(SignedIntent intent, String key, int epoch) {
    ByteString session = ByteString.copyFrom(new byte[32]);
    KeyPublic old = ecdsaKeys.get(key).get(epoch).keyPublic();
    List<Integer> parties =
        old.getVerificationSharesList().stream().map(VerificationShare::getParty).toList();
    KeyPublic keyPublic = newShares(key, epoch, old.getThreshold(), parties, session);
    for (int party : parties) {
      store("p" + party, session, keyPublic, intent);
    }
    switchEpoch(key, epoch + 1, parties);
  }

  /** Parties use the shares of that epoch from now on; their presignatures are gone. */
  void switchEpoch(String key, int epoch, List<Integer> parties) {
    for (int party : parties) {
      epochs.put("p" + party + " " + key, epoch);
      restart("p" + party);
    }
  }

  /** A new process, without the memory of the old one. */
  void restart(String name) {
    presignatures.remove(name);
  }

  private static void completed(
      SecureChannel channel,
      Member coordinator,
      ByteString session,
      KeyPublic key,
      SignedIntent intent) {
    report(
        channel,
        coordinator,
        TestEvidence.completed(channel.self().partyId(), session, key, intent));
  }

  private static void refuse(
      SecureChannel channel, Member coordinator, ByteString session, RefusalReason reason) {
    refuse(channel, coordinator, session, reason, "");
  }

  private static void refuse(
      SecureChannel channel,
      Member coordinator,
      ByteString session,
      RefusalReason reason,
      String detail) {
    report(
        channel,
        coordinator,
        SessionReport.newBuilder().setSessionId(session).setRefused(refused(reason, detail)));
  }

  private static Refused refused(RefusalReason reason, String detail) {
    return Refused.newBuilder().setReason(reason).setDetail(detail).build();
  }

  private void bound(
      SecureChannel channel, Member coordinator, ByteString session, ByteString order) {
    bound.incrementAndGet();
    report(
        channel,
        coordinator,
        SessionReport.newBuilder()
            .setSessionId(session)
            .setRefused(
                Refused.newBuilder()
                    .setReason(RefusalReason.REFUSAL_REASON_REQUEST_BOUND)
                    .setBoundOrder(order)));
  }

  private static void report(
      SecureChannel channel, Member coordinator, SessionReport.Builder report) {
    send(channel, coordinator, PartyMessage.newBuilder().setReport(report).build());
  }

  /** A party says which epoch it uses, whether it was asked or not. */
  void say(String party, Member coordinator, EpochAnswer answer) {
    send(
        channels.get(party), coordinator, PartyMessage.newBuilder().setEpochAnswer(answer).build());
  }

  static void send(SecureChannel channel, Member to, PartyMessage message) {
    channel.broadcast(List.of(to), message.toByteArray(), SendOptions.online(null));
  }

  @Override
  public void close() {
    channels.values().forEach(SecureChannel::close);
  }
}
