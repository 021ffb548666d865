package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import com.google.protobuf.ByteString;
import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.signer.session.SessionLifecycle.Transition;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The driver of one party alone, with everything around it under the test's control. Together the
 * tests take every line of the life cycle's table.
 */
class SessionDriverTest {
  private static final String KEY = "keys/main";
  private static final byte[] ROUND_1 = "round 1".getBytes(StandardCharsets.UTF_8);
  private static final Set<Transition> VISITED = ConcurrentHashMap.newKeySet();
  private static final Moves LOG = new Moves();

  /** The transitions that the driver logs. */
  private static final class Moves extends AppenderBase<ILoggingEvent> {
    final List<Transition> list = new CopyOnWriteArrayList<>();

    @Override
    protected void append(ILoggingEvent event) {
      Object[] arguments = event.getArgumentArray();
      if (arguments != null
          && arguments.length == 4
          && arguments[1] instanceof State from
          && arguments[2] instanceof Event cause
          && arguments[3] instanceof State to) {
        list.add(new Transition(from, cause, to));
        VISITED.add(new Transition(from, cause, to));
      }
    }
  }

  private final Member alpha = member("alpha", Member.Role.PARTY, 1);
  private final Member bravo = member("bravo", Member.Role.PARTY, 2);
  private final Member charlie = member("charlie", Member.Role.PARTY, 3);
  private final Member coordinator = member("coordinator", Member.Role.COORDINATOR, 0);
  private final Member other = member("coordinator-2", Member.Role.COORDINATOR, 0);
  private final Net net = new Net();
  private final Ledger ledger = new Ledger();
  private final Shares shares = new Shares();
  private final FakeCore core = new FakeCore();
  private final Watch watch = new Watch();
  private final List<AuditEvent> audit = new CopyOnWriteArrayList<>();
  private SessionLimits limits =
      new SessionLimits(8, 8, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO);
  private @Nullable WorkPool pool;
  private @Nullable SessionDriver driver;

  // ---- what surrounds the driver ---------------------------------------------------------------

  private static Member member(String name, Member.Role role, int id) {
    return new Member(
        name,
        role,
        id,
        "here",
        UUID.randomUUID(),
        1,
        new byte[33],
        new byte[role == Member.Role.PARTY ? 32 : 0]);
  }

  private record Sent(Collection<Member> to, PartyMessage message) {}

  private final class Net implements PartyNetwork {
    final Roster roster = new Roster(1, List.of(alpha, bravo, charlie, coordinator, other));
    final LinkedBlockingQueue<Sent> sent = new LinkedBlockingQueue<>();

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
      return Set.of();
    }

    @Override
    public void broadcast(
        Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
      sent.add(new Sent(List.copyOf(recipients), message));
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      sent.add(new Sent(List.of(recipient), message));
    }
  }

  /** Grants claims at once, or when the test says so. */
  private static final class Ledger implements ClaimLedger {
    volatile boolean held;
    final List<CompletableFuture<Outcome>> waiting = new CopyOnWriteArrayList<>();
    final Set<SessionId> sessions = ConcurrentHashMap.newKeySet();

    @Override
    public CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted) {
      CompletableFuture<Outcome> outcome = new CompletableFuture<>();
      if (held) {
        waiting.add(outcome);
      } else {
        outcome.complete(
            sessions.add(claim.session()) ? Outcome.CLAIMED : Outcome.SESSION_REPLAYED);
      }
      return outcome;
    }
  }

  private static final class Shares implements KeyShareStore {
    final Map<String, KeyShare> shares = new ConcurrentHashMap<>();
    final Map<String, Set<Integer>> excluded = new HashMap<>();
    volatile boolean held;
    final List<CompletableFuture<Boolean>> waiting = new CopyOnWriteArrayList<>();

    @Override
    public Optional<KeyShare> find(String key) {
      return Optional.ofNullable(shares.get(key));
    }

    @Override
    public List<KeyShare> provisional() {
      return shares.values().stream().filter(s -> s.state() == KeyShare.State.PROVISIONAL).toList();
    }

    @Override
    public CompletionStage<Boolean> storeProvisional(KeyShare share, AuditEvent completed) {
      CompletableFuture<Boolean> stored = new CompletableFuture<>();
      if (held) {
        waiting.add(stored);
        return stored.thenApply(
            done -> {
              if (done) {
                shares.put(share.key(), share);
              }
              return done;
            });
      }
      shares.put(share.key(), share);
      stored.complete(true);
      return stored;
    }

    @Override
    public CompletionStage<Boolean> activate(KeyShare share, AuditEvent activated) {
      shares.put(share.key(), share.activated());
      return CompletableFuture.completedFuture(true);
    }

    @Override
    public Set<Integer> excluded(String key) {
      return excluded.getOrDefault(key, Set.of());
    }

    @Override
    public CompletionStage<Boolean> exclude(String key, Set<Integer> parties, SessionId session) {
      excluded.put(key, parties);
      return CompletableFuture.completedFuture(true);
    }
  }

  private static final class Watch implements SessionTelemetry {
    final List<String> ended = new CopyOnWriteArrayList<>();
    final List<String> dropped = new CopyOnWriteArrayList<>();
    final List<String> rounds = new CopyOnWriteArrayList<>();
    volatile IntSupplier live = () -> 0;

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
    public void live(IntSupplier sessions) {
      live = sessions;
    }
  }

  private static VerifiedIntent admit(SignedIntent signed) throws RefusedException {
    try {
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

  // ---- making things happen --------------------------------------------------------------------

  @BeforeAll
  static void listen() {
    Logger logger = (Logger) org.slf4j.LoggerFactory.getLogger(SessionDriver.class);
    logger.setLevel(Level.DEBUG);
    LOG.start();
    logger.addAppender(LOG);
  }

  @AfterAll
  static void every_transition_was_visited() {
    ((Logger) org.slf4j.LoggerFactory.getLogger(SessionDriver.class)).detachAppender(LOG);
    assertThat(VISITED).containsExactlyInAnyOrderElementsOf(SessionLifecycle.TRANSITIONS);
  }

  @BeforeEach
  void start() {
    start(core);
  }

  private void start(ProtocolCore protocols) {
    stop();
    pool = new WorkPool("alpha", 2, limits.combineDelay());
    driver =
        new SessionDriver(
            net,
            SessionDriverTest::admit,
            ledger,
            shares,
            protocols,
            audit::add,
            watch,
            limits,
            InstantSource.system(),
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
    LOG.list.clear();
  }

  private void key(KeyShare.State state) {
    shares.shares.put(
        KEY,
        new KeyShare(
            KEY,
            1,
            Scheme.SCHEME_BLS12381,
            state,
            List.of(1, 2, 3),
            KeyPublic.newBuilder().setKeyId(KEY).setThreshold(1).setEpoch(1).build(),
            ByteString.copyFromUtf8("share"),
            new SessionId(ByteString.copyFrom(new byte[32])),
            "coordinator",
            "wallet",
            "the request that made it",
            ByteString.copyFrom(new byte[32])));
  }

  private static Order.Builder order(ProtocolId protocol, String type, ByteString intent) {
    return Order.newBuilder()
        .setCoordinatorNonce(ByteString.copyFromUtf8(UUID.randomUUID().toString().substring(0, 32)))
        .setProtocol(protocol)
        .setKey(KEY)
        .setEpoch(1)
        .setThreshold(1)
        .setSignedIntent(SignedIntent.newBuilder().setPayloadType(type).setPayload(intent))
        .setDeadline(Installation.in(Duration.ofSeconds(30)));
  }

  private static Order.Builder signing(int... set) {
    Order.Builder order =
        order(
            ProtocolId.PROTOCOL_ID_BLS_SIGN_1,
            "sign",
            SigningIntent.newBuilder()
                .setRequestId(UUID.randomUUID().toString())
                .setKey(KEY)
                .setScheme(Scheme.SCHEME_BLS12381)
                .setMessage(ByteString.copyFromUtf8("hello"))
                .setNotAfter(Installation.in(Duration.ofMinutes(1)))
                .build()
                .toByteString());
    for (int id : set) {
      order.addSigningSet(id);
    }
    return order;
  }

  private static Order.Builder keygen(String requestId) {
    return order(
            ProtocolId.PROTOCOL_ID_BLS_KEYGEN_1,
            "key",
            KeyIntent.newBuilder()
                .setRequestId(requestId)
                .setKey(KEY)
                .setScheme(Scheme.SCHEME_BLS12381)
                .setThreshold(1)
                .addAllParties(List.of("alpha", "bravo"))
                .setNotAfter(Installation.in(Duration.ofMinutes(1)))
                .build()
                .toByteString())
        .addSigningSet(1)
        .addSigningSet(2);
  }

  private SessionId give(Order.Builder order) {
    ByteString bytes = order.build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    return SessionId.ofOrder(bytes);
  }

  private SessionDriver driver() {
    return java.util.Objects.requireNonNull(driver);
  }

  private void envelope(SessionId session, byte[] envelope) {
    driver().onEnvelope(bravo, session, envelope.clone(), System.nanoTime());
  }

  /** All of bravo's messages of a key generation. */
  private void bravoPlays(SessionId session) {
    for (int round = 1; round <= 4; round++) {
      envelope(session, ("round " + round).getBytes(StandardCharsets.UTF_8));
    }
  }

  private Sent awaitSent(String what, java.util.function.Predicate<PartyMessage> wanted) {
    Installation.until(what, () -> net.sent.stream().anyMatch(s -> wanted.test(s.message())));
    return net.sent.stream().filter(s -> wanted.test(s.message())).findFirst().orElseThrow();
  }

  private SessionReport awaitReport(SessionId session) {
    Sent sent =
        awaitSent(
            "a report", m -> m.hasReport() && m.getReport().getSessionId().equals(session.bytes()));
    assertThat(sent.to()).contains(coordinator);
    return sent.message().getReport();
  }

  private void awaitEnvelope(SessionId session) {
    awaitSent(
        "an envelope",
        m -> m.hasEnvelope() && m.getEnvelope().getSessionId().equals(session.bytes()));
  }

  private void awaitEnded(String end) {
    Installation.until(end + " in " + watch.ended, () -> watch.ended.contains(end) && live() == 0);
  }

  private void awaitMove(Event event) {
    Installation.until(event.name(), () -> LOG.list.stream().anyMatch(t -> t.event() == event));
  }

  private int live() {
    return watch.live.getAsInt();
  }

  // ---- signing ---------------------------------------------------------------------------------

  @Test
  void signs_with_one_peer() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    assertThat(net.sent.element().to()).containsExactly(bravo, coordinator);
    envelope(session, ROUND_1);
    awaitEnded("bls_sign_1 completed none");
    assertThat(core.open.get()).isZero();
    assertThat(watch.rounds).containsExactly("bls_sign_1 1", "bls_sign_1 1 for bravo");
    assertThat(audit.getLast().fields())
        .containsKeys("result_digest", "intent_digest", "session_id", "request_id", "key")
        .doesNotContainValue("hello");
  }

  @Test
  void signs_alone() {
    key(KeyShare.State.ACTIVE);
    give(signing(1));
    awaitEnded("bls_sign_1 completed none");
  }

  @Test
  void envelope_before_its_order_is_kept() {
    key(KeyShare.State.ACTIVE);
    ByteString bytes = signing(1, 2).build().toByteString();
    envelope(SessionId.ofOrder(bytes), ROUND_1);
    driver().onOrder(coordinator, bytes, null);
    awaitEnded("bls_sign_1 completed none");
  }

  @Test
  void envelope_while_the_claim_is_written_is_kept() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    envelope(session, ROUND_1);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitEnded("bls_sign_1 completed none");
  }

  @Test
  void late_messages_of_an_ended_session_are_dropped() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1));
    awaitEnded("bls_sign_1 completed none");
    envelope(session, ROUND_1);
    assertThat(watch.dropped).isEmpty();
    assertThat(live()).isZero();
  }

  @Test
  void messages_that_are_not_acceptable_are_dropped() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    driver().onEnvelope(coordinator, session, new byte[5], 0);
    driver().onEnvelope(bravo, session, new byte[SessionLimits.MAX_ENVELOPE_BYTES + 1], 0);
    assertThat(watch.dropped).containsExactly("unacceptable", "unacceptable");
    envelope(session, "noise".getBytes(StandardCharsets.UTF_8));
    Installation.until(
        "the core ignores noise", () -> watch.dropped.contains("reject_reason_malformed"));
    envelope(session, ROUND_1);
    awaitEnded("bls_sign_1 completed none");
  }

  @Test
  void missing_party_is_named_at_the_deadline() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2, 3).setDeadline(Installation.in(Duration.ofMillis(200))));
    awaitEnvelope(session);
    envelope(session, ROUND_1);
    assertThat(awaitReport(session).getTimedOut().getMissingList()).containsExactly(3);
    awaitEnded("bls_sign_1 timed_out none");
  }

  @Test
  void deadline_while_the_claim_is_written() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2).setDeadline(Installation.in(Duration.ofMillis(100))));
    assertThat(awaitReport(session).hasTimedOut()).isTrue();
    awaitEnded("bls_sign_1 timed_out none");
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    give(signing(1, 2).setDeadline(Installation.in(Duration.ofMillis(1))));
    assertThat(core.started.get()).as("nothing starts after its end").isZero();
  }

  @Test
  void cause_and_culprit_of_an_abort_are_reported_and_remembered() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    envelope(session, FakeCore.POISON);
    assertThat(awaitReport(session).getAborted().getCulpritsList()).containsExactly(2);
    awaitEnded("bls_sign_1 aborted wrong_share");
    SessionId next = give(signing(1, 2));
    assertThat(awaitReport(next).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
  }

  @Test
  void frozen_key_is_used_with_nobody() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    envelope(session, FakeCore.FREEZE);
    awaitEnded("bls_sign_1 aborted wrong_share");
    SessionId next = give(signing(1, 3));
    assertThat(awaitReport(next).getRefused().getDetail()).contains("frozen");
  }

  @Test
  void bug_in_the_core_ends_the_session_and_not_the_service() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    envelope(session, FakeCore.BUG);
    assertThat(awaitReport(session).getAborted().getCulpritsList()).isEmpty();
    awaitEnded("bls_sign_1 aborted internal");
    signs_alone();
  }

  @Test
  void cancel_counts_from_the_coordinator_that_ordered() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    driver().onCancel(other, session);
    driver().onCancel(bravo, session);
    envelope(session, "noise".getBytes(StandardCharsets.UTF_8));
    Installation.until("both were looked at", () -> !watch.dropped.isEmpty());
    assertThat(live()).isEqualTo(1);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_sign_1 cancelled none");
  }

  @Test
  void cancel_while_the_claim_is_written() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_sign_1 cancelled none");
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    assertThat(core.started.get()).isZero();
  }

  @Test
  void store_that_fails_starts_nothing() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    ledger.waiting.getFirst().completeExceptionally(new IllegalStateException("disk full"));
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_INTERNAL);
    assertThat(core.started.get()).isZero();
  }

  @Test
  void core_that_refuses_is_reported() {
    key(KeyShare.State.ACTIVE);
    start(
        (SessionConfig config, ByteString share) -> {
          throw new RefusedException(RefusalReason.REFUSAL_REASON_INTERNAL, "no");
        });
    SessionId session = give(signing(1, 2));
    assertThat(awaitReport(session).getRefused().getDetail()).isEqualTo("no");
    awaitEnded("bls_sign_1 refused internal");
  }

  @Test
  void beyond_max_combining_a_session_ends_with_its_last_message() {
    limits = new SessionLimits(8, 8, 0, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO);
    start();
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    awaitEnded("bls_sign_1 contributed none");
    assertThat(core.open.get()).isZero();
  }

  @Test
  void same_order_twice_is_followed_once() {
    key(KeyShare.State.ACTIVE);
    ByteString bytes = signing(1, 2).build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    driver().onOrder(coordinator, bytes, null);
    SessionId session = SessionId.ofOrder(bytes);
    awaitEnvelope(session);
    driver().onOrder(other, bytes, null);
    Sent refusal = awaitSent("the other is refused", PartyMessage::hasReport);
    assertThat(refusal.to()).containsExactly(other);
    envelope(session, ROUND_1);
    awaitEnded("bls_sign_1 completed none");
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void too_many_at_once_are_refused() {
    limits = new SessionLimits(2, 8, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO);
    start();
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    give(signing(1, 2));
    give(signing(1, 2));
    SessionId third = give(signing(1, 2));
    assertThat(awaitReport(third).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    // Those that only wait for their result do not count.
    Installation.until("both claim", () -> ledger.waiting.size() == 2);
    ledger.held = false;
    ledger.waiting.forEach(w -> w.complete(ClaimLedger.Outcome.CLAIMED));
    Installation.until("both have sent", () -> core.started.get() == 2);
    Installation.until(
        "there is room again",
        () -> {
          SessionId next = give(signing(1));
          return !awaitEndOrReport(next);
        });
  }

  /** Whether the session was refused. */
  private boolean awaitEndOrReport(SessionId session) {
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

  @Test
  void too_many_of_one_requester_are_refused() {
    limits = new SessionLimits(8, 1, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO);
    start();
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId first = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    SessionId second = give(signing(1, 2));
    assertThat(awaitReport(second).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    driver().onCancel(coordinator, first);
    awaitEnded("bls_sign_1 cancelled none");
    ledger.held = false;
    signs_alone();
  }

  // ---- a key that is not active yet ------------------------------------------------------------

  @Test
  void signing_waits_for_the_key() {
    key(KeyShare.State.PROVISIONAL);
    start();
    SessionId session = give(signing(1, 2));
    awaitMove(Event.KEY_PROVISIONAL);
    KeyPublic keyPublic = shares.find(KEY).orElseThrow().keyPublic();
    for (Member peer : List.of(bravo, charlie)) {
      driver()
          .onReport(
              peer,
              new SessionId(ByteString.copyFrom(new byte[32])),
              SessionReport.newBuilder()
                  .setCompleted(
                      io.coterie.proto.party.v1.Completed.newBuilder().setKeyPublic(keyPublic))
                  .build());
    }
    awaitEnvelope(session);
    envelope(session, ROUND_1);
    awaitEnded("bls_sign_1 completed none");
  }

  @Test
  void peer_with_another_public_key_does_not_activate_it() {
    key(KeyShare.State.PROVISIONAL);
    start();
    SessionId generation = new SessionId(ByteString.copyFrom(new byte[32]));
    for (Member peer : List.of(bravo, charlie)) {
      driver()
          .onReport(
              peer,
              generation,
              SessionReport.newBuilder()
                  .setCompleted(
                      io.coterie.proto.party.v1.Completed.newBuilder()
                          .setKeyPublic(
                              KeyPublic.newBuilder()
                                  .setKeyId(KEY)
                                  .setPublicKey(ByteString.copyFromUtf8("another"))))
                  .build());
    }
    SessionId session = give(signing(1, 2).setDeadline(Installation.in(Duration.ofMillis(200))));
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    assertThat(shares.find(KEY).orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
  }

  @Test
  void cancel_while_waiting_for_the_key() {
    key(KeyShare.State.PROVISIONAL);
    start();
    SessionId session = give(signing(1, 2));
    awaitMove(Event.KEY_PROVISIONAL);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_sign_1 cancelled none");
  }

  // ---- key generation --------------------------------------------------------------------------

  @Test
  void key_is_stored_then_reported_then_active() {
    shares.held = true;
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    assertThat(net.sent).noneMatch(s -> s.message().hasReport());
    shares.waiting.getFirst().complete(true);
    SessionReport report = awaitReport(session);
    assertThat(report.getCompleted().getKeyPublic().getKeyId()).isEqualTo(KEY);
    awaitEnded("bls_keygen_1 completed none");
    assertThat(shares.find(KEY).orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
    driver().onReport(bravo, session, report);
    Installation.until(
        "it is active", () -> shares.find(KEY).orElseThrow().state() == KeyShare.State.ACTIVE);
    assertThat(watch.rounds)
        .contains("bls_keygen_1 1", "bls_keygen_1 2", "bls_keygen_1 3 for bravo", "bls_keygen_1 4");
  }

  @Test
  void report_of_a_faster_peer_is_kept() {
    shares.held = true;
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    // The fake core makes the same key at both.
    KeyPublic same =
        KeyPublic.newBuilder()
            .setPublicKey(ByteString.copyFromUtf8("pk " + session.bytes().hashCode()))
            .setThreshold(1)
            .setKeyId(KEY)
            .setEpoch(1)
            .build();
    driver()
        .onReport(
            bravo,
            session,
            SessionReport.newBuilder()
                .setCompleted(io.coterie.proto.party.v1.Completed.newBuilder().setKeyPublic(same))
                .build());
    shares.waiting.getFirst().complete(true);
    Installation.until(
        "it is active",
        () -> shares.find(KEY).filter(s -> s.state() == KeyShare.State.ACTIVE).isPresent());
  }

  @Test
  void same_request_again_is_answered_from_the_store() {
    String requestId = UUID.randomUUID().toString();
    Order.Builder order = keygen(requestId);
    SessionId first = give(order);
    bravoPlays(first);
    awaitEnded("bls_keygen_1 completed none");
    net.sent.clear();
    ByteString again =
        order.setCoordinatorNonce(ByteString.copyFrom(new byte[32])).build().toByteString();
    driver().onOrder(other, again, null);
    Sent report = awaitSent("the stored report", PartyMessage::hasReport);
    assertThat(report.message().getReport().getSessionId()).isEqualTo(first.bytes());
    assertThat(report.to()).containsExactlyInAnyOrder(bravo, other);
    awaitEnded("bls_keygen_1 repeated none");
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void key_that_became_active_meanwhile_is_not_replaced() {
    shares.held = true;
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    shares.waiting.getFirst().complete(false);
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);
    awaitEnded("bls_keygen_1 refused key_exists");
  }

  @Test
  void newer_order_for_a_name_ends_the_older_run() {
    SessionId older = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(older);
    SessionId newer = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(newer);
    Installation.until(
        "the older ends", () -> watch.ended.contains("bls_keygen_1 cancelled superseded"));
    bravoPlays(newer);
    awaitEnded("bls_keygen_1 completed none");
    assertThat(shares.find(KEY).orElseThrow().session()).isEqualTo(newer);
  }

  @Test
  void run_whose_share_is_being_stored_is_not_cancelled() {
    shares.held = true;
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    bravoPlays(session);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    driver().onCancel(coordinator, session);
    shares.waiting.getFirst().complete(true);
    assertThat(awaitReport(session).hasCompleted()).isTrue();
    awaitEnded("bls_keygen_1 completed none");
  }

  @Test
  void newer_run_goes_on_while_the_older_share_is_stored() {
    shares.held = true;
    SessionId older = give(keygen(UUID.randomUUID().toString()));
    bravoPlays(older);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    SessionId newer = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(newer);
    shares.held = false;
    shares.waiting.getFirst().complete(true);
    KeyPublic olderKey = awaitReport(older).getCompleted().getKeyPublic();
    // All reports of the older one are there now, but the newer run decides.
    driver()
        .onReport(
            bravo,
            older,
            SessionReport.newBuilder()
                .setCompleted(
                    io.coterie.proto.party.v1.Completed.newBuilder().setKeyPublic(olderKey))
                .build());
    bravoPlays(newer);
    awaitReport(newer);
    assertThat(shares.find(KEY).orElseThrow().session()).isEqualTo(newer);
    assertThat(shares.find(KEY).orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
  }

  @Test
  void oversized_report_is_dropped() {
    key(KeyShare.State.PROVISIONAL);
    start();
    driver()
        .onReport(
            bravo,
            new SessionId(ByteString.copyFrom(new byte[32])),
            SessionReport.newBuilder()
                .setCompleted(
                    io.coterie.proto.party.v1.Completed.newBuilder()
                        .setKeyPublic(
                            KeyPublic.newBuilder()
                                .setKeyId(KEY)
                                .setPublicKey(
                                    ByteString.copyFrom(
                                        new byte[SessionLimits.MAX_KEY_PUBLIC_BYTES]))))
                .build());
    assertThat(watch.dropped).containsExactly("unacceptable");
  }

  @Test
  void silent_peer_of_a_key_generation_is_named() {
    SessionId session =
        give(
            keygen(UUID.randomUUID().toString())
                .setDeadline(Installation.in(Duration.ofMillis(200))));
    SessionReport report = awaitReport(session);
    assertThat(report.getTimedOut().getMissingList()).containsExactly(2);
    assertThat(report.getTimedOut().getRound()).isEqualTo(1);
    awaitEnded("bls_keygen_1 timed_out none");
  }

  @Test
  void key_generation_that_aborts_leaves_nothing() {
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    envelope(session, FakeCore.POISON);
    assertThat(awaitReport(session).hasAborted()).isTrue();
    awaitEnded("bls_keygen_1 aborted wrong_share");
    assertThat(shares.find(KEY)).isEmpty();
  }

  // ---- the end of the process ------------------------------------------------------------------

  @Test
  void draining_refuses_new_orders_and_lets_running_ones_finish() throws Exception {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    assertThat(driver().drain(Duration.ofMillis(10))).as("one still runs").isFalse();
    SessionId late = give(signing(1, 2));
    assertThat(awaitReport(late).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    CompletableFuture<Boolean> drained =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return driver().drain(Installation.PATIENCE);
              } catch (InterruptedException e) {
                return false;
              }
            });
    envelope(session, ROUND_1);
    assertThat(drained.get()).isTrue();
    awaitEnded("bls_sign_1 completed none");
  }

  @Test
  void what_still_lives_at_the_end_is_stopped() {
    key(KeyShare.State.ACTIVE);
    SessionId combining = give(signing(1, 2));
    awaitEnvelope(combining);
    ledger.held = true;
    give(signing(1, 2));
    Installation.until("one claims", () -> ledger.waiting.size() == 1);
    driver().close();
    assertThat(watch.ended)
        .containsExactlyInAnyOrder("bls_sign_1 stopped none", "bls_sign_1 stopped none");
    assertThat(core.open.get()).isZero();
  }

  @Test
  void key_generations_are_stopped_wherever_they_are() {
    SessionId running = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(running);
    driver().close();
    start();
    shares.held = true;
    SessionId storing = give(keygen(UUID.randomUUID().toString()));
    bravoPlays(storing);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    driver().close();
    start();
    key(KeyShare.State.PROVISIONAL);
    start();
    give(signing(1, 2));
    awaitMove(Event.KEY_PROVISIONAL);
    driver().close();
    assertThat(watch.ended)
        .containsExactly(
            "bls_keygen_1 stopped none", "bls_keygen_1 stopped none", "bls_sign_1 stopped none");
    assertThat(core.open.get()).isZero();
  }

  @Test
  void cancelled_key_generation() {
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_keygen_1 cancelled none");
  }

  @Test
  void used_session_id_is_refused() {
    key(KeyShare.State.ACTIVE);
    ByteString bytes = signing(1).build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    awaitEnded("bls_sign_1 completed none");
    net.sent.clear();
    driver().onOrder(coordinator, bytes, null);
    assertThat(awaitReport(SessionId.ofOrder(bytes)).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
  }

  @Test
  void garbage_is_refused() {
    driver().onOrder(coordinator, ByteString.copyFromUtf8("garbage"), null);
    awaitEnded("unknown refused malformed_order");
    assertThat(new HashSet<>(watch.ended)).hasSize(1);
  }
}
