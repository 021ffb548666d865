package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Declined;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.TestTime;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.PresignatureLimits;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.ThreadWorkPool;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.signer.session.SessionLifecycle.Transition;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.MemoryShares;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * The sessions of one party alone, with everything around them under the test's control. Each kind
 * of session has its tests in a class of its own; {@link SessionDriverTest} runs them all.
 */
abstract class SessionFixture {
  static final String KEY = "keys/main";
  static final byte[] ROUND_1 = "round 1".getBytes(StandardCharsets.UTF_8);
  static final Set<Transition> VISITED = ConcurrentHashMap.newKeySet();

  final Member alpha = member("alpha", Member.Role.PARTY, 1);
  final Member bravo = member("bravo", Member.Role.PARTY, 2);
  final Member charlie = member("charlie", Member.Role.PARTY, 3);
  final Member coordinator = member("coordinator", Member.Role.COORDINATOR, 0);
  final Member other = member("coordinator-2", Member.Role.COORDINATOR, 0);
  final Net net = new Net();
  final MemoryLedger ledger = new MemoryLedger();
  final MemoryShares shares = new MemoryShares();
  final FakeCore core = new FakeCore();
  final Watch watch = new Watch();
  final List<AuditEvent> audit = new CopyOnWriteArrayList<>();
  static final PresignatureLimits POOL = new PresignatureLimits(2, 3, 2, 4, Duration.ofMinutes(1));
  SessionLimits limits =
      new SessionLimits(8, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
  @Nullable WorkPool pool;
  @Nullable SessionService driver;

  /** How far the slowest clock of some parties is behind this party's. */
  volatile Function<Collection<Integer>, Duration> behind = _ -> Duration.ZERO;

  /** This party's clock is that much ahead; its timers are not. */
  volatile Duration ahead = Duration.ZERO;

  // ---- what surrounds the driver ---------------------------------------------------------------

  static Member member(String name, Member.Role role, int id) {
    return new Member(
        name,
        role,
        id,
        "here",
        UUID.randomUUID(),
        1,
        new byte[33],
        role == Member.Role.PARTY ? TestEvidence.publicKey(id) : new byte[0]);
  }

  record Sent(Collection<Member> to, PartyMessage message) {}

  final class Net implements PartyNetwork {
    final Roster roster = new Roster("test", 1, List.of(alpha, bravo, charlie, coordinator, other));
    final LinkedBlockingQueue<Sent> sent = new LinkedBlockingQueue<>();
    final LinkedBlockingQueue<Sent> statements = new LinkedBlockingQueue<>();

    /**
     * Whether the other parties remember what this one states, and say so. A coordinator does.
     * Without that, nobody outside a session can be reached.
     */
    volatile boolean witnesses = true;

    /** Run before anything is broadcast, and as soon as a report is sent. */
    volatile Runnable onBroadcast = () -> {};

    volatile Runnable onReport = () -> {};

    private void state(Sent statement) {
      if (witnesses || statement.to().contains(coordinator)) {
        statement.to().forEach(to -> answer(to, statement.message()));
      } else {
        statements.add(statement);
      }
    }

    void answer(Member witness, PartyMessage statement) {
      driver()
          .onClaimMemory(
              witness, ClaimMemory.newBuilder().addRemembered(statement.getClaimCount()).build());
    }

    @Override
    public Roster roster() {
      return roster;
    }

    @Override
    public Member self() {
      return alpha;
    }

    @Override
    public Set<Member> reachable() {
      return witnesses ? Set.of(charlie) : Set.of();
    }

    @Override
    public void broadcast(
        Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
      onBroadcast.run();
      sent.add(new Sent(List.copyOf(recipients), message));
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      if (message.hasClaimCount()) {
        state(new Sent(List.of(recipient), message));
        return;
      }
      sent.add(new Sent(List.of(recipient), message));
      if (message.hasReport()) {
        onReport.run();
      }
    }
  }

  static final class Watch implements SessionTelemetry {
    final List<String> ended = new CopyOnWriteArrayList<>();
    final List<String> dropped = new CopyOnWriteArrayList<>();
    final List<String> rounds = new CopyOnWriteArrayList<>();
    final List<String> pool = new CopyOnWriteArrayList<>();
    volatile int ready;
    volatile IntSupplier live = () -> 0;
    final List<Transition> moves = new CopyOnWriteArrayList<>();

    @Override
    public void moved(State from, Event event, State to) {
      Transition taken = new Transition(from, event, to);
      moves.add(taken);
      VISITED.add(taken);
    }

    @Override
    public void started(Protocol protocol, long nanos) {
      assertThat(nanos).isPositive();
    }

    @Override
    public void roundLeft(Protocol protocol, int round, long nanos) {
      assertThat(nanos).isNotNegative();
      rounds.add(protocol.label() + " " + round);
    }

    @Override
    public void waited(Protocol protocol, int round, String straggler, long nanos) {
      assertThat(nanos).isNotNegative();
      rounds.add(protocol.label() + " " + round + " for " + straggler);
    }

    @Override
    public void ended(String protocol, State outcome, String cause) {
      ended.add(protocol + " " + outcome.label() + " " + cause);
    }

    @Override
    public void dropped(String reason) {
      dropped.add(reason);
    }

    @Override
    public void presignatureMade() {
      pool.add("made");
    }

    @Override
    public void presignatureUsed() {
      pool.add("used");
    }

    @Override
    public void presignatureDropped(String reason) {
      pool.add(reason);
    }

    @Override
    public void presignaturesReady(String key, int count) {
      ready = count;
    }

    @Override
    public void live(IntSupplier sessions) {
      live = sessions;
    }
  }

  /** The policy of this party; one with another rule replaces it. */
  PolicyGate policy() {
    return SessionFixture::admit;
  }

  static VerifiedIntent admit(SignedIntent signed) throws RefusedException {
    try {
      if (signed.getPayloadType().equals("refresh")) {
        return new VerifiedIntent.KeyRefresh(
            "wallet",
            IntentVerifier.digest(signed.getPayload()),
            signed,
            RefreshIntent.parseFrom(signed.getPayload()));
      }
      if (signed.getPayloadType().equals("cancel")) {
        return new VerifiedIntent.Cancellation(
            "wallet",
            IntentVerifier.digest(signed.getPayload()),
            signed,
            CancelIntent.parseFrom(signed.getPayload()));
      }
      return signed.getPayloadType().equals("sign")
          ? new VerifiedIntent.Signing(
              "wallet",
              IntentVerifier.digest(signed.getPayload()),
              signed,
              SigningIntent.parseFrom(signed.getPayload()))
          : new VerifiedIntent.KeyCreation(
              "wallet",
              IntentVerifier.digest(signed.getPayload()),
              signed,
              KeyIntent.parseFrom(signed.getPayload()));
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      throw new RefusedException(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, "no intent");
    }
  }

  final AtomicReference<List<Hold>> holds = new AtomicReference<>(List.of());
  final TestTime time = new TestTime();

  // ---- making things happen --------------------------------------------------------------------

  @BeforeEach
  void start() {
    start(core.of(1));
  }

  void start(ProtocolCore protocols) {
    stop();
    pool = new ThreadWorkPool("alpha", 2, limits.combineDelay(), time.timer("alpha"));
    driver =
        new SessionService(
            new SessionPorts(
                net,
                policy(),
                MemoryLedgers.of(ledger, shares, holds::get),
                protocols,
                audit::add,
                watch,
                () -> Instant.now().plus(ahead)),
            limits,
            parties -> behind.apply(parties),
            pool);
  }

  @AfterEach
  void stop() {
    if (driver != null) {
      driver.close();
      driver = null;
    }
    if (pool != null) {
      pool.close();
      pool = null;
    }
    watch.moves.clear();
  }

  void key(KeyShare.State state) {
    shares.put(
        new KeyShare(
            KEY,
            1,
            Scheme.SCHEME_BLS12381,
            state,
            List.of(1, 2, 3),
            List.of(1, 2, 3),
            KeyPublic.newBuilder().setKeyId(KEY).setThreshold(1).setEpoch(1).build(),
            ByteString.copyFromUtf8("share"),
            new KeyShare.Origin(
                new SessionId(ByteString.copyFrom(new byte[32])),
                "coordinator",
                "wallet",
                "the request that made it",
                ByteString.copyFrom(new byte[32])),
            null));
  }

  static ByteString nonce() {
    return ByteString.copyFromUtf8(UUID.randomUUID().toString().substring(0, 32));
  }

  static Order.Builder order(ProtocolId protocol, String type, ByteString intent) {
    return Order.newBuilder()
        .setCoordinatorNonce(nonce())
        .setProtocol(protocol)
        .setKey(KEY)
        .setEpoch(1)
        .setThreshold(1)
        .setSignedIntent(SignedIntent.newBuilder().setPayloadType(type).setPayload(intent))
        .setDeadline(Installation.in(Duration.ofSeconds(30)));
  }

  static Order.Builder signing(int... set) {
    Order.Builder order =
        order(
            ProtocolId.PROTOCOL_ID_BLS_SIGN,
            "sign",
            SigningIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setKey(KEY)
                .setScheme(Scheme.SCHEME_BLS12381)
                .setMessage(ByteString.copyFromUtf8("hello"))
                .setInstallation("test")
                .setKeyFingerprint(KeyFingerprint.of(KeyPublic.getDefaultInstance()))
                .setNotAfter(Installation.in(Duration.ofMinutes(1)))
                .build()
                .toByteString());
    for (int id : set) {
      order.addSigningSet(id);
    }
    return order;
  }

  static Order.Builder keygen(String requestId) {
    return order(
            ProtocolId.PROTOCOL_ID_BLS_KEYGEN,
            "key",
            KeyIntent.newBuilder()
                .setRequestId(requestId)
                .setKey(KEY)
                .setScheme(Scheme.SCHEME_BLS12381)
                .setThreshold(1)
                .addAllParties(List.of("alpha", "bravo"))
                .setInstallation("test")
                .setNotAfter(Installation.in(Duration.ofMinutes(1)))
                .build()
                .toByteString())
        .addSigningSet(1)
        .addSigningSet(2);
  }

  SessionId give(Order.Builder order) {
    ByteString bytes = order.build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    return SessionId.ofOrder(bytes);
  }

  SessionService driver() {
    return java.util.Objects.requireNonNull(driver);
  }

  void envelope(SessionId session, byte[] envelope) {
    driver().onEnvelope(bravo, session, envelope.clone(), System.nanoTime());
  }

  /** All of bravo's messages of a key generation. */
  void bravoPlays(SessionId session) {
    for (int round = 1; round <= 4; round++) {
      envelope(session, ("round " + round).getBytes(StandardCharsets.UTF_8));
    }
  }

  Sent awaitSent(String what, java.util.function.Predicate<PartyMessage> wanted) {
    Installation.until(what, () -> net.sent.stream().anyMatch(s -> wanted.test(s.message())));
    return net.sent.stream().filter(s -> wanted.test(s.message())).findFirst().orElseThrow();
  }

  SessionReport awaitReport(SessionId session) {
    Sent sent =
        awaitSent(
            "a report",
            m ->
                m.hasReport()
                    && !m.getReport().hasDeclined()
                    && m.getReport().getSessionId().equals(session.bytes()));
    assertThat(sent.to()).contains(coordinator);
    return sent.message().getReport();
  }

  void awaitEnvelope(SessionId session) {
    awaitSent(
        "an envelope",
        m -> m.hasEnvelope() && m.getEnvelope().getSessionId().equals(session.bytes()));
  }

  void awaitEnded(String end) {
    Installation.until(end + " in " + watch.ended, () -> watch.ended.contains(end) && live() == 0);
  }

  void awaitMove(Event event) {
    Installation.until(event.name(), () -> watch.moves.stream().anyMatch(t -> t.event() == event));
  }

  int live() {
    return watch.live.getAsInt();
  }

  /** Whether the session was refused. */
  boolean awaitEndOrReport(SessionId session) {
    Installation.until(
        "an end of " + session,
        () ->
            net.sent.stream()
                .anyMatch(
                    s ->
                        s.message().getReport().getSessionId().equals(session.bytes())
                            || s.message().getEnvelope().getSessionId().equals(session.bytes())));
    return net.sent.stream()
        .anyMatch(s -> s.message().getReport().getSessionId().equals(session.bytes()));
  }

  static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);

  void ecdsaKey() {
    ecdsaKey(KeyShare.State.ACTIVE, 1, "the request that made it");
  }

  void ecdsaKey(KeyShare.State state, int epoch, String requestId) {
    shares.put(
        new KeyShare(
            KEY,
            epoch,
            Scheme.SCHEME_ECDSA_SECP256K1,
            state,
            List.of(1, 2, 3),
            List.of(1, 2, 3),
            ECDSA_PUBLIC.toBuilder().setEpoch(epoch).build(),
            ByteString.copyFromUtf8("share"),
            new KeyShare.Origin(
                new SessionId(ByteString.copyFrom(new byte[32])),
                "coordinator",
                "wallet",
                requestId,
                ByteString.copyFrom(new byte[32])),
            null));
  }

  static final KeyPublic ECDSA_PUBLIC =
      KeyPublic.newBuilder()
          .setKeyId(KEY)
          .setThreshold(2)
          .setPublicKey(FakeCore.ECDSA_KEY)
          .setChainCode(ByteString.copyFrom(new byte[32]))
          .build();

  static SigningIntent.Builder ecdsaIntent(Integer... path) {
    return SigningIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey(KEY)
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .addAllDerivationPath(List.of(path))
        .setDigest(DIGEST)
        .setInstallation("test")
        .setKeyFingerprint(KeyFingerprint.of(ECDSA_PUBLIC))
        .setNotAfter(Installation.in(Duration.ofMinutes(1)));
  }

  static Order.Builder ecdsaSigning(SigningIntent.Builder intent) {
    return order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, "sign", intent.build().toByteString())
        .setThreshold(2)
        .addSigningSet(1)
        .addSigningSet(2);
  }

  static Order.Builder presigning(Integer... path) {
    return order(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, "", ByteString.EMPTY)
        .clearSignedIntent()
        .setThreshold(2)
        .addSigningSet(1)
        .addSigningSet(2)
        .setPresignatureCount(1)
        .setCoordinatorIncarnation(Installation.INCARNATION)
        .addAllDerivationPath(List.of(path));
  }

  static Order.Builder presigned(ByteString id, Integer... path) {
    return ecdsaSigning(ecdsaIntent(path))
        .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
        .setPresignatureId(id);
  }

  void bravoPlays(SessionId session, int rounds) {
    for (int round = 1; round <= rounds; round++) {
      envelope(session, ("round " + round).getBytes(StandardCharsets.UTF_8));
    }
  }

  /** Makes one presignature; says its id. */
  ByteString presign(Integer... path) {
    return presign(presigning(path));
  }

  ByteString presign(Order.Builder order) {
    int before = watch.ended.size();
    SessionId session = give(order);
    bravoPlays(session, 2);
    List<ByteString> ids = awaitReport(session).getCompleted().getPresignatureIdsList();
    Installation.until("it has ended", () -> watch.ended.size() > before && live() == 0);
    assertThat(ids).hasSize(1);
    return ids.getFirst();
  }

  RefusalReason awaitRefusal(SessionId session) {
    return awaitReport(session).getRefused().getReason();
  }

  static Order.Builder with(Member peer, SigningIntent.Builder intent) {
    return ecdsaSigning(intent).clearSigningSet().addSigningSet(1).addSigningSet(peer.partyId());
  }

  void plays(Member peer, SessionId session, int from, int to) {
    for (int round = from; round <= to; round++) {
      driver()
          .onEnvelope(
              peer,
              session,
              ("round " + round).getBytes(StandardCharsets.UTF_8),
              System.nanoTime());
    }
  }

  /** Gives this party's contribution to bravo and the coordinator, and nobody gives it theirs. */
  ByteString given(SigningIntent.Builder intent) {
    return given(with(bravo, intent));
  }

  ByteString given(Order.Builder order) {
    ByteString bytes = order.build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    plays(bravo, SessionId.ofOrder(bytes), 1, 2);
    awaitMove(Event.LAST_SENT);
    return bytes;
  }

  void declines(Member peer, SessionId session) {
    driver().onReport(peer, session, PartyNetwork.declined(session).getReport());
  }

  void awaitDeclined(SessionId session, Member told) {
    Installation.until(
        "it is said that nothing comes",
        () ->
            net.sent.stream()
                .anyMatch(
                    s ->
                        s.to().equals(List.of(told))
                            && s.message().equals(PartyNetwork.declined(session))));
  }

  Refused refused(SessionId session) {
    return awaitReport(session).getRefused();
  }

  static Order.Builder refresh(String requestId) {
    return order(
            ProtocolId.PROTOCOL_ID_ECDSA_REFRESH,
            "refresh",
            RefreshIntent.newBuilder()
                .setRequestId(requestId)
                .setKey(KEY)
                .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                .setEpoch(1)
                .setInstallation("test")
                .setKeyFingerprint(KeyFingerprint.of(ECDSA_PUBLIC))
                .setNotAfter(Installation.in(Duration.ofMinutes(1)))
                .build()
                .toByteString())
        .setThreshold(2)
        .addAllSigningSet(List.of(1, 2, 3));
  }

  void peersPlayRefresh(SessionId session) {
    for (int round = 1; round <= 6; round++) {
      byte[] body = ("round " + round).getBytes(StandardCharsets.UTF_8);
      driver().onEnvelope(bravo, session, body.clone(), System.nanoTime());
      driver().onEnvelope(charlie, session, body.clone(), System.nanoTime());
    }
  }

  /** A key generation that was aborted here; says its session. */
  SessionId aborted(Order.Builder order, String key) {
    SessionId session = give(order.setSignedIntent(forKey(order.getSignedIntent(), key)));
    awaitEnvelope(session);
    int before = watch.ended.size();
    envelope(session, FakeCore.POISON);
    Installation.until("it has ended", () -> watch.ended.size() > before && live() == 0);
    return session;
  }

  static SignedIntent forKey(SignedIntent intent, String key) {
    try {
      return intent.toBuilder()
          .setPayload(
              KeyIntent.parseFrom(intent.getPayload()).toBuilder()
                  .setKey(key)
                  .build()
                  .toByteString())
          .build();
    } catch (InvalidProtocolBufferException e) {
      throw new AssertionError(e);
    }
  }

  /** A run that has ended is told of a cheat, and reports it. */
  void awaitFound(SessionId session) {
    envelope(session, FakeCore.CHEAT);
    awaitSent(
        "what was found",
        m ->
            m.getReport().getSessionId().equals(session.bytes())
                && m.getReport().getAborted().getCause()
                    == AbortCause.ABORT_CAUSE_TRANSFER_CHECK_FAILED);
  }

  /** A refresh whose share is stored here; says its session. */
  SessionId refreshed(String requestId) {
    SessionId session = give(refresh(requestId));
    peersPlayRefresh(session);
    assertThat(awaitReport(session).getCompleted().getKeyPublic().getEpoch()).isEqualTo(2);
    awaitEnded("ecdsa_refresh completed none");
    return session;
  }

  void peersHaveStored(SessionId session) {
    SessionReport report = awaitReport(session);
    for (Member peer : List.of(bravo, charlie)) {
      driver().onReport(peer, session, TestEvidence.completed(peer.partyId(), report));
    }
  }

  static SessionReport declined() {
    return SessionReport.newBuilder().setDeclined(Declined.getDefaultInstance()).build();
  }

  int epoch() {
    return shares.find(KEY).orElseThrow().epoch();
  }
}
