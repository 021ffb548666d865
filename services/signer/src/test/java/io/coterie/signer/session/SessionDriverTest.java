package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Forsaken;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.signer.session.SessionLifecycle.Transition;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
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

  private final Member alpha = member("alpha", Member.Role.PARTY, 1);
  private final Member bravo = member("bravo", Member.Role.PARTY, 2);
  private final Member charlie = member("charlie", Member.Role.PARTY, 3);
  private final Member coordinator = member("coordinator", Member.Role.COORDINATOR, 0);
  private final Member other = member("coordinator-2", Member.Role.COORDINATOR, 0);
  private final Net net = new Net();
  private final MemoryLedger ledger = new MemoryLedger();
  private final MemoryShares shares = new MemoryShares();
  private final FakeCore core = new FakeCore();
  private final Watch watch = new Watch();
  private final List<AuditEvent> audit = new CopyOnWriteArrayList<>();
  private static final PresignatureLimits POOL =
      new PresignatureLimits(2, 3, 2, Duration.ofMinutes(1));
  private SessionLimits limits =
      new SessionLimits(8, 8, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
  private @Nullable WorkPool pool;
  private @Nullable SessionService driver;

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
        role == Member.Role.PARTY ? TestEvidence.publicKey(id) : new byte[0]);
  }

  private record Sent(Collection<Member> to, PartyMessage message) {}

  private final class Net implements PartyNetwork {
    final Roster roster = new Roster(1, List.of(alpha, bravo, charlie, coordinator, other));
    final LinkedBlockingQueue<Sent> sent = new LinkedBlockingQueue<>();
    final LinkedBlockingQueue<Sent> statements = new LinkedBlockingQueue<>();

    /** Whether the other parties remember what this one states, and say so. */
    volatile boolean witnesses = true;

    private void state(Sent statement) {
      if (witnesses) {
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
      return Set.of();
    }

    @Override
    public void broadcast(
        Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
      sent.add(new Sent(List.copyOf(recipients), message));
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      if (message.hasClaimCount()) {
        state(new Sent(List.of(recipient), message));
        return;
      }
      sent.add(new Sent(List.of(recipient), message));
    }
  }

  private static final class NothingShown implements ShownClaims {
    @Override
    public List<Shown> shown() {
      return List.of();
    }

    @Override
    public CompletionStage<Boolean> show(Shown shown) {
      return CompletableFuture.completedFuture(true);
    }

    @Override
    public CompletionStage<List<String>> wentBack(int party) {
      return CompletableFuture.completedFuture(List.of());
    }

    @Override
    public CompletionStage<List<String>> wentBack(LedgerPosition forgotten) {
      return CompletableFuture.completedFuture(List.of());
    }
  }

  private static final class Watch implements SessionTelemetry {
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

  private static VerifiedIntent admit(SignedIntent signed) throws RefusedException {
    try {
      if (signed.getPayloadType().equals("refresh")) {
        return new VerifiedIntent.KeyRefresh(
            "wallet",
            IntentVerifier.digest(signed.getPayload()),
            signed,
            RefreshIntent.parseFrom(signed.getPayload()));
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

  // ---- making things happen --------------------------------------------------------------------

  @AfterAll
  static void every_transition_was_visited() {
    assertThat(VISITED).containsExactlyInAnyOrderElementsOf(SessionLifecycle.TRANSITIONS);
  }

  @BeforeEach
  void start() {
    start(core.of(1));
  }

  private void start(ProtocolCore protocols) {
    stop();
    pool = new WorkPool("alpha", 2, limits.combineDelay());
    driver =
        new SessionService(
            net,
            SessionDriverTest::admit,
            ledger,
            shares,
            new NothingShown(),
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
    watch.moves.clear();
  }

  private void key(KeyShare.State state) {
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
            new SessionId(ByteString.copyFrom(new byte[32])),
            "coordinator",
            "wallet",
            "the request that made it",
            ByteString.copyFrom(new byte[32]),
            null));
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
            ProtocolId.PROTOCOL_ID_BLS_SIGN,
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
            ProtocolId.PROTOCOL_ID_BLS_KEYGEN,
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

  private SessionService driver() {
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
            "a report",
            m ->
                m.hasReport()
                    && !m.getReport().hasForsaken()
                    && m.getReport().getSessionId().equals(session.bytes()));
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
    Installation.until(event.name(), () -> watch.moves.stream().anyMatch(t -> t.event() == event));
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
    awaitEnded("bls_sign completed none");
    assertThat(core.open.get()).isZero();
    assertThat(watch.rounds).containsExactly("bls_sign 1", "bls_sign 1 for bravo");
    assertThat(audit.getLast().fields())
        .containsKeys("result_digest", "intent_digest", "session_id", "request_id", "key")
        .doesNotContainValue("hello");
  }

  @Test
  void signs_alone() {
    key(KeyShare.State.ACTIVE);
    give(signing(1));
    awaitEnded("bls_sign completed none");
  }

  @Test
  void envelope_before_its_order_is_kept() {
    key(KeyShare.State.ACTIVE);
    ByteString bytes = signing(1, 2).build().toByteString();
    envelope(SessionId.ofOrder(bytes), ROUND_1);
    driver().onOrder(coordinator, bytes, null);
    awaitEnded("bls_sign completed none");
  }

  @Test
  void envelope_while_the_claim_is_written_is_kept() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    envelope(session, ROUND_1);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitEnded("bls_sign completed none");
  }

  @Test
  void late_messages_of_an_ended_session_are_dropped() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1));
    awaitEnded("bls_sign completed none");
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
    awaitEnded("bls_sign completed none");
  }

  @Test
  void missing_party_is_named_at_the_deadline() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2, 3).setDeadline(Installation.in(Duration.ofMillis(200))));
    awaitEnvelope(session);
    envelope(session, ROUND_1);
    assertThat(awaitReport(session).getTimedOut().getMissingList()).containsExactly(3);
    awaitEnded("bls_sign timed_out none");
  }

  @Test
  void deadline_while_the_claim_is_written() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2).setDeadline(Installation.in(Duration.ofSeconds(1))));
    assertThat(awaitReport(session).hasTimedOut()).isTrue();
    awaitEnded("bls_sign timed_out none");
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
    awaitEnded("bls_sign aborted wrong_share");
    assertThat(audit.getLast().fields())
        .containsEntry("cause", "wrong_share")
        .containsEntry("culprits", "2")
        .doesNotContainKey("suspects");
    SessionId next = give(signing(1, 2));
    assertThat(awaitReport(next).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
  }

  @Test
  void suspects_of_an_abort_and_its_round_are_remembered_and_nobody_is_excluded() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    envelope(session, "round 1".getBytes(StandardCharsets.UTF_8));
    envelope(session, FakeCore.SUSPECT);
    assertThat(awaitReport(session).getAborted().getSuspectsList()).containsExactly(2);
    awaitEnded("ecdsa_sign aborted broadcast_mismatch");
    assertThat(audit.getLast().fields())
        .containsEntry("cause", "broadcast_mismatch")
        .containsEntry("round", "2")
        .containsEntry("suspects", "2")
        .doesNotContainKey("culprits");
    assertThat(shares.exclusions).isEmpty();
  }

  @Test
  void frozen_key_is_used_with_nobody() {
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    envelope(session, FakeCore.FREEZE);
    awaitEnded("bls_sign aborted wrong_share");
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
    awaitEnded("bls_sign aborted internal");
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
    awaitEnded("bls_sign cancelled none");
  }

  @Test
  void cancel_while_the_claim_is_written() {
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId session = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_sign cancelled none");
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
        new ProtocolCore() {
          @Override
          public Run start(SessionConfig config, ByteString share) throws RefusedException {
            throw new RefusedException(RefusalReason.REFUSAL_REASON_INTERNAL, "no");
          }

          @Override
          public ByteString signStatement(ByteString statement) {
            return ByteString.EMPTY;
          }
        });
    SessionId session = give(signing(1, 2));
    assertThat(awaitReport(session).getRefused().getDetail()).isEqualTo("no");
    awaitEnded("bls_sign refused internal");
  }

  @Test
  void beyond_max_combining_a_session_ends_with_its_last_message() {
    limits = new SessionLimits(8, 8, 0, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    key(KeyShare.State.ACTIVE);
    SessionId session = give(signing(1, 2));
    awaitEnvelope(session);
    awaitEnded("bls_sign contributed none");
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
    awaitEnded("bls_sign completed none");
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void too_many_at_once_are_refused() {
    limits = new SessionLimits(2, 8, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
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
    limits = new SessionLimits(8, 1, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    key(KeyShare.State.ACTIVE);
    ledger.held = true;
    SessionId first = give(signing(1, 2));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    SessionId second = give(signing(1, 2));
    assertThat(awaitReport(second).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    driver().onCancel(coordinator, first);
    awaitEnded("bls_sign cancelled none");
    ledger.held = false;
    signs_alone();
  }

  // ---- ECDSA: private rounds, derivation, payloads, presignatures ------------------------------

  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);

  private void ecdsaKey() {
    ecdsaKey(KeyShare.State.ACTIVE, 1, "the request that made it");
  }

  private void ecdsaKey(KeyShare.State state, int epoch, String requestId) {
    shares.put(
        new KeyShare(
            KEY,
            epoch,
            Scheme.SCHEME_ECDSA_SECP256K1,
            state,
            List.of(1, 2, 3),
            List.of(1, 2, 3),
            KeyPublic.newBuilder()
                .setKeyId(KEY)
                .setThreshold(2)
                .setEpoch(epoch)
                .setPublicKey(FakeCore.ECDSA_KEY)
                .setChainCode(ByteString.copyFrom(new byte[32]))
                .build(),
            ByteString.copyFromUtf8("share"),
            new SessionId(ByteString.copyFrom(new byte[32])),
            "coordinator",
            "wallet",
            requestId,
            ByteString.copyFrom(new byte[32]),
            null));
  }

  private static SigningIntent.Builder ecdsaIntent(Integer... path) {
    return SigningIntent.newBuilder()
        .setRequestId(UUID.randomUUID().toString())
        .setKey(KEY)
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .addAllDerivationPath(List.of(path))
        .setDigest(DIGEST)
        .setNotAfter(Installation.in(Duration.ofMinutes(1)));
  }

  private static Order.Builder ecdsaSigning(SigningIntent.Builder intent) {
    return order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, "sign", intent.build().toByteString())
        .setThreshold(2)
        .addSigningSet(1)
        .addSigningSet(2);
  }

  private static Order.Builder presigning(Integer... path) {
    return order(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, "", ByteString.EMPTY)
        .clearSignedIntent()
        .setThreshold(2)
        .addSigningSet(1)
        .addSigningSet(2)
        .setPresignatureCount(1)
        .addAllDerivationPath(List.of(path));
  }

  private static Order.Builder presigned(ByteString id, Integer... path) {
    return ecdsaSigning(ecdsaIntent(path))
        .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
        .setPresignatureId(id);
  }

  private void bravoPlays(SessionId session, int rounds) {
    for (int round = 1; round <= rounds; round++) {
      envelope(session, ("round " + round).getBytes(StandardCharsets.UTF_8));
    }
  }

  /** Makes one presignature; says its id. */
  private ByteString presign(Integer... path) {
    return presign(presigning(path));
  }

  private ByteString presign(Order.Builder order) {
    int before = watch.ended.size();
    SessionId session = give(order);
    bravoPlays(session, 2);
    List<ByteString> ids = awaitReport(session).getCompleted().getPresignatureIdsList();
    Installation.until("it has ended", () -> watch.ended.size() > before && live() == 0);
    assertThat(ids).hasSize(1);
    return ids.getFirst();
  }

  private RefusalReason awaitRefusal(SessionId session) {
    return awaitReport(session).getRefused().getReason();
  }

  @Test
  void three_rounds_of_which_the_observer_gets_the_last() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent(44, 7)));
    bravoPlays(session, 2);
    Installation.until("three messages", () -> net.sent.size() == 3);
    assertThat(net.sent.stream().map(Sent::to))
        .containsExactly(List.of(bravo), List.of(bravo), List.of(bravo, coordinator));
    assertThat(watch.moves).filteredOn(t -> t.event() == Event.LAST_SENT).hasSize(1);
    envelope(session, "round 3".getBytes(StandardCharsets.UTF_8));
    awaitEnded("ecdsa_sign completed none");
    SessionConfig config = core.configs.element();
    assertThat(config.getDerivationPathList()).containsExactly(44, 7);
    assertThat(config.getPayload()).isEqualTo(DIGEST);
    assertThat(watch.rounds)
        .contains("ecdsa_sign 1 for bravo", "ecdsa_sign 2 for bravo", "ecdsa_sign 3");
  }

  // ---- one signature for a request -------------------------------------------------------------

  private static Order.Builder with(Member peer, SigningIntent.Builder intent) {
    return ecdsaSigning(intent).clearSigningSet().addSigningSet(1).addSigningSet(peer.partyId());
  }

  private void plays(Member peer, SessionId session, int from, int to) {
    for (int round = from; round <= to; round++) {
      driver()
          .onEnvelope(
              peer,
              session,
              ("round " + round).getBytes(StandardCharsets.UTF_8),
              System.nanoTime());
    }
  }

  /** Gives this party's part to bravo and the coordinator, and nobody gives it theirs. */
  private ByteString given(SigningIntent.Builder intent) {
    return given(with(bravo, intent));
  }

  private ByteString given(Order.Builder order) {
    ByteString bytes = order.build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    plays(bravo, SessionId.ofOrder(bytes), 1, 2);
    awaitMove(Event.LAST_SENT);
    return bytes;
  }

  private void forsakes(Member peer, SessionId session) {
    driver().onReport(peer, session, ShareGossip.declined(session).getReport());
  }

  private void awaitForsaken(SessionId session, Member told) {
    Installation.until(
        "it is said that nothing comes",
        () ->
            net.sent.stream()
                .anyMatch(
                    s ->
                        s.to().equals(List.of(told))
                            && s.message().equals(ShareGossip.declined(session))));
  }

  private Refused refused(SessionId session) {
    return awaitReport(session).getRefused();
  }

  @Test
  void request_whose_part_was_given_is_signed_in_no_other_session() throws Exception {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    ByteString first = given(intent);
    SessionId other = give(with(charlie, intent));
    assertThat(refused(other).getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    assertThat(refused(other).getBoundOrder())
        .isEqualTo(Order.parseFrom(first).toBuilder().clearSignedIntent().build().toByteString());
    awaitForsaken(other, charlie);
    // Another request is another matter.
    awaitEnvelope(give(with(charlie, ecdsaIntent())));
  }

  @Test
  void session_that_is_ordered_again_is_answered_with_what_was_sent() {
    ecdsaKey();
    ByteString order = given(ecdsaIntent());
    Sent part = List.copyOf(net.sent).getLast();
    assertThat(part.to()).containsExactly(bravo, coordinator);
    net.sent.clear();
    driver().onOrder(coordinator, order, null);
    awaitSent("the part once more", PartyMessage::hasEnvelope);
    assertThat(net.sent).containsExactly(new Sent(List.of(coordinator), part.message()));
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void coordinator_that_takes_over_gets_the_part_before_it_is_told_that_this_is_all() {
    ecdsaKey();
    ByteString order = given(ecdsaIntent());
    Sent part = List.copyOf(net.sent).getLast();
    net.sent.clear();
    driver().onOrder(other, order, null);
    awaitSent("a refusal", m -> m.getReport().hasRefused());
    assertThat(List.copyOf(net.sent)).hasSize(2);
    assertThat(net.sent).allMatch(sent -> sent.to().equals(List.of(other)));
    assertThat(net.sent.element().message()).isEqualTo(part.message());
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void request_is_free_when_another_party_gives_no_part() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId first = SessionId.ofOrder(given(intent));
    forsakes(charlie, first);
    forsakes(bravo, new SessionId(ByteString.copyFrom(new byte[32])));
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    forsakes(bravo, first);
    awaitEnded("ecdsa_sign cancelled forsaken");
    SessionId next = give(with(charlie, intent));
    awaitEnvelope(next);
    plays(bravo, first, 3, 3);
    plays(charlie, next, 1, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void request_whose_signature_was_seen_has_no_other_whatever_is_said() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    ByteString order = given(intent);
    SessionId first = SessionId.ofOrder(order);
    plays(bravo, first, 3, 3);
    awaitEnded("ecdsa_sign completed none");
    forsakes(bravo, first);
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    driver().onOrder(coordinator, order, null);
    assertThat(refused(first).getSignature())
        .as("the one signature")
        .isEqualTo(DIGEST.concat(ByteString.copyFromUtf8("share")));
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void newer_session_counts_while_no_part_was_given() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId first = give(with(bravo, intent));
    awaitEnvelope(first);
    plays(bravo, first, 1, 1);
    SessionId second = give(with(charlie, intent));
    awaitForsaken(first, bravo);
    awaitEnvelope(second);
    assertThat(watch.ended).contains("ecdsa_sign cancelled superseded");
    plays(bravo, first, 2, 3);
    plays(charlie, second, 1, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void newer_session_waits_for_a_claim_that_is_being_written() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    ledger.held = true;
    SessionId first = give(with(bravo, intent));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    ledger.held = false;
    // Nothing is known of the first one yet; the ledger knows.
    ledger.bind(
        new ClaimLedger.Binding(
            "wallet",
            intent.getRequestId(),
            first,
            ByteString.EMPTY,
            ByteString.EMPTY,
            Instant.now()));
    SessionId second = give(with(charlie, intent));
    assertThat(refused(second).getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    awaitForsaken(second, charlie);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitEnvelope(first);
  }

  @Test
  void silent_party_is_signed_without_once_it_can_give_no_part_any_more() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    given(with(bravo, intent).setDeadline(Installation.in(Duration.ofSeconds(2))));
    assertThat(refused(give(with(charlie, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    awaitEnded("ecdsa_sign timed_out none");
    assertThat(refused(give(with(bravo, intent))).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
    awaitEnvelope(give(with(charlie, intent)));
  }

  @Test
  void coordinator_cannot_keep_a_party_from_seeing_the_signature() {
    ecdsaKey();
    SessionId session = SessionId.ofOrder(given(ecdsaIntent()));
    driver().onCancel(coordinator, session);
    plays(bravo, session, 3, 3);
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void request_is_free_when_the_parts_make_no_signature() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent();
    SessionId session = SessionId.ofOrder(given(intent));
    envelope(session, FakeCore.POISON);
    awaitEnded("ecdsa_sign aborted wrong_share");
    awaitEnvelope(give(with(charlie, intent)));
  }

  @Test
  void order_that_is_refused_is_forsaken_first() {
    ecdsaKey();
    SessionId session = give(presigned(ByteString.copyFrom(new byte[32])));
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(ledger.forsaken).containsExactly(session);
    assertThat(net.sent.element())
        .isEqualTo(new Sent(List.of(bravo), ShareGossip.declined(session)));
  }

  @Test
  void part_made_with_a_presignature_is_claimed_before_it_leaves_and_survives() {
    ecdsaKey();
    ByteString id = presign();
    ledger.held = true;
    Order.Builder order = presigned(id);
    ByteString bytes = order.build().toByteString();
    net.sent.clear();
    give(order);
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    assertThat(net.sent).isEmpty();
    ledger.held = false;
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    awaitSent("the part", PartyMessage::hasEnvelope);

    stop();
    SessionId session = SessionId.ofOrder(bytes);
    ledger.sessions.add(session);
    String requestId = "the request";
    ledger.bind(
        new ClaimLedger.Binding(
            "wallet",
            requestId,
            session,
            order.clone().clearSignedIntent().build().toByteString(),
            ByteString.copyFrom(ROUND_1),
            Instant.now()));
    start();
    net.sent.clear();
    driver().onOrder(coordinator, bytes, null);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(net.sent).hasSize(2);
    assertThat(net.sent.element().to()).containsExactly(coordinator);
    assertThat(net.sent.element().message().getEnvelope().getEnvelope())
        .isEqualTo(ByteString.copyFrom(ROUND_1));
  }

  /** A session still counts for the limit while it has something to send. */
  @Test
  void session_of_several_rounds_counts_until_its_last_message() {
    limits = new SessionLimits(1, 8, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    ecdsaKey();
    SessionId first = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(first);
    bravoPlays(first, 1);
    assertThat(awaitRefusal(give(ecdsaSigning(ecdsaIntent()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    envelope(first, "round 2".getBytes(StandardCharsets.UTF_8));
    awaitMove(Event.LAST_SENT);
    SessionId next = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(next);
  }

  @Test
  void what_was_decoded_is_in_the_audit_record() {
    ecdsaKey();
    give(ecdsaSigning(ecdsaIntent(1, 2)));
    Installation.until("it claims", () -> !ledger.accepted.isEmpty());
    assertThat(ledger.accepted.getFirst().fields())
        .containsEntry("payload", "digest")
        .containsEntry("payload.01.digest", "0x" + "00".repeat(32))
        .containsEntry("derivation_path", "m/1/2");
  }

  @Test
  void payload_that_is_not_what_it_claims_is_refused() {
    ecdsaKey();
    SigningIntent.Builder intent =
        ecdsaIntent().setEthereumTransaction(ByteString.copyFromUtf8("no transaction"));
    assertThat(awaitRefusal(give(ecdsaSigning(intent))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_BAD_PAYLOAD);
    assertThat(ledger.accepted).isEmpty();
  }

  /** Until its deadline an order can be given again, also to a store that has forgotten it. */
  @Test
  void order_for_longer_than_sessions_may_take_is_refused_and_not_cut() {
    ecdsaKey();
    SigningIntent.Builder intent = ecdsaIntent().setNotAfter(Installation.in(Duration.ofHours(1)));
    for (Order.Builder order : List.of(presigning(), ecdsaSigning(intent))) {
      SessionId late = give(order.setDeadline(Installation.in(Duration.ofSeconds(90))));
      assertThat(awaitRefusal(late)).isEqualTo(RefusalReason.REFUSAL_REASON_DEADLINE_TOO_FAR);
      assertThat(core.configs).as("nothing has run").isEmpty();
    }
    awaitEnvelope(give(presigning().setDeadline(Installation.in(Duration.ofSeconds(58)))));
  }

  @Test
  void presignature_is_made_used_once_and_gone() {
    ecdsaKey();
    ByteString id = presign();
    assertThat(watch.ready).isEqualTo(1);
    assertThat(net.sent).filteredOn(s -> s.message().hasEnvelope()).hasSize(2);
    net.sent.clear();
    SessionId signing = give(presigned(id));
    envelope(signing, ROUND_1);
    awaitEnded("ecdsa_sign_presigned completed none");
    assertThat(net.sent.element().to()).containsExactly(bravo, coordinator);
    SessionConfig config = List.copyOf(core.configs).getLast();
    assertThat(config.getPresignatureId()).isEqualTo(id);
    assertThat(config.getSealedPresignature()).isEqualTo(ByteString.copyFromUtf8("part of 1"));
    assertThat(awaitRefusal(give(presigned(id))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(watch.pool).containsExactly("made", "used");
    assertThat(watch.ready).isZero();
  }

  @Test
  void presignature_for_something_else_is_unknown_and_stays() {
    ecdsaKey();
    ByteString id = presign(1, 2);
    List<Order.Builder> wrong =
        List.of(
            presigned(id),
            presigned(id, 1),
            presigned(id, 2, 1),
            presigned(id, 1, 2).addSigningSet(3),
            presigned(ByteString.copyFrom(new byte[32]), 1, 2));
    for (Order.Builder order : wrong) {
      assertThat(awaitRefusal(give(order)))
          .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    }
    ByteString ofOther = presigned(id, 1, 2).build().toByteString();
    driver().onOrder(other, ofOther, null);
    Sent refusal =
        awaitSent(
            "the other coordinator is refused",
            m ->
                m.getReport().hasRefused()
                    && m.getReport().getSessionId().equals(SessionId.ofOrder(ofOther).bytes()));
    assertThat(refusal.message().getReport().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(watch.pool).containsExactly("made");
    SessionId right = give(presigned(id, 1, 2));
    awaitEnvelope(right);
  }

  @Test
  void presignature_is_burnt_before_the_claim_and_never_comes_back() {
    ecdsaKey();
    ByteString id = presign();
    ledger.held = true;
    SessionId signing = give(presigned(id));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    assertThat(awaitRefusal(give(presigned(id))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.REQUEST_ID_REUSED);
    assertThat(awaitRefusal(signing)).isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_ID_REUSED);
    Installation.until("it is lost", () -> watch.pool.contains("not_started"));
    assertThat(core.presignatures).as("the core keeps nothing for it").isEmpty();
    assertThat(awaitRefusal(give(presigned(id))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
  }

  @Test
  void order_that_may_not_be_signed_costs_no_presignature() {
    ecdsaKey();
    ByteString id = presign();
    Order.Builder bad =
        ecdsaSigning(ecdsaIntent().setEthereumTransaction(ByteString.copyFromUtf8("x")))
            .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
            .setPresignatureId(id);
    assertThat(awaitRefusal(give(bad))).isEqualTo(RefusalReason.REFUSAL_REASON_BAD_PAYLOAD);
    awaitEnvelope(give(presigned(id)));
  }

  @Test
  void pool_has_limits_of_its_own() {
    limits = new SessionLimits(2, 1, 8, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    ecdsaKey();
    SessionId first = give(presigning());
    awaitEnvelope(first);
    SessionId second = give(presigning());
    awaitEnvelope(second);
    assertThat(awaitRefusal(give(presigning()))).isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent())));
    bravoPlays(first, 2);
    bravoPlays(second, 2);
    Installation.until("both are ready", () -> watch.ready == 2);
    Installation.until("they have ended", () -> live() == 1);
    assertThat(awaitRefusal(give(presigning()))).isEqualTo(RefusalReason.REFUSAL_REASON_POOL_FULL);
    driver().onCancel(other, first);
    driver().onCancel(bravo, first);
    assertThat(watch.ready).isEqualTo(2);
    driver().onCancel(coordinator, first);
    assertThat(watch.pool).contains("cancelled");
    assertThat(watch.ready).isEqualTo(1);
    Installation.until("the refused one has ended", () -> live() == 1);
    awaitEnvelope(give(presigning()));
  }

  @Test
  void session_makes_as_many_presignatures_as_were_ordered() {
    limits =
        new SessionLimits(
            8,
            8,
            8,
            Duration.ofSeconds(60),
            Duration.ZERO,
            Duration.ZERO,
            new PresignatureLimits(5, 8, 4, Duration.ofMinutes(1)));
    start();
    ecdsaKey();
    SessionId session = give(presigning().setPresignatureCount(4));
    awaitEnvelope(session);
    // The room for all of them is taken before the first one is made.
    assertThat(awaitRefusal(give(presigning().setPresignatureCount(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_POOL_FULL);
    bravoPlays(session, 2);
    List<ByteString> ids = awaitReport(session).getCompleted().getPresignatureIdsList();
    assertThat(ids).hasSize(4).doesNotHaveDuplicates();
    awaitEnded("ecdsa_presign completed none");
    assertThat(watch.ready).isEqualTo(4);
    awaitEnvelope(give(presigned(ids.get(2))));
    assertThat(watch.ready).isEqualTo(3);
    driver().onCancel(coordinator, session);
    assertThat(watch.ready).isZero();
    assertThat(watch.pool)
        .containsExactly(
            "made", "made", "made", "made", "used", "cancelled", "cancelled", "cancelled");
    assertThat(core.presignatures).isEmpty();
  }

  @Test
  void of_presignatures_with_an_id_that_is_known_none_is_kept() {
    ecdsaKey();
    core.oneId = true;
    SessionId twice = give(presigning().setPresignatureCount(2));
    bravoPlays(twice, 2);
    assertThat(awaitRefusal(twice)).isEqualTo(RefusalReason.REFUSAL_REASON_INTERNAL);
    Installation.until("its room in the pool is free", () -> live() == 0);
    assertThat(watch.pool).isEmpty();
    assertThat(core.presignatures).isEmpty();
    presign();
    SessionId again = give(presigning());
    bravoPlays(again, 2);
    assertThat(awaitRefusal(again)).isEqualTo(RefusalReason.REFUSAL_REASON_INTERNAL);
    assertThat(watch.pool).containsExactly("made", "duplicate");
    assertThat(watch.ready).isZero();
    assertThat(core.presignatures).isEmpty();
    Installation.until("all have ended", () -> live() == 0);
    core.oneId = false;
    presign();
  }

  @Test
  void presignatures_of_an_earlier_process_of_the_coordinator_are_dropped() {
    ecdsaKey();
    ByteString old = ByteString.copyFrom(new byte[16]);
    ByteString now = ByteString.copyFromUtf8("another process ");
    presign(presigning().setCoordinatorLife(old));
    presign(presigning().setCoordinatorLife(old));
    assertThat(watch.ready).isEqualTo(2);
    // Another coordinator's are its own.
    driver().onOrder(other, presigning(7).setCoordinatorLife(now).build().toByteString(), null);
    Installation.until(
        "it is refused", () -> watch.ended.stream().anyMatch(e -> e.contains("pool_full")));
    assertThat(watch.pool).doesNotContain("orphaned");
    ByteString id = presign(presigning().setCoordinatorLife(now));
    assertThat(watch.pool).filteredOn("orphaned"::equals).hasSize(2);
    assertThat(watch.ready).isEqualTo(1);
    awaitEnvelope(give(presigned(id)));
    assertThat(awaitRefusal(give(presigning().setCoordinatorLife(now.substring(1)))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    assertThat(awaitRefusal(give(ecdsaSigning(ecdsaIntent()).setCoordinatorLife(now))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
  }

  @Test
  void failed_presigning_gives_its_room_back() {
    ecdsaKey();
    for (int attempt = 0; attempt < 3; attempt++) {
      SessionId session = give(presigning());
      awaitEnvelope(session);
      driver().onCancel(coordinator, session);
      assertThat(awaitReport(session).getTimedOut().getMissingList()).containsExactly(2);
      Installation.until("it has ended", () -> live() == 0);
    }
    presign();
  }

  @Test
  void presignature_has_an_age() {
    limits =
        new SessionLimits(
            8,
            8,
            8,
            Duration.ofSeconds(60),
            Duration.ZERO,
            Duration.ZERO,
            new PresignatureLimits(2, 2, 2, Duration.ofNanos(1)));
    start();
    ecdsaKey();
    presign();
    Installation.until("it is dropped", () -> watch.pool.contains("aged"));
    assertThat(core.presignatures).isEmpty();
    assertThat(watch.ready).isZero();
  }

  @Test
  void presigning_needs_the_key_as_it_is() {
    assertThat(awaitRefusal(give(presigning())))
        .isEqualTo(RefusalReason.REFUSAL_REASON_UNKNOWN_KEY);
    ecdsaKey(KeyShare.State.PROVISIONAL, 1, "request");
    assertThat(awaitRefusal(give(presigning()))).isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    ecdsaKey();
    assertThat(awaitRefusal(give(presigning().setEpoch(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    assertThat(awaitRefusal(give(presigning().setThreshold(1))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    List<Order.Builder> malformed =
        List.of(
            presigning(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
            presigning(-1),
            presigning().setSignedIntent(SignedIntent.getDefaultInstance()),
            presigning().setPresignatureId(DIGEST),
            presigning().clearPresignatureCount(),
            presigning().setPresignatureCount(5),
            presigning().setPresignatureCount(-1),
            presigned(DIGEST).setPresignatureCount(1),
            ecdsaSigning(ecdsaIntent()).setPresignatureCount(1),
            presigned(DIGEST).clearPresignatureId(),
            presigned(DIGEST.substring(1)),
            presigned(DIGEST).addDerivationPath(1),
            ecdsaSigning(ecdsaIntent()).setPresignatureId(DIGEST),
            ecdsaSigning(ecdsaIntent()).clearSignedIntent());
    for (Order.Builder order : malformed) {
      assertThat(awaitRefusal(give(order))).isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    }
    assertThat(core.started.get()).isZero();
  }

  /** The share without the cheat is on disk before anybody is told, and what runs with it stops. */
  @Test
  void share_is_replaced_before_a_failed_transfer_check_is_reported() {
    ecdsaKey();
    ByteString ready = presign();
    SessionId running = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(running);
    SessionId cheated = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(cheated);
    shares.heldExclusion = new CompletableFuture<>();
    envelope(cheated, FakeCore.CHEAT);
    assertThat(awaitRefusal(running)).isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    assertThat(net.sent)
        .noneMatch(s -> s.message().getReport().getSessionId().equals(cheated.bytes()));
    assertThat(shares.exclusions.getFirst())
        .isEqualTo(
            new KeyShareStore.Exclusion(
                KEY,
                Set.of(2),
                cheated,
                shares.find(KEY).orElseThrow().session(),
                1,
                ByteString.copyFromUtf8("share without 2")));
    shares.heldExclusion.complete(true);
    SessionReport report = awaitReport(cheated);
    assertThat(report.getAborted().getCulpritsList()).containsExactly(2);
    assertThat(report.getAborted().getSealedShare().isEmpty()).isTrue();
    assertThat(watch.pool).contains("excluded");
    assertThat(awaitRefusal(give(presigned(ready))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
  }

  @Test
  void exclusion_that_cannot_be_stored_is_reported_with_the_advice_to_freeze_the_key() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    shares.heldExclusion = CompletableFuture.failedFuture(new IllegalStateException("disk full"));
    envelope(session, FakeCore.CHEAT);
    assertThat(awaitReport(session).getAborted().getAdvice()).isEqualTo(Advice.ADVICE_FREEZE_KEY);
    awaitEnded("ecdsa_sign aborted transfer_check_failed");
    assertThat(ledger.multiplications).as("counts a life at the next start").containsKey(session);
  }

  /** bravo's message may be a guess, so the core sees it only if the claim cannot be forgotten. */
  @Test
  void the_core_hears_no_peer_before_others_remember_the_claim() throws Exception {
    ecdsaKey();
    net.witnesses = false;
    SessionId unheard = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(unheard);
    envelope(unheard, FakeCore.CHEAT);
    driver().onCancel(coordinator, unheard);
    awaitEnded("ecdsa_sign cancelled none");
    assertThat(shares.exclusions).isEmpty();

    Sent first = net.statements.take();
    assertThat(first.to()).containsExactly(bravo);
    assertThat(first.message().getClaimCount().getCount()).isEqualTo(1);
    SessionId heard = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(heard);
    envelope(heard, FakeCore.CHEAT);
    net.answer(bravo, first.message());
    Sent second = net.statements.take();
    assertThat(second.message().getClaimCount().getCount())
        .as("the answer to the first statement says nothing of the second session")
        .isEqualTo(2);
    assertThat(shares.exclusions).isEmpty();
    net.answer(charlie, second.message()); // who is asked nothing
    net.answer(bravo, second.message());
    awaitEnded("ecdsa_sign aborted transfer_check_failed");
    assertThat(shares.exclusions).hasSize(1);
  }

  /** bravo is missing, and charlie, whose message lies here unheard, is not. */
  @Test
  void whoever_keeps_back_that_it_remembers_the_claim_is_named() throws Exception {
    ecdsaKey();
    net.witnesses = false;
    SessionId session = give(ecdsaSigning(ecdsaIntent()).addSigningSet(3));
    awaitEnvelope(session);
    for (Member peer : List.of(bravo, charlie)) {
      driver().onEnvelope(peer, session, ROUND_1.clone(), System.nanoTime());
    }
    for (int statement = 0; statement < 2; statement++) {
      Sent sent = net.statements.take();
      if (sent.to().contains(charlie)) {
        net.answer(charlie, sent.message());
      }
    }
    // The next statement that charlie alone is asked for has been answered after the first one.
    SessionId later = give(ecdsaSigning(ecdsaIntent()).addSigningSet(3));
    Sent next = net.statements.take();
    assertThat(next.to()).containsExactly(charlie);
    awaitEnvelope(later);
    driver().onCancel(coordinator, session);
    assertThat(awaitReport(session).getTimedOut().getMissingList()).containsExactly(2);
  }

  /** What is on disk of a session that multiplies: from its claim until it has ended. */
  @Test
  void a_session_that_multiplies_is_open_on_disk_from_its_claim_to_its_end() {
    ecdsaKey();
    SessionId signing = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(signing);
    SessionId presigning = give(presigning());
    awaitEnvelope(presigning);
    assertThat(ledger.multiplications)
        .containsOnlyKeys(signing, presigning)
        .containsValue(new ClaimLedger.Multiplication(KEY, 1, List.of(2)));
    // An order that comes again changes nothing.
    bravoPlays(signing, 3);
    Installation.until("it is closed", () -> !ledger.multiplications.containsKey(signing));
    assertThat(ledger.multiplications).containsOnlyKeys(presigning);
    driver().close();
    assertThat(ledger.multiplications).as("a clean stop").isEmpty();
  }

  @Test
  void a_session_that_multiplies_and_ends_by_a_bug_counts_like_a_kill() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    envelope(session, FakeCore.BUG);
    awaitEnded("ecdsa_sign aborted internal");
    driver().close();
    assertThat(ledger.multiplications).containsOnlyKeys(session);
  }

  @Test
  void a_session_that_multiplies_and_that_the_core_ends_by_its_own_error_counts_like_a_kill() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    envelope(session, FakeCore.BROKEN);
    awaitEnded("ecdsa_sign aborted internal");
    driver().close();
    assertThat(ledger.multiplications).containsOnlyKeys(session);
  }

  @Test
  void a_session_that_ends_by_a_bug_before_it_heard_a_peer_counts_for_nothing() {
    ecdsaKey();
    start(
        new ProtocolCore() {
          @Override
          public Run start(SessionConfig config, ByteString share) {
            throw new IllegalStateException("as told");
          }

          @Override
          public ByteString signStatement(ByteString statement) {
            return ByteString.EMPTY;
          }
        });
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    envelope(session, FakeCore.CHEAT);
    awaitEnded("ecdsa_sign aborted internal");
    driver().close();
    assertThat(ledger.multiplications).isEmpty();
  }

  @Test
  void a_session_whose_claim_comes_after_its_end_is_not_left_open() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(presigning());
    Installation.until("a claim", () -> !ledger.waiting.isEmpty());
    driver().onCancel(coordinator, session);
    awaitEnded("ecdsa_presign cancelled none");
    ledger.multiplications.put(session, new ClaimLedger.Multiplication(KEY, 1, List.of(2)));
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.CLAIMED);
    Installation.until("it is closed", () -> ledger.multiplications.isEmpty());
  }

  @Test
  void a_replayed_order_does_not_close_what_an_earlier_session_left_open() {
    ecdsaKey();
    ledger.held = true;
    SessionId session = give(presigning());
    Installation.until("a claim", () -> !ledger.waiting.isEmpty());
    ledger.multiplications.put(session, new ClaimLedger.Multiplication(KEY, 1, List.of(2)));
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.SESSION_REPLAYED);
    assertThat(awaitRefusal(session)).isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
    assertThat(ledger.multiplications).containsKey(session);
  }

  @Test
  void exclusion_being_stored_is_not_waited_for_at_the_end() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    shares.heldExclusion = new CompletableFuture<>();
    envelope(session, FakeCore.CHEAT);
    awaitMove(Event.EXCLUDE);
    driver().close();
    assertThat(watch.ended).containsExactly("ecdsa_sign stopped none");
    assertThat(ledger.multiplications).as("nobody knows whether it is on disk").isNotEmpty();
  }

  /** Exclusion while the session only waits for its result. */
  @Test
  void culprit_of_the_last_round_is_excluded_too() {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    bravoPlays(session, 2);
    awaitMove(Event.LAST_SENT);
    envelope(session, FakeCore.POISON);
    awaitEnded("ecdsa_sign aborted wrong_share");
    assertThat(shares.excluded(KEY)).containsExactly(2);
  }

  // ---- refresh ---------------------------------------------------------------------------------

  private static Order.Builder refresh(String requestId) {
    return order(
            ProtocolId.PROTOCOL_ID_ECDSA_REFRESH,
            "refresh",
            RefreshIntent.newBuilder()
                .setRequestId(requestId)
                .setKey(KEY)
                .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                .setEpoch(1)
                .setNotAfter(Installation.in(Duration.ofMinutes(1)))
                .build()
                .toByteString())
        .setThreshold(2)
        .addAllSigningSet(List.of(1, 2, 3));
  }

  private void peersPlayRefresh(SessionId session) {
    for (int round = 1; round <= 6; round++) {
      byte[] body = ("round " + round).getBytes(StandardCharsets.UTF_8);
      driver().onEnvelope(bravo, session, body.clone(), System.nanoTime());
      driver().onEnvelope(charlie, session, body.clone(), System.nanoTime());
    }
  }

  @Test
  void culprit_of_a_refresh_is_reported_and_not_excluded_from_the_active_key() {
    ecdsaKey();
    SessionId session = give(refresh(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    envelope(session, FakeCore.CHEAT);
    assertThat(awaitReport(session).getAborted().getCulpritsList()).containsExactly(2);
    assertThat(shares.exclusions).isEmpty();
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent())));
  }

  /**
   * Shares made before bravo has told that the store went back would be held to be of that time.
   */
  @Test
  void new_shares_are_not_made_before_others_have_told_what_they_remember() throws Exception {
    ecdsaKey();
    net.witnesses = false;
    SessionId unheard = give(refresh(UUID.randomUUID().toString()));
    awaitEnvelope(unheard);
    envelope(unheard, FakeCore.CHEAT);
    driver().onCancel(coordinator, unheard);
    awaitEnded("ecdsa_refresh cancelled none");
    List<Sent> statements = List.of(net.statements.take(), net.statements.take());
    assertThat(statements).flatExtracting(Sent::to).containsExactlyInAnyOrder(bravo, charlie);
    SessionId session = give(refresh(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    peersPlayRefresh(session);
    statements.forEach(sent -> net.answer(sent.to().iterator().next(), sent.message()));
    assertThat(awaitReport(session).getCompleted().getKeyPublic().getEpoch()).isEqualTo(2);
  }

  @Test
  void a_run_that_is_over_here_still_hears_what_others_show() {
    ecdsaKey();
    SessionId session = refreshed(UUID.randomUUID().toString());
    int open = core.open.get();
    envelope(session, "noise".getBytes(StandardCharsets.UTF_8));
    envelope(session, FakeCore.CHEAT);
    java.util.function.Predicate<PartyMessage> found =
        m ->
            m.getReport().getSessionId().equals(session.bytes())
                && m.getReport().getAborted().getCulpritsList().equals(List.of(2));
    awaitSent("what was found is reported as well", found);
    Installation.until("it hears nothing more", () -> core.open.get() == open - 1);
    envelope(session, FakeCore.CHEAT);
    assertThat(net.sent.stream().filter(s -> found.test(s.message()))).hasSize(1);
    assertThat(shares.exclusions).isEmpty();
  }

  @Test
  void a_run_that_is_over_here_is_closed_at_its_deadline() {
    ecdsaKey();
    int open = core.open.get();
    Instant deadline = Instant.now().plusSeconds(2);
    peersPlayRefresh(
        give(
            refresh(UUID.randomUUID().toString())
                .setDeadline(Installation.in(Duration.between(Instant.now(), deadline)))));
    awaitEnded("ecdsa_refresh completed none");
    boolean early = core.open.get() == open && Instant.now().isBefore(deadline.minusSeconds(1));
    assertThat(early).as("closed before the deadline").isFalse();
    Installation.until("the deadline", () -> core.open.get() == open);
  }

  /** The runs of one key give way to each other before they cost another key its only one. */
  @Test
  void when_too_many_runs_are_listened_to_the_oldest_of_the_busiest_key_gives_way() {
    String quiet = "keys/quiet";
    SessionId first = aborted(keygen(UUID.randomUUID().toString()).setKey(quiet), quiet);
    List<SessionId> busy = new ArrayList<>();
    for (int run = 0; run < 64; run++) {
      busy.add(aborted(keygen(UUID.randomUUID().toString()), KEY));
    }
    Installation.until("one was closed", () -> core.open.get() == 64);
    for (SessionId heard : List.of(first, busy.get(1), busy.getLast())) {
      awaitFound(heard);
    }
    int found = net.sent.size();
    envelope(busy.getFirst(), FakeCore.CHEAT);
    awaitFound(busy.get(2)); // looked at after it
    assertThat(net.sent).hasSize(found + 1);
  }

  /** A key generation that was aborted here; says its session. */
  private SessionId aborted(Order.Builder order, String key) {
    SessionId session = give(order.setSignedIntent(forKey(order.getSignedIntent(), key)));
    awaitEnvelope(session);
    int before = watch.ended.size();
    envelope(session, FakeCore.POISON);
    Installation.until("it has ended", () -> watch.ended.size() > before && live() == 0);
    return session;
  }

  private static SignedIntent forKey(SignedIntent intent, String key) {
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
  private void awaitFound(SessionId session) {
    envelope(session, FakeCore.CHEAT);
    awaitSent(
        "what was found",
        m ->
            m.getReport().getSessionId().equals(session.bytes())
                && m.getReport().getAborted().getCause()
                    == AbortCause.ABORT_CAUSE_TRANSFER_CHECK_FAILED);
  }

  /** A refresh whose share is stored here; says its session. */
  private SessionId refreshed(String requestId) {
    SessionId session = give(refresh(requestId));
    peersPlayRefresh(session);
    assertThat(awaitReport(session).getCompleted().getKeyPublic().getEpoch()).isEqualTo(2);
    awaitEnded("ecdsa_refresh completed none");
    return session;
  }

  private void peersHaveStored(SessionId session) {
    KeyPublic keyPublic = awaitReport(session).getCompleted().getKeyPublic();
    for (Member peer : List.of(bravo, charlie)) {
      driver().onReport(peer, session, TestEvidence.completed(peer.partyId(), session, keyPublic));
    }
  }

  private static SessionReport forsaken() {
    return SessionReport.newBuilder().setForsaken(Forsaken.getDefaultInstance()).build();
  }

  private int epoch() {
    return shares.find(KEY).orElseThrow().epoch();
  }

  @Test
  void refresh_replaces_the_share_once_all_parties_have_theirs() {
    ecdsaKey();
    ByteString ready = presign();
    SessionId session = refreshed(UUID.randomUUID().toString());
    SessionConfig config = List.copyOf(core.configs).getLast();
    assertThat(config.getEpoch()).isEqualTo(1);
    assertThat(epoch()).as("the old one is used until then").isEqualTo(1);
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent())));
    peersHaveStored(session);
    Installation.until("the new one is used", () -> epoch() == 2);
    Installation.until("presignatures are worthless", () -> watch.pool.contains("refreshed"));
    assertThat(shares.pending(KEY)).isEmpty();
    assertThat(awaitRefusal(give(ecdsaSigning(ecdsaIntent()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    assertThat(awaitRefusal(give(presigned(ready).setEpoch(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent()).setEpoch(2)));
  }

  @Test
  void signing_in_the_next_epoch_waits_for_it() {
    ecdsaKey();
    SessionId session = refreshed(UUID.randomUUID().toString());
    SessionId signing = give(ecdsaSigning(ecdsaIntent()).setEpoch(2));
    awaitMove(Event.KEY_PROVISIONAL);
    peersHaveStored(session);
    awaitEnvelope(signing);
    assertThat(List.copyOf(core.configs).getLast().getEpoch()).isEqualTo(2);
  }

  @Test
  void refresh_that_is_not_decided_is_not_replaced_by_another() {
    ecdsaKey();
    String request = UUID.randomUUID().toString();
    SessionId first = refreshed(request);
    net.sent.clear();
    assertThat(awaitRefusal(give(refresh(UUID.randomUUID().toString()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    // Whoever does not have it is asked to say so.
    Sent asked = awaitSent("it asks", m -> m.getReport().hasCompleted());
    assertThat(asked.to()).containsExactly(bravo, charlie);
    assertThat(asked.message().getReport().getSessionId()).isEqualTo(first.bytes());
    assertThat(epoch()).isEqualTo(1);
    driver().onReport(charlie, first, forsaken());
    Installation.until("it is given up", () -> shares.pending(KEY).isEmpty());
    SessionId second = refreshed(UUID.randomUUID().toString());
    peersHaveStored(second);
    Installation.until("the second is used", () -> epoch() == 2);
  }

  /** Also when there is no time left: nothing is started for it. */
  @Test
  void stored_refresh_is_told_to_whoever_asks_for_the_same_request() {
    ecdsaKey();
    String request = UUID.randomUUID().toString();
    Order.Builder order = refresh(request);
    SessionId first = give(order);
    peersPlayRefresh(first);
    awaitReport(first);
    awaitEnded("ecdsa_refresh completed none");
    for (boolean active : new boolean[] {false, true}) {
      if (active) {
        peersHaveStored(first);
        Installation.until("it is used", () -> epoch() == 2);
      }
      net.sent.clear();
      give(
          order
              .setCoordinatorNonce(
                  ByteString.copyFromUtf8(UUID.randomUUID().toString().substring(0, 32)))
              .setDeadline(Installation.in(Duration.ofSeconds(-10))));
      Sent told = awaitSent("the stored report", m -> m.getReport().hasCompleted());
      assertThat(told.message().getReport().getSessionId()).isEqualTo(first.bytes());
      assertThat(told.to()).contains(coordinator);
    }
    assertThat(core.started.get()).isEqualTo(1);
  }

  @Test
  void party_without_a_share_says_so_and_stores_none_after() {
    ecdsaKey();
    SessionId session = give(refresh(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    KeyPublic next = shares.find(KEY).orElseThrow().keyPublic().toBuilder().setEpoch(2).build();
    SessionReport completed = TestEvidence.completed(2, session, next);
    driver().onReport(bravo, session, completed);
    assertThat(awaitRefusal(give(presigning().setEpoch(9)))).isNotNull();
    assertThat(shares.forsaken).as("it still runs here").isEmpty();
    driver().onCancel(coordinator, session);
    awaitEnded("ecdsa_refresh cancelled none");
    driver().onReport(bravo, session, completed);
    Sent told = awaitSent("it says so", m -> m.getReport().hasForsaken());
    assertThat(told.to()).containsExactly(bravo);
    assertThat(told.message().getReport().getSessionId()).isEqualTo(session.bytes());
    assertThat(shares.forsaken).containsExactly(session);
  }

  @Test
  void party_forsakes_only_what_could_be_a_later_epoch_of_a_key() {
    ecdsaKey();
    KeyPublic keyPublic = shares.find(KEY).orElseThrow().keyPublic();
    SessionId unknown =
        new SessionId(ByteString.copyFrom(new byte[31]).concat(DIGEST.substring(31)));
    int number = 0;
    for (KeyPublic other :
        List.of(
            keyPublic,
            keyPublic.toBuilder().setKeyId("keys/other").build(),
            keyPublic.toBuilder().setEpoch(2).setKeyId("no name of a key").build())) {
      byte[] id = unknown.bytes().toByteArray();
      id[0] = (byte) ++number;
      SessionId session = new SessionId(ByteString.copyFrom(id));
      driver().onReport(bravo, session, TestEvidence.completed(2, session, other));
    }
    SessionId asked = refreshed(UUID.randomUUID().toString());
    peersHaveStored(asked);
    Installation.until("all were looked at", () -> epoch() == 2);
    assertThat(shares.forsaken).isEmpty();
  }

  @Test
  void only_a_party_of_the_key_that_has_not_stored_its_share_can_end_a_refresh() {
    ecdsaKey();
    SessionId session = refreshed(UUID.randomUUID().toString());
    KeyPublic next = awaitReport(session).getCompleted().getKeyPublic();
    driver().onReport(coordinator, session, forsaken());
    driver().onReport(bravo, session, TestEvidence.completed(2, session, next));
    driver().onReport(bravo, session, forsaken());
    driver().onReport(charlie, session, TestEvidence.completed(3, session, next));
    Installation.until("it is used", () -> epoch() == 2);
  }

  @Test
  void refresh_leaves_nobody_out() {
    ecdsaKey();
    Order.Builder some = refresh(UUID.randomUUID().toString()).clearSigningSet();
    assertThat(awaitRefusal(give(some.addAllSigningSet(List.of(1, 2)))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    assertThat(awaitRefusal(give(refresh(UUID.randomUUID().toString()).setEpoch(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    shares.excluded.put(KEY, Set.of(2));
    awaitEnvelope(give(refresh(UUID.randomUUID().toString())));
    shares.excluded.put(KEY, Set.of(KeyShareStore.EVERY_PARTY));
    assertThat(awaitRefusal(give(refresh(UUID.randomUUID().toString()))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_FROZEN);
  }

  @Test
  void newer_refresh_ends_a_run_of_an_older_one() {
    ecdsaKey();
    SessionId older = give(refresh(UUID.randomUUID().toString()));
    awaitEnvelope(older);
    SessionId newer = give(refresh(UUID.randomUUID().toString()));
    awaitEnvelope(newer);
    Installation.until(
        "the older ends", () -> watch.ended.contains("ecdsa_refresh cancelled superseded"));
    peersPlayRefresh(newer);
    awaitReport(newer);
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
      SessionId generation = new SessionId(ByteString.copyFrom(new byte[32]));
      driver()
          .onReport(
              peer, generation, TestEvidence.completed(peer.partyId(), generation, keyPublic));
    }
    awaitEnvelope(session);
    envelope(session, ROUND_1);
    awaitEnded("bls_sign completed none");
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
              TestEvidence.completed(
                  peer.partyId(),
                  generation,
                  KeyPublic.newBuilder()
                      .setKeyId(KEY)
                      .setPublicKey(ByteString.copyFromUtf8("another"))
                      .build()));
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
    awaitEnded("bls_sign cancelled none");
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
    awaitEnded("bls_keygen completed none");
    assertThat(shares.find(KEY).orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
    driver()
        .onReport(
            bravo,
            session,
            TestEvidence.completed(2, session, report.getCompleted().getKeyPublic()));
    Installation.until(
        "it is active", () -> shares.find(KEY).orElseThrow().state() == KeyShare.State.ACTIVE);
    assertThat(watch.rounds)
        .contains("bls_keygen 1", "bls_keygen 2", "bls_keygen 3 for bravo", "bls_keygen 4");
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
    driver().onReport(bravo, session, TestEvidence.completed(2, session, same));
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
    awaitEnded("bls_keygen completed none");
    awaitReport(first);
    net.sent.clear();
    ByteString again =
        order.setCoordinatorNonce(ByteString.copyFrom(new byte[32])).build().toByteString();
    driver().onOrder(other, again, null);
    Sent report = awaitSent("the stored report", PartyMessage::hasReport);
    assertThat(report.message().getReport().getSessionId()).isEqualTo(first.bytes());
    assertThat(report.to()).containsExactlyInAnyOrder(bravo, other);
    awaitEnded("bls_keygen repeated none");
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
    awaitEnded("bls_keygen refused key_exists");
  }

  @Test
  void newer_order_for_a_name_ends_the_older_run() {
    SessionId older = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(older);
    SessionId newer = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(newer);
    Installation.until(
        "the older ends", () -> watch.ended.contains("bls_keygen cancelled superseded"));
    bravoPlays(newer);
    awaitEnded("bls_keygen completed none");
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
    awaitEnded("bls_keygen completed none");
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
    driver().onReport(bravo, older, TestEvidence.completed(2, older, olderKey));
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
    awaitEnded("bls_keygen timed_out none");
  }

  @Test
  void key_generation_that_aborts_leaves_nothing() {
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    envelope(session, FakeCore.POISON);
    assertThat(awaitReport(session).hasAborted()).isTrue();
    awaitEnded("bls_keygen aborted wrong_share");
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
    awaitEnded("bls_sign completed none");
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
        .containsExactlyInAnyOrder("bls_sign stopped none", "bls_sign stopped none");
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
            "bls_keygen stopped none", "bls_keygen stopped none", "bls_sign stopped none");
    assertThat(core.open.get()).isZero();
  }

  @Test
  void cancelled_key_generation() {
    SessionId session = give(keygen(UUID.randomUUID().toString()));
    awaitEnvelope(session);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_keygen cancelled none");
  }

  @Test
  void used_session_id_is_refused() {
    key(KeyShare.State.ACTIVE);
    ByteString bytes = signing(1).build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    awaitEnded("bls_sign completed none");
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
