package io.coterie.coordinator.session;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.TestEcdsa;
import io.coterie.coordinator.TestEvidence;
import io.coterie.coordinator.TestKeys;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.coordinator.verification.BlstVerifier;
import io.coterie.coordinator.verification.EcdsaVerifier;
import io.coterie.coordinator.verification.Ed25519Verifier;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.core.v1.VerifyCall;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Messages of parties and strangers to a session, and its outcome. */
class SessionsTest {
  private static final String KEY = "keys/test";
  private static final Duration SHORT = Duration.ofMillis(50);
  private static final Duration LONG = Duration.ofSeconds(5);
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final Member coordinator = member("coordinator", 0);
  private final Member p1 = member("p1", 1);
  private final Member p2 = member("p2", 2);
  private final Member p3 = member("p3", 3);
  private final Member outsider = member("p4", 4);
  private final TestKeys.Key key = TestKeys.deal(2, List.of(1, 2, 3), 1);
  private final List<PartyMessage> sent = new CopyOnWriteArrayList<>();
  private final List<String> kept = new CopyOnWriteArrayList<>();
  private final List<String> stated = new CopyOnWriteArrayList<>();
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private Function<byte[], Step> core =
      envelope ->
          Step.newBuilder().setRound(1).setWaiting(Waiting.newBuilder().addMissing(1)).build();
  private boolean closed;

  /** The sessions that the core was told to observe. */
  private final List<SessionConfig> observed = new ArrayList<>();

  /** Whether the core says of signatures that they are. */
  private BooleanSupplier coreAgrees = () -> true;

  private final Sessions sessions =
      new Sessions(
          new MpcCore() {
            @Override
            public Verdict judge(SessionConfig config, Accusation accusation) {
              if (accusation.getEvidenceList().contains(proof(accusation.getAccused()))) {
                return switch (accusation.getCause()) {
                  case ABORT_CAUSE_PARTY_RESTARTED -> Verdict.VERDICT_RESTARTED;
                  case ABORT_CAUSE_INTERNAL -> Verdict.VERDICT_TOLD;
                  default -> Verdict.VERDICT_PROVEN;
                };
              }
              return accusation.getEvidenceList().contains(proof(3))
                  ? Verdict.VERDICT_ANOTHER
                  : Verdict.VERDICT_REFUTED;
            }

            @Override
            public Vault openVault(byte[] dataKey) {
              throw new UnsupportedOperationException();
            }

            @Override
            public boolean verify(VerifyCall call) {
              return coreAgrees.getAsBoolean();
            }

            @Override
            public MpcSession observe(SessionConfig config) {
              observed.add(config);
              return new MpcSession() {
                @Override
                public Step firstStep() {
                  return Step.newBuilder()
                      .setRound(1)
                      .setWaiting(Waiting.newBuilder().addMissing(1).addMissing(2))
                      .build();
                }

                @Override
                public Step handle(int sender, byte[] envelope) {
                  return core.apply(envelope);
                }

                @Override
                public void close() {
                  closed = true;
                }
              };
            }
          },
          (session, accusation, reporter, verdict) ->
              kept.add(reporter + " " + accusation.getAccused() + " " + verdict),
          (party, count) -> stated.add(party.name() + " " + count.getCount()),
          (party, answer) -> stated.add(party.name() + " " + answer.getKey()),
          (party, answer) -> stated.add(party.name() + " cancel"),
          Map.of(
              Scheme.SCHEME_BLS12381,
              new BlstVerifier(),
              Scheme.SCHEME_ECDSA_SECP256K1,
              new EcdsaVerifier(),
              Scheme.SCHEME_ED25519_EXACT,
              new Ed25519Verifier()),
          new PartyHealth(System::nanoTime),
          Runnable::run,
          new ProtocolMetrics(registry, "coordinator", "local"),
          new CoordinatorMetrics(registry),
          new SecureRandom());

  private static Member member(String name, int partyId) {
    return new Member(
        name,
        partyId == 0 ? Member.Role.COORDINATOR : Member.Role.PARTY,
        partyId,
        "local",
        new UUID(1, partyId),
        1,
        new byte[33],
        partyId == 0 ? new byte[0] : TestEvidence.publicKey(partyId));
  }

  private ObservedSession start(SessionPlan.Work work, Member... parties) {
    return start(work, Scheme.SCHEME_BLS12381, SignedIntent.getDefaultInstance(), parties);
  }

  private ObservedSession start(
      SessionPlan.Work work, Scheme scheme, @Nullable SignedIntent intent, Member... parties) {
    return sessions.start(
        new SecureChannel() {
          @Override
          public Member self() {
            return coordinator;
          }

          @Override
          public Roster roster() {
            return new Roster("test", 1, List.of(coordinator, p1, p2, p3));
          }

          @Override
          public void onMessage(Consumer<InboundMessage> receiver) {}

          @Override
          public void start() {}

          @Override
          public CompletionStage<Void> established(Collection<Member> members) {
            return CompletableFuture.completedFuture(null);
          }

          @Override
          public Set<Member> reachable() {
            return Set.of(p1, p2, p3);
          }

          @Override
          public CompletionStage<Void> broadcast(
              Collection<Member> recipients, byte[] body, SendOptions options) {
            try {
              sent.add(PartyMessage.parseFrom(body));
            } catch (com.google.protobuf.InvalidProtocolBufferException e) {
              throw new AssertionError(e);
            }
            return CompletableFuture.completedFuture(null);
          }

          @Override
          public CompletionStage<Void> send(Member recipient, byte[] body, SendOptions options) {
            throw new UnsupportedOperationException();
          }

          @Override
          public void close() {}
        },
        new SessionPlan(
            work,
            scheme,
            KEY,
            1,
            2,
            intent,
            List.of(parties),
            Instant.ofEpochSecond(2_000_000_000),
            TraceContext.create(new Random(1))));
  }

  private static void endsAborted(ObservedSession session, Consumer<SessionOutcome.Aborted> how)
      throws InterruptedException {
    assertThat(session.await(LONG)).isInstanceOfSatisfying(SessionOutcome.Aborted.class, how);
  }

  private ObservedSession signing() {
    return start(
        new SessionPlan.Work.Sign(
            new ToSign(
                ByteString.copyFromUtf8("message"), key.keyPublic().getPublicKey(), KeyTarget.SELF),
            key.keyPublic(),
            null,
            List.of()),
        p1,
        p2);
  }

  private ObservedSession keygen() {
    return start(new SessionPlan.Work.Keygen(), p1, p2, p3);
  }

  private void say(Member sender, PartyMessage message) {
    sessions.receive(
        new InboundMessage(sender, signed(sender, message).toByteArray(), true, 0, null));
  }

  /** With the evidence that honest parties give for what it reports. */
  private static PartyMessage signed(Member sender, PartyMessage message) {
    Completed completed = message.getReport().getCompleted();
    if (!completed.hasKeyPublic() || !completed.getEvidenceSignature().isEmpty()) {
      return message;
    }
    ByteString session = message.getReport().getSessionId();
    KeyPublic keyPublic = completed.getKeyPublic();
    List<Integer> holders =
        keyPublic.getVerificationSharesList().stream().map(VerificationShare::getParty).toList();
    SignedIntent intent = SignedIntent.getDefaultInstance();
    int party = sender.partyId();
    return PartyMessage.newBuilder()
        .setReport(
            completed.getActive()
                ? TestEvidence.used(party, session, keyPublic, intent, holders)
                : TestEvidence.completed(party, session, keyPublic, intent))
        .build();
  }

  /** The key is made, and all holders have signed so; these use their shares. */
  private static void created(SessionOutcome outcome, KeyPublic keyPublic, Integer... users) {
    assertThat(outcome)
        .isInstanceOfSatisfying(
            SessionOutcome.Created.class,
            made -> {
              assertThat(made.keyPublic()).isEqualTo(keyPublic);
              assertThat(made.completion())
                  .isEqualTo(
                      TestEvidence.completion(
                          made.completion().getSessionId(),
                          keyPublic,
                          SignedIntent.getDefaultInstance(),
                          List.of(1, 2, 3),
                          Set.of(users)));
            });
  }

  @Test
  void parties_state_their_ledgers_and_coordinators_have_none() {
    PartyMessage count =
        PartyMessage.newBuilder().setClaimCount(ClaimCount.newBuilder().setCount(7)).build();
    say(p1, count);
    say(coordinator, count);
    say(p1, PartyMessage.newBuilder().setClaimMemory(ClaimMemory.getDefaultInstance()).build());
    assertThat(stated).containsExactly("p1 7");
    assertThat(
            registry.get(CoordinatorMetrics.DROPPED).tag("cause", "unexpected").counter().count())
        .isEqualTo(2);
  }

  /** One message of a party may bring many envelopes at once. */
  @Test
  void a_party_that_floods_a_session_takes_no_room_of_the_others() {
    ObservedSession session = signing();
    List<String> handled = new ArrayList<>();
    core =
        envelope -> {
          handled.add(new String(envelope, StandardCharsets.UTF_8));
          if (handled.size() == 1) {
            for (int i = 0; i < 64; i++) {
              say(p2, envelope(session));
            }
            say(p1, envelope(session, "of another"));
          }
          return Step.newBuilder()
              .setRound(1)
              .setWaiting(Waiting.newBuilder().addMissing(1).addMissing(2))
              .build();
        };
    say(p2, envelope(session));
    assertThat(handled).containsExactly("e", "e", "e", "e", "e", "of another");
    assertThat(registry.get(CoordinatorMetrics.DROPPED).tag("cause", "lane_full").counter().count())
        .isEqualTo(60);
  }

  private static PartyMessage envelope(ObservedSession session) {
    return envelope(session, "e");
  }

  private static PartyMessage envelope(ObservedSession session, String content) {
    return PartyMessage.newBuilder()
        .setEnvelope(
            SessionEnvelope.newBuilder()
                .setSessionId(session.id().bytes())
                .setEnvelope(ByteString.copyFromUtf8(content)))
        .build();
  }

  private static PartyMessage report(ByteString session, Consumer<SessionReport.Builder> what) {
    SessionReport.Builder report = SessionReport.newBuilder().setSessionId(session);
    what.accept(report);
    return PartyMessage.newBuilder().setReport(report).build();
  }

  private static PartyMessage refused(ObservedSession session, RefusalReason reason) {
    return report(session.id().bytes(), r -> r.setRefused(Refused.newBuilder().setReason(reason)));
  }

  /** Evidence that convicts that party, as the core of this test judges. */
  private static ByteString proof(int party) {
    return ByteString.copyFromUtf8("proof against " + party);
  }

  /** A report that shows what it says. */
  private static PartyMessage proven(ObservedSession session, int culprit) {
    PartyMessage.Builder report = aborted(session, culprit).toBuilder();
    report.getReportBuilder().getAbortedBuilder().addEvidence(proof(culprit));
    return report.build();
  }

  private static PartyMessage aborted(ObservedSession session, Integer... culprits) {
    return report(
        session.id().bytes(),
        r ->
            r.setAborted(
                Abort.newBuilder()
                    .setRound(3)
                    .setCause(AbortCause.ABORT_CAUSE_WRONG_SHARE)
                    .addAllCulprits(Arrays.asList(culprits))));
  }

  private static PartyMessage completed(ByteString session, KeyPublic keyPublic) {
    return report(session, r -> r.setCompleted(Completed.newBuilder().setKeyPublic(keyPublic)));
  }

  @Test
  void the_session_id_is_the_hash_of_the_order_and_no_two_are_equal() throws Exception {
    ObservedSession one = signing();
    ObservedSession two = signing();
    assertThat(one.id()).isNotEqualTo(two.id());
    Order order = Order.parseFrom(sent.getFirst().getOrder());
    assertThat(SessionId.ofOrder(sent.getFirst().getOrder())).isEqualTo(one.id());
    assertThat(order.getCoordinatorNonce().size()).isEqualTo(32);
    assertThat(order.getSigningSetList()).containsExactly(1, 2);
  }

  @Test
  void what_is_not_a_partys_message_of_the_session_changes_nothing() throws Exception {
    core =
        envelope ->
            Step.newBuilder().setDone(Done.newBuilder().setSignature(key.sign("message"))).build();
    ObservedSession session = signing();
    Member impostor =
        new Member(
            "p1", Member.Role.PARTY, 1, "local", new UUID(9, 9), 1, new byte[33], new byte[32]);
    for (Member stranger : List.of(outsider, coordinator, p3, impostor)) {
      say(stranger, envelope(session));
      say(stranger, refused(session, RefusalReason.REFUSAL_REASON_FORBIDDEN));
    }
    Random random = new Random(1);
    for (int i = 0; i < 2000; i++) {
      byte[] bytes = new byte[random.nextInt(80)];
      random.nextBytes(bytes);
      sessions.receive(new InboundMessage(p1, bytes, true, 0, null));
    }
    byte[] good = envelope(session).toByteArray();
    for (int i = 0; i < good.length - 1; i++) {
      sessions.receive(new InboundMessage(p1, Arrays.copyOf(good, i), true, 0, null));
    }
    sessions.receive(new InboundMessage(p1, new byte[Sessions.MAX_MESSAGE + 1], true, 0, null));
    say(p1, PartyMessage.newBuilder().setOrder(ByteString.copyFromUtf8("x")).build());
    say(p1, report(session.id().bytes(), r -> {}));
    assertThat(session.hasEnded()).isFalse();
    assertThat(registry.get(CoordinatorMetrics.DROPPED).tag("cause", "malformed").counter().count())
        .isGreaterThan(100);

    say(p1, envelope(session));
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Signed.class);
    assertThat(closed).isTrue();
    say(p1, envelope(session));
    say(p2, refused(session, RefusalReason.REFUSAL_REASON_FORBIDDEN));
  }

  /** TEST 2 of RFC 8032. The parties talk with each other alone: nothing is observed. */
  @Test
  void a_pair_tells_its_signature_and_a_wrong_one_is_dropped() throws Exception {
    ByteString signature =
        ByteString.fromHex(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
    ObservedSession session = signingByPair();
    assertThat(observed).isEmpty();
    say(p1, told(session, ByteString.copyFrom(new byte[64])));
    say(p3, told(session, signature));
    assertThat(session.hasEnded()).isFalse();
    say(p2, told(session, signature));
    assertThat(session.await(LONG))
        .isInstanceOfSatisfying(
            SessionOutcome.Signed.class,
            signed -> assertThat(signed.signature().bytes()).isEqualTo(signature));
    sessions.health().pairFailed(Set.of(1, 2));
    say(p2, told(signingByPair(), signature));
    assertThat(sessions.health().isSuspectPair(Set.of(1, 2))).as("it is forgotten").isFalse();
  }

  private ObservedSession signingByPair() {
    ByteString publicKey =
        ByteString.fromHex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    return start(
        new SessionPlan.Work.Sign(
            new ToSign(ByteString.copyFromUtf8("r"), publicKey, KeyTarget.SELF),
            KeyPublic.newBuilder().setPublicKey(publicKey).build(),
            null,
            List.of()),
        Scheme.SCHEME_ED25519_EXACT,
        SignedIntent.getDefaultInstance(),
        p1,
        p2);
  }

  private ObservedSession preparingByPair() {
    return start(
        new SessionPlan.Work.Presign(KeyTarget.SELF, 1, 1),
        Scheme.SCHEME_ED25519_EXACT,
        null,
        p1,
        p2);
  }

  /** A pair talks alone: only its two know which of them was silent or wrong. */
  @Test
  void what_comes_of_a_pair_is_held_against_the_pair_and_neither_party() throws Exception {
    assertThat(signingByPair().await(SHORT))
        .isEqualTo(new SessionOutcome.TimedOut(1, Set.of(1, 2)));
    assertOnlyPairIsSuspect();
    ObservedSession session = signingByPair();
    say(p1, aborted(session, 2));
    endsAborted(session, a -> assertThat(a.suspects()).containsExactlyInAnyOrder(1, 2));
    assertOnlyPairIsSuspect();
    session = preparingByPair();
    say(p2, aborted(session, 1));
    endsAborted(session, a -> assertThat(a.suspects()).containsExactlyInAnyOrder(1, 2));
    assertOnlyPairIsSuspect();
    session = signingByPair();
    say(p1, refused(session, RefusalReason.REFUSAL_REASON_OVERLOADED));
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Refused.class);
    assertOnlyPairIsSuspect();
    // An error that a party reports of itself is held against it alone.
    session = signingByPair();
    say(p1, collided(session, AbortCause.ABORT_CAUSE_INTERNAL));
    endsAborted(session, a -> assertThat(a.suspects()).containsExactly(1));
    assertThat(sessions.health().isSuspectPair(Set.of(1, 2))).isFalse();
    assertThat(sessions.health().isSuspect(1)).isTrue();
    assertThat(sessions.health().isSuspect(2)).isFalse();
  }

  private void assertOnlyPairIsSuspect() {
    assertThat(sessions.health().isSuspectPair(Set.of(1, 2))).isTrue();
    assertThat(sessions.health().isSuspect(1)).isFalse();
    assertThat(sessions.health().isSuspect(2)).isFalse();
    sessions.health().pairSucceeded(Set.of(1, 2));
  }

  private static PartyMessage collided(ObservedSession session, AbortCause cause) {
    return report(
        session.id().bytes(), r -> r.setAborted(Abort.newBuilder().setRound(3).setCause(cause)));
  }

  /** The pair is asked later for a while, since a party may say so of every session. */
  @Test
  void a_pair_whose_sessions_end_each_other_names_nobody() throws Exception {
    ObservedSession session = preparingByPair();
    say(p1, collided(session, AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH));
    endsAborted(session, a -> assertThat(a.blamed()).isEmpty());
    assertThat(sessions.health().isSuspectPair(Set.of(1, 2))).as("nobody waits for it").isFalse();
    assertThat(sessions.health().isSuspect(1)).isFalse();
    session = signingByPair();
    say(p1, collided(session, AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH));
    endsAborted(session, a -> assertThat(a.blamed()).isEmpty());
    assertOnlyPairIsSuspect();
  }

  private static PartyMessage told(ObservedSession session, ByteString signature) {
    return PartyMessage.newBuilder()
        .setReport(
            SessionReport.newBuilder()
                .setSessionId(session.id().bytes())
                .setCompleted(Completed.newBuilder().setSignature(signature)))
        .build();
  }

  @Test
  void a_signature_that_does_not_verify_is_no_result() throws Exception {
    core =
        envelope ->
            Step.newBuilder().setDone(Done.newBuilder().setSignature(key.sign("massage"))).build();
    ObservedSession session = signing();
    say(p1, envelope(session));
    endsAborted(
        session,
        a -> {
          assertThat(a.cause()).isEqualTo(AbortCause.ABORT_CAUSE_INTERNAL);
          assertThat(a.culprits()).isEmpty();
        });
  }

  @Test
  void what_was_combined_unseen_is_looked_at_if_it_is_no_signature() throws Exception {
    List<String> handled = new ArrayList<>();
    core =
        envelope -> {
          boolean unseen = observed.getLast().getUnverified();
          handled.add((unseen ? "unseen " : "seen ") + new String(envelope, UTF_8));
          if (handled.size() % 2 == 1) {
            return Step.newBuilder()
                .setRound(1)
                .setWaiting(Waiting.newBuilder().addMissing(2))
                .build();
          }
          return unseen
              ? done("massage")
              : Step.newBuilder()
                  .setAbort(
                      Abort.newBuilder()
                          .setRound(1)
                          .setCause(AbortCause.ABORT_CAUSE_NOT_ENOUGH_PARTIALS)
                          .setAdvice(Advice.ADVICE_EXCLUDE_PARTY)
                          .addCulprits(2))
                  .build();
        };
    ObservedSession session = signing();
    say(p1, envelope(session, "one"));
    say(p2, envelope(session, "two"));
    endsAborted(
        session,
        a -> {
          assertThat(a.cause()).isEqualTo(AbortCause.ABORT_CAUSE_NOT_ENOUGH_PARTIALS);
          assertThat(a.culprits()).containsExactly(2);
          assertThat(a.exclude()).isTrue();
        });
    assertThat(handled).containsExactly("unseen one", "unseen two", "seen one", "seen two");
    assertThat(observed).hasSize(2);
    assertThat(observed.getLast())
        .isEqualTo(observed.getFirst().toBuilder().setUnverified(false).build());
  }

  @Test
  void a_signature_that_the_core_takes_for_none_is_no_result() throws Exception {
    coreAgrees = () -> false;
    core = _ -> done("message");
    ObservedSession session = signing();
    say(p1, envelope(session));
    endsAborted(session, a -> assertThat(a.cause()).isEqualTo(AbortCause.ABORT_CAUSE_INTERNAL));
  }

  /** Contributions that are right convict nobody, whatever becomes of their first check. */
  @Test
  void a_check_that_fails_once_costs_no_party_anything() throws Exception {
    Iterator<Boolean> agrees = List.of(false, true).iterator();
    coreAgrees = agrees::next;
    core = _ -> done("message");
    ObservedSession session = signing();
    say(p1, envelope(session));
    assertThat(session.await(LONG))
        .isEqualTo(
            new SessionOutcome.Signed(
                new Signature(key.sign("message"), OptionalInt.empty()), Set.of()));
    assertThat(agrees.hasNext()).isFalse();
  }

  private Step done(String signed) {
    return Step.newBuilder().setDone(Done.newBuilder().setSignature(key.sign(signed))).build();
  }

  @Test
  void a_core_that_fails_or_says_nothing_ends_the_session() throws Exception {
    core =
        envelope -> {
          throw new MpcException(MpcException.Reason.POISONED, "as told");
        };
    ObservedSession session = signing();
    say(p1, envelope(session));
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Aborted.class);
    core = envelope -> Step.getDefaultInstance();
    session = signing();
    say(p1, envelope(session));
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Aborted.class);
  }

  @Test
  void silence_names_the_silent_and_tells_all_to_stop() throws Exception {
    ObservedSession session = signing();
    assertThat(session.await(SHORT)).isEqualTo(new SessionOutcome.TimedOut(1, Set.of(1, 2)));
    assertThat(sent.getLast().getCancel().getSessionId()).isEqualTo(session.id().bytes());
    assertThat(sessions.health().isSuspect(1)).isTrue();
  }

  @Test
  void stopping_ends_every_session_now_and_later() throws Exception {
    ObservedSession before = signing();
    sessions.stop();
    assertThat(before.await(LONG)).isEqualTo(new SessionOutcome.Stopped());
    assertThat(signing().await(LONG)).isEqualTo(new SessionOutcome.Stopped());
  }

  @Test
  void a_key_needs_equal_reports_of_all_parties() throws Exception {
    ObservedSession session = keygen();
    ByteString id = session.id().bytes();
    say(p1, completed(id, key.keyPublic()));
    say(p2, completed(id, key.keyPublic()));
    say(p2, completed(id, key.keyPublic()));
    assertThat(session.hasEnded()).isFalse();
    say(p3, completed(id, key.keyPublic()));
    say(p1, used(id, key.keyPublic()));
    say(p2, used(id, key.keyPublic()));
    assertThat(session.hasEnded()).as("p3 may give its share up for another").isFalse();
    say(p3, used(id, key.keyPublic()));
    created(session.await(LONG), key.keyPublic(), 1, 2, 3);
  }

  /** Clients believe keys by these signatures: a report without them is none. */
  @Test
  void a_report_counts_only_with_the_signature_of_its_sender() throws Exception {
    ObservedSession session = keygen();
    ByteString id = session.id().bytes();
    ByteString other = ByteString.copyFrom(new byte[32]);
    SignedIntent intent = SignedIntent.getDefaultInstance();
    SignedIntent otherIntent =
        intent.toBuilder().setPayload(ByteString.copyFromUtf8("other")).build();
    KeyPublic good = key.keyPublic();
    KeyPublic otherKey = good.toBuilder().setChainCode(other).build();
    say(p1, completed(id, good));
    say(p2, completed(id, good));
    SessionReport honest = TestEvidence.completed(3, id, good, intent).build();
    List<ByteString> wrong =
        List.of(
            honest.getCompleted().getEvidenceSignature().substring(1),
            TestEvidence.stored(2, id, good, intent),
            TestEvidence.stored(3, other, good, intent),
            TestEvidence.stored(3, id, otherKey, intent),
            TestEvidence.stored(3, id, good, otherIntent));
    int count = 0;
    for (ByteString signature : wrong) {
      SessionReport.Builder report = honest.toBuilder();
      report.getCompletedBuilder().setEvidenceSignature(signature);
      say(p3, PartyMessage.newBuilder().setReport(report).build());
      assertThat(dropped("bad_evidence")).isEqualTo(++count);
    }
    say(
        p3,
        PartyMessage.newBuilder()
            .setReport(TestEvidence.completed(3, id, good, otherIntent))
            .build());
    assertThat(dropped("bad_evidence")).isEqualTo(++count);
    // It says that it uses the key, and shows no, or not enough, signatures of the others.
    for (List<Integer> shown : List.of(List.<Integer>of(), List.of(1, 3), List.of(1, 2))) {
      SessionReport.Builder report = TestEvidence.used(3, id, good, intent, shown);
      if (shown.contains(2)) {
        report.getCompletedBuilder().getCertificateBuilder(0).setParty(3);
      }
      say(p3, PartyMessage.newBuilder().setReport(report).build());
      assertThat(dropped("bad_evidence")).isEqualTo(++count);
    }
    say(p3, PartyMessage.newBuilder().setReport(honest).build());
    assertThat(session.hasEnded()).isFalse();
    for (Member party : List.of(p1, p2, p3)) {
      say(party, used(id, good));
    }
    created(session.await(LONG), good, 1, 2, 3);
  }

  private int dropped(String cause) {
    return (int) registry.get(CoordinatorMetrics.DROPPED).tag("cause", cause).counter().count();
  }

  @Test
  void reports_of_keys_that_do_not_fit_the_order_are_ignored() throws Exception {
    ObservedSession session = keygen();
    ByteString id = session.id().bytes();
    say(p1, completed(id, key.keyPublic()));
    say(p2, completed(id, key.keyPublic()));
    for (KeyPublic other :
        List.of(
            key.keyPublic().toBuilder().setKeyId("keys/other").build(),
            key.keyPublic().toBuilder().setThreshold(1).build(),
            key.keyPublic().toBuilder().setEpoch(2).build(),
            key.keyPublic().toBuilder().removeVerificationShares(0).build())) {
      say(p3, completed(id, other));
    }
    assertThat(session.await(SHORT)).isEqualTo(new SessionOutcome.TimedOut(0, Set.of(3)));
  }

  @Test
  void all_parties_agreeing_on_a_key_that_is_not_sound_make_no_key() throws Exception {
    ObservedSession session = keygen();
    KeyPublic unsound = key.keyPublic().toBuilder().clearProofOfPossession().build();
    for (Member m : List.of(p1, p2, p3)) {
      say(m, used(session.id().bytes(), unsound));
    }
    endsAborted(session, a -> assertThat(a.hopeless()).isTrue());
  }

  @Test
  void parties_that_hold_the_key_of_an_earlier_session_answer_for_it() throws Exception {
    ByteString earlier = ByteString.copyFrom(new byte[32]);
    ObservedSession session = keygen();
    for (Member m : List.of(p1, p2, p3)) {
      say(m, used(earlier, key.keyPublic()));
    }
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Created.class);
  }

  @Test
  void a_party_that_missed_the_earlier_session_makes_the_request_hopeless() throws Exception {
    ByteString earlier = ByteString.copyFrom(new byte[32]);
    ObservedSession session = keygen();
    say(p1, completed(earlier, key.keyPublic()));
    say(p2, completed(earlier, key.keyPublic()));
    say(
        p3,
        report(
            session.id().bytes(),
            r -> r.setTimedOut(TimedOut.newBuilder().setRound(1).addMissing(1).addMissing(2))));
    endsAborted(
        session,
        a -> {
          assertThat(a.hopeless()).isTrue();
          assertThat(a.culprits()).isEmpty();
        });
  }

  @Test
  void evidence_makes_a_culprit_and_no_number_of_accusers_does() throws Exception {
    ObservedSession session = keygen();
    say(p1, aborted(session, 3));
    say(p1, aborted(session, 3));
    say(p2, aborted(session, 3));
    say(p3, aborted(session, 77));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).isEmpty();
          assertThat(a.suspects()).containsExactlyInAnyOrder(1, 2, 3);
          assertThat(a.round()).isEqualTo(3);
        });

    session = keygen();
    say(p1, proven(session, 3));
    say(p2, aborted(session));
    say(p3, aborted(session, 1));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).containsExactly(3);
          assertThat(a.suspects()).as("the word of a culprit").isEmpty();
        });
    assertThat(kept).as("words are no evidence").containsExactly("1 3 VERDICT_PROVEN");

    session = keygen();
    PartyMessage.Builder unproven = aborted(session, 2).toBuilder();
    unproven.getReportBuilder().getAbortedBuilder().addEvidence(proof(1));
    say(p1, unproven.build());
    say(p1, aborted(session));
    say(p1, proven(session, 3));
    say(p2, aborted(session));
    say(p3, aborted(session));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).as("a third report is not heard").isEmpty();
          assertThat(a.suspects()).containsExactlyInAnyOrder(1, 2);
        });
    assertThat(kept).endsWith("1 2 VERDICT_REFUTED").hasSize(2);

    session = keygen();
    say(p1, aborted(session));
    say(p1, proven(session, 3));
    say(p2, aborted(session));
    say(p3, aborted(session));
    endsAborted(session, a -> assertThat(a.culprits()).containsExactly(3));
  }

  @Test
  void evidence_is_kept_once_for_each_culprit_even_after_the_session() throws Exception {
    ObservedSession session = keygen();
    say(p1, aborted(session));
    say(p2, aborted(session));
    say(p3, aborted(session));
    SessionOutcome end = session.await(LONG);
    assertThat(kept).isEmpty();
    say(p1, proven(session, 3));
    say(p2, proven(session, 3));
    assertThat(kept).containsExactly("1 3 VERDICT_PROVEN");
    say(p2, proven(session, 1));
    assertThat(kept).as("a third report is not heard").hasSize(1);
    say(p3, proven(session, 1));
    assertThat(kept).containsExactly("1 3 VERDICT_PROVEN", "3 1 VERDICT_PROVEN");
    say(outsider, proven(session, 2));
    assertThat(kept).hasSize(2);
    assertThat(session.await(LONG)).as("the end stays").isEqualTo(end);
  }

  @Test
  void a_flood_of_reports_after_the_end_of_a_session_is_not_kept() throws Exception {
    ObservedSession session = keygen();
    for (Member m : List.of(p1, p2, p3)) {
      say(m, aborted(session));
    }
    session.await(LONG);
    PartyMessage.Builder unproven = aborted(session, 2).toBuilder();
    unproven.getReportBuilder().getAbortedBuilder().addEvidence(proof(1));
    for (int i = 0; i < 100; i++) {
      say(p1, unproven.build());
      say(p3, told(session, 2, 2));
    }
    say(p2, proven(session, 3));
    assertThat(kept).containsExactly("2 3 VERDICT_PROVEN");
  }

  @Test
  void evidence_convicts_who_signed_it_and_not_who_is_named_with_it() throws Exception {
    ObservedSession session = keygen();
    PartyMessage.Builder framing = aborted(session, 2).toBuilder();
    framing.getReportBuilder().getAbortedBuilder().addEvidence(proof(3));
    say(p1, framing.build());
    say(p2, aborted(session));
    say(p3, aborted(session));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).containsExactly(3);
          assertThat(a.suspects()).isEmpty();
        });
    assertThat(kept).containsExactly("1 3 VERDICT_PROVEN");
  }

  /** A report that the session ended by the word of a party. */
  private static PartyMessage told(ObservedSession session, int by, Integer... suspects) {
    PartyMessage.Builder report = aborted(session).toBuilder();
    report
        .getReportBuilder()
        .getAbortedBuilder()
        .setCause(AbortCause.ABORT_CAUSE_INTERNAL)
        .setReporter(by)
        .addAllSuspects(Arrays.asList(suspects))
        .addEvidence(proof(by));
    return report.build();
  }

  @Test
  void a_word_makes_a_suspect_of_who_said_it_and_not_of_who_passes_it_on() throws Exception {
    ObservedSession session = keygen();
    say(p1, told(session, 3, 3));
    say(p2, told(session, 3, 3));
    say(p3, aborted(session));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).isEmpty();
          assertThat(a.suspects()).containsExactly(3);
        });

    session = keygen();
    say(p1, told(session, 3, 2, 3));
    say(p2, aborted(session));
    say(p3, aborted(session));
    endsAborted(
        session,
        a -> assertThat(a.suspects()).as("it points at one").containsExactlyInAnyOrder(1, 2, 3));
  }

  /** A report that shows, or only says, that a party ran the session twice. */
  private static PartyMessage restarted(ObservedSession session, int party, boolean shown) {
    PartyMessage.Builder report = aborted(session).toBuilder();
    Abort.Builder abort = report.getReportBuilder().getAbortedBuilder();
    abort.setCause(AbortCause.ABORT_CAUSE_PARTY_RESTARTED).addSuspects(party);
    if (shown) {
      abort.addEvidence(proof(party));
    }
    return report.build();
  }

  @Test
  void a_restart_is_counted_once_a_session_and_only_if_it_is_shown() throws Exception {
    for (int i = 1; i <= PartyHealth.MAX_RESTARTS; i++) {
      ObservedSession session = keygen();
      say(p1, restarted(session, 3, true));
      say(p2, restarted(session, 3, true));
      say(p3, restarted(session, 1, false));
      endsAborted(
          session,
          a -> {
            assertThat(a.cause()).isEqualTo(AbortCause.ABORT_CAUSE_PARTY_RESTARTED);
            assertThat(a.culprits()).isEmpty();
            assertThat(a.suspects()).containsExactlyInAnyOrder(1, 3);
          });
      sessions.health().heard(1);
      sessions.health().heard(3);
      assertThat(sessions.health().isSuspect(3)).isEqualTo(i == PartyHealth.MAX_RESTARTS);
      assertThat(sessions.health().isSuspect(1)).isFalse();
    }
  }

  private ObservedSession presign() {
    return presign(1);
  }

  private ObservedSession presign(int count) {
    return start(
        new SessionPlan.Work.Presign(KeyTarget.at(List.of(7)), count, 0),
        Scheme.SCHEME_ECDSA_SECP256K1,
        null,
        p1,
        p2);
  }

  private static PartyMessage presigned(ObservedSession session, ByteString... ids) {
    return presigned(session.id().bytes(), ids);
  }

  private static PartyMessage presigned(ByteString session, ByteString... ids) {
    return report(
        session, r -> r.setCompleted(Completed.newBuilder().addAllPresignatureIds(List.of(ids))));
  }

  @Test
  void a_presignature_is_one_when_all_its_parties_name_the_same() throws Exception {
    ByteString id = ByteString.copyFrom(new byte[32]);
    ObservedSession session = presign();
    Order order = Order.parseFrom(sent.getLast().getOrder());
    assertThat(order.hasSignedIntent()).isFalse();
    assertThat(order.getDerivationPathList()).containsExactly(7);
    say(p1, presigned(session, id));
    say(p1, presigned(session, id));
    // Not a party of it, not of this session, not an id.
    say(p3, presigned(session, id));
    say(p2, presigned(id, id));
    say(p2, presigned(session));
    say(p2, presigned(session, ByteString.EMPTY));
    say(p2, presigned(session, id.concat(id)));
    say(p2, presigned(session, id, id));
    say(p2, envelope(session));
    assertThat(session.hasEnded()).isFalse();
    say(p2, presigned(session, id));
    assertThat(session.await(LONG)).isEqualTo(new SessionOutcome.Presigned(List.of(id)));
    assertThat(sent).noneMatch(PartyMessage::hasCancel);

    session = presign();
    say(p1, presigned(session, id));
    say(p2, presigned(session, id.substring(1).concat(ByteString.copyFromUtf8("x"))));
    endsAborted(
        session,
        a -> {
          assertThat(a.cause()).isEqualTo(AbortCause.ABORT_CAUSE_BROADCAST_MISMATCH);
          assertThat(a.culprits()).isEmpty();
        });
    assertThat(sent).anyMatch(PartyMessage::hasCancel);
  }

  @Test
  void an_order_that_has_a_pair_prepare_says_the_blocks_of_the_message() throws Exception {
    start(
        new SessionPlan.Work.Presign(KeyTarget.SELF, 1, 3),
        Scheme.SCHEME_ED25519_EXACT,
        null,
        p1,
        p2);
    Order order = Order.parseFrom(sent.getLast().getOrder());
    assertThat(order.getProtocol()).isEqualTo(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE);
    assertThat(order.getMessageBlocks()).isEqualTo(3);
  }

  @Test
  void presignatures_of_a_session_are_the_same_in_the_same_order() throws Exception {
    ByteString one = ByteString.copyFrom(new byte[32]);
    ByteString two = one.substring(1).concat(ByteString.copyFromUtf8("x"));
    ObservedSession session = presign(2);
    assertThat(Order.parseFrom(sent.getLast().getOrder()).getPresignatureCount()).isEqualTo(2);
    say(p1, presigned(session, one, two));
    // Too few, too many, one twice.
    say(p2, presigned(session, one));
    say(p2, presigned(session, one, two, two));
    say(p2, presigned(session, one, one));
    assertThat(session.hasEnded()).isFalse();
    say(p2, presigned(session, one, two));
    assertThat(session.await(LONG)).isEqualTo(new SessionOutcome.Presigned(List.of(one, two)));

    session = presign(2);
    say(p1, presigned(session, one, two));
    say(p2, presigned(session, two, one));
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Aborted.class);
    assertThat(sent).anyMatch(PartyMessage::hasCancel);
  }

  @Test
  void a_presignature_that_a_party_does_not_make_is_none() throws Exception {
    ByteString id = ByteString.copyFrom(new byte[32]);
    ObservedSession session = presign();
    say(p1, presigned(session, id));
    say(p2, refused(session, RefusalReason.REFUSAL_REASON_POOL_FULL));
    say(p2, presigned(session, id));
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Refused.class);

    session = presign();
    say(p1, aborted(session, 2));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).isEmpty();
          assertThat(a.suspects()).containsExactlyInAnyOrder(1, 2);
          assertThat(a.exclude()).isFalse();
        });

    session = presign();
    say(p1, presigned(session, id));
    assertThat(session.await(SHORT)).isEqualTo(new SessionOutcome.TimedOut(0, Set.of(2)));
  }

  @Test
  void one_word_against_another_makes_both_suspects() throws Exception {
    ObservedSession session = signing();
    say(p1, aborted(session, 2));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).isEmpty();
          assertThat(a.suspects()).containsExactlyInAnyOrder(1, 2);
        });
  }

  @Test
  void new_shares_are_of_the_same_key_and_the_next_epoch() throws Exception {
    TestEcdsa.Dealt old = TestEcdsa.deal(KEY, 2, List.of(1, 2, 3), 1);
    TestEcdsa.Dealt next = TestEcdsa.refresh(old, 2);
    KeyPublic good = next.keyPublic();
    ObservedSession session =
        start(
            new SessionPlan.Work.Refresh(old.keyPublic()),
            Scheme.SCHEME_ECDSA_SECP256K1,
            SignedIntent.getDefaultInstance(),
            p1,
            p2,
            p3);
    for (KeyPublic bad :
        List.of(
            KeyPublic.getDefaultInstance(),
            old.keyPublic(),
            good.toBuilder().setEpoch(3).build(),
            good.toBuilder().setThreshold(3).build(),
            good.toBuilder().setKeyId("keys/other").build(),
            good.toBuilder().setChainCode(ByteString.copyFrom(new byte[32])).build(),
            good.toBuilder().removeVerificationShares(2).build(),
            TestEcdsa.refresh(TestEcdsa.deal(KEY, 2, List.of(1, 2, 3), 9), 2).keyPublic())) {
      for (Member party : List.of(p1, p2, p3)) {
        say(party, completed(session.id().bytes(), bad));
      }
    }
    assertThat(session.hasEnded()).isFalse();
    for (Member party : List.of(p1, p2, p3)) {
      say(party, completed(session.id().bytes(), good));
    }
    say(p3, used(session.id().bytes(), good));
    assertThat(session.hasEnded()).as("one of them may lie").isFalse();
    say(p1, used(session.id().bytes(), good));
    created(session.await(LONG), good, 1, 3);
  }

  private static PartyMessage used(ByteString session, KeyPublic keyPublic) {
    return report(
        session,
        r -> r.setCompleted(Completed.newBuilder().setKeyPublic(keyPublic).setActive(true)));
  }

  private static PartyMessage timedOut(ObservedSession session) {
    return report(session.id().bytes(), r -> r.setTimedOut(TimedOut.newBuilder().setRound(1)));
  }

  @Test
  void a_renewal_whose_parties_are_not_in_the_same_session_is_undecided() throws Exception {
    ByteString earlier = ByteString.copyFrom(new byte[32]);
    TestEcdsa.Dealt old = TestEcdsa.deal(KEY, 2, List.of(1, 2, 3), 1);
    KeyPublic next = TestEcdsa.refresh(old, 2).keyPublic();
    SessionPlan.Work refresh = new SessionPlan.Work.Refresh(old.keyPublic());
    SignedIntent intent = SignedIntent.getDefaultInstance();
    ObservedSession session = start(refresh, Scheme.SCHEME_ECDSA_SECP256K1, intent, p1, p2, p3);
    say(p1, completed(earlier, next));
    say(p2, completed(earlier, next));
    sent.clear();
    // The parties that run this one are told to stop.
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (sent.isEmpty() && System.nanoTime() - end < 0) {
      LockSupport.parkNanos(Duration.ofMillis(10).toNanos());
    }
    assertThat(sent.getFirst().getCancel().getSessionId()).isEqualTo(session.id().bytes());
    assertThat(session.hasEnded()).isFalse();
    say(p3, timedOut(session));
    assertThat(session.await(LONG)).isEqualTo(new SessionOutcome.Undecided(Set.of(3)));

    // They show who it is that keeps them from it.
    session = start(refresh, Scheme.SCHEME_ECDSA_SECP256K1, intent, p1, p2, p3);
    say(p1, completed(earlier, next));
    say(p2, proven(session, 1));
    say(p3, proven(session, 1));
    endsAborted(
        session,
        a -> {
          assertThat(a.culprits()).containsExactly(1);
          assertThat(a.hopeless()).isFalse();
        });

    // All have one, and one of them does not tell the others.
    session = start(refresh, Scheme.SCHEME_ECDSA_SECP256K1, intent, p1, p2, p3);
    for (Member party : List.of(p1, p2, p3)) {
      say(party, completed(session.id().bytes(), next));
    }
    say(p1, used(session.id().bytes(), next));
    assertThat(session.await(PATIENCE)).isEqualTo(new SessionOutcome.Undecided(Set.of()));
  }

  @Test
  void an_earlier_reshare_may_have_had_more_parties_and_counts_when_its_shares_are_used()
      throws Exception {
    ByteString earlier = ByteString.copyFrom(new byte[32]);
    TestEcdsa.Dealt old = TestEcdsa.deal(KEY, 2, List.of(1, 2, 4), 1);
    KeyPublic next = TestEcdsa.reshare(old, 2, List.of(1, 2, 3), 2).keyPublic();
    SessionPlan.Work reshare =
        new SessionPlan.Work.Reshare(old.keyPublic(), List.of(1, 2), List.of(1, 2, 3));
    SignedIntent intent = SignedIntent.getDefaultInstance();
    ObservedSession session = start(reshare, Scheme.SCHEME_ECDSA_SECP256K1, intent, p1, p2, p3);
    say(p1, used(earlier, next));
    say(p2, completed(earlier, next));
    say(p3, completed(earlier, next));
    assertThat(session.hasEnded()).isFalse();
    assertThat(session.await(SHORT)).isEqualTo(new SessionOutcome.Undecided(Set.of()));

    session = start(reshare, Scheme.SCHEME_ECDSA_SECP256K1, intent, p1, p2, p3);
    say(p1, used(earlier, next));
    say(p2, used(earlier, next));
    created(session.await(LONG), next, 1, 2);
  }

  /** It may keep the share of another session of the request, and be asked about that one too. */
  @Test
  void a_party_uses_the_share_of_which_it_said_so_and_not_the_one_that_it_told_of_last()
      throws Exception {
    ByteString earlier = ByteString.copyFrom(new byte[32]);
    TestEcdsa.Dealt old = TestEcdsa.deal(KEY, 2, List.of(1, 2, 3), 1);
    KeyPublic next = TestEcdsa.refresh(old, 2).keyPublic();
    SessionPlan.Work refresh = new SessionPlan.Work.Refresh(old.keyPublic());
    SignedIntent intent = SignedIntent.getDefaultInstance();
    ObservedSession session = start(refresh, Scheme.SCHEME_ECDSA_SECP256K1, intent, p1, p2, p3);
    ByteString id = session.id().bytes();
    say(p1, used(earlier, next));
    say(p1, completed(id, next));
    say(p2, completed(id, next));
    // Nobody has heard of a share of the third party.
    assertThat(session.hasEnded()).isFalse();
    say(p2, used(earlier, next));
    SessionOutcome outcome = session.await(LONG);
    created(outcome, next, 1, 2);
    assertThat(((SessionOutcome.Created) outcome).completion().getSessionId()).isEqualTo(earlier);
  }

  /** Those who have stored it may give it up for another key of its name. */
  @Test
  void a_new_key_that_one_party_does_not_use_is_none() throws Exception {
    ByteString earlier = ByteString.copyFrom(new byte[32]);
    PartyMessage used = used(earlier, key.keyPublic());
    ObservedSession session = keygen();
    say(p1, used);
    say(p3, refused(session, RefusalReason.REFUSAL_REASON_INTENT_EXPIRED));
    say(p2, used);
    assertThat(session.await(LONG)).isInstanceOf(SessionOutcome.Refused.class);

    session = keygen();
    say(p1, used);
    say(p2, used);
    say(p3, completed(earlier, key.keyPublic()));
    assertThat(session.await(LONG)).isEqualTo(new SessionOutcome.TimedOut(0, Set.of(3)));

    // It takes its word back: it has not signed what it says now.
    session = keygen();
    say(p1, used(earlier, TestKeys.deal(2, List.of(1, 2, 3), 2).keyPublic()));
    say(p1, completed(earlier, key.keyPublic()));
    say(p2, used);
    say(p3, used);
    assertThat(session.hasEnded()).isFalse();
    say(p1, used);
    created(session.await(LONG), key.keyPublic(), 1, 2, 3);
  }

  /** Its use is proven by its own signature, and by those of all that they have stored theirs. */
  @Test
  void a_party_shows_that_it_uses_its_share() throws Exception {
    ObservedSession session = keygen();
    ByteString id = session.id().bytes();
    SignedIntent intent = SignedIntent.getDefaultInstance();
    int count = 0;
    for (ByteString wrong :
        List.of(
            ByteString.EMPTY,
            TestEvidence.stored(1, id, key.keyPublic(), intent),
            TestEvidence.use(2, id, key.keyPublic(), intent))) {
      SessionReport.Builder report =
          TestEvidence.used(1, id, key.keyPublic(), intent, List.of(1, 2, 3));
      report.getCompletedBuilder().setUseSignature(wrong);
      say(p1, PartyMessage.newBuilder().setReport(report).build());
      assertThat(dropped("bad_evidence")).isEqualTo(++count);
    }
  }
}
