package io.coterie.mpc;

import static io.coterie.mpc.NativeVaultTest.assertFails;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.SignatureClaim;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.VerifyCall;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import supranational.blst.BLST_ERROR;
import supranational.blst.P1_Affine;
import supranational.blst.P2_Affine;

class NativeSessionTest {
  private static final byte[] MESSAGE = "pay 5 to bob".getBytes(StandardCharsets.UTF_8);
  private static final byte[] NO_SHARE = {};

  private static LocalParties parties;
  private static Map<Integer, Done> shares;
  private static KeyPublic key;

  @BeforeAll
  static void keygen() {
    parties = new LocalParties(3);
    shares = parties.keygen(parties.keygen(2));
    key = shares.get(1).getKeyPublic();
  }

  @AfterAll
  static void close() {
    parties.close();
  }

  private static boolean verifies(String suite, KeyPublic key, byte[] message, ByteString sig) {
    return new P2_Affine(sig.toByteArray())
            .core_verify(new P1_Affine(key.getPublicKey().toByteArray()), true, message, suite)
        == BLST_ERROR.BLST_SUCCESS;
  }

  @Test
  void three_parties_make_one_key() {
    assertThat(shares).hasSize(3);
    assertThat(shares.values()).allSatisfy(d -> assertThat(d.getKeyPublic()).isEqualTo(key));
    assertThat(shares.values().stream().map(Done::getSealedShare).distinct()).hasSize(3);
    assertThat(key.getThreshold()).isEqualTo(2);
    assertThat(key.getVerificationSharesCount()).isEqualTo(3);
    assertThat(
            verifies(
                "BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_",
                key,
                key.getPublicKey().toByteArray(),
                key.getProofOfPossession()))
        .isTrue();
  }

  @Test
  void every_quorum_makes_the_same_signature_and_an_observer_combines_it() {
    for (List<Integer> quorum :
        List.of(List.of(1, 2), List.of(1, 3), List.of(2, 3), List.of(1, 2, 3))) {
      Map<Integer, Done> done = parties.sign(parties.sign(key, MESSAGE, quorum), shares);
      assertThat(done).hasSize(quorum.size() + 1);
      assertThat(done.values())
          .allSatisfy(
              d ->
                  assertThat(
                          verifies(
                              "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_",
                              key,
                              MESSAGE,
                              d.getSignature()))
                      .isTrue());
      assertThat(done.values().stream().map(Done::getSignature).distinct()).hasSize(1);
    }
  }

  @Test
  void signatures_of_several_sessions_are_verified_at_once() {
    List<Integer> quorum = List.of(1, 3);
    VerifyCall.Builder call = VerifyCall.newBuilder().setProtocol(ProtocolId.PROTOCOL_ID_BLS_SIGN);
    for (String message : List.of("one", "two", "three")) {
      byte[] payload = message.getBytes(StandardCharsets.UTF_8);
      ByteString signature =
          parties.sign(parties.sign(key, payload, quorum), shares).get(1).getSignature();
      call.addClaims(
          SignatureClaim.newBuilder()
              .setPublicKey(key.getPublicKey())
              .setPayload(ByteString.copyFrom(payload))
              .setSignature(signature));
    }
    assertThat(parties.core.verify(call.build())).isTrue();
    SignatureClaim first = call.getClaims(0);
    call.setClaims(2, first.toBuilder().setPayload(ByteString.copyFromUtf8("four")));
    assertThat(parties.core.verify(call.build())).isFalse();
    assertFails(
        MpcException.Reason.SETUP_REFUSED,
        () ->
            parties.core.verify(
                call.clone().setProtocol(ProtocolId.PROTOCOL_ID_ED25519_SIGN).build()));
  }

  static Stream<Arguments> badConfigurations() {
    return Stream.of(
        bad("protocol unset", c -> c.setProtocol(ProtocolId.PROTOCOL_ID_UNSPECIFIED)),
        bad("protocol unknown", c -> c.setProtocolValue(9999)),
        bad("session id missing", c -> c.clearSessionId()),
        bad("session id short", c -> c.setSessionId(ByteString.copyFrom(new byte[31]))),
        bad("not a party", c -> c.setSelf(9)),
        bad("self out of range", c -> c.setSelf(70_000)),
        bad("self is the observer", c -> c.setSelf(0)),
        bad("no parties", c -> c.clearParties()),
        bad("parties not ascending", c -> c.addParties(c.getParties(0))),
        bad("party 0", c -> c.setParties(0, c.getParties(0).toBuilder().setId(0))),
        bad("party too large", c -> c.setParties(2, c.getParties(2).toBuilder().setId(65_536))),
        bad(
            "evidence key short",
            c ->
                c.setParties(
                    1,
                    c.getParties(1).toBuilder().setEvidenceKey(ByteString.copyFrom(new byte[31])))),
        bad(
            "own evidence key is another's",
            c ->
                c.setParties(
                    0,
                    c.getParties(0).toBuilder().setEvidenceKey(c.getParties(1).getEvidenceKey()))),
        bad("threshold 0", c -> c.setThreshold(0)),
        bad("threshold above n", c -> c.setThreshold(4)),
        bad("threshold huge", c -> c.setThreshold(-1)),
        bad("no key id", c -> c.clearKeyId()),
        bad("epoch 0", c -> c.setEpoch(0)),
        bad("payload in key generation", c -> c.setPayload(ByteString.copyFrom(new byte[1]))));
  }

  private static Arguments bad(String name, UnaryOperator<SessionConfig.Builder> change) {
    return Arguments.of(name, change);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("badConfigurations")
  void refuses_bad_configuration(String name, UnaryOperator<SessionConfig.Builder> change) {
    SessionConfig config = change.apply(parties.keygen(2).toBuilder().setSelf(1)).build();
    assertRefused(config, NO_SHARE);
  }

  private static void assertRefused(SessionConfig config, byte[] share) {
    long open = parties.core.openHandles();
    assertThatThrownBy(
            () -> parties.vaults.get(1).start(config, parties.identities.get(1).sealed(), share))
        .isInstanceOfSatisfying(
            MpcException.class,
            e -> {
              assertThat(e.reason())
                  .isIn(MpcException.Reason.SETUP_REFUSED, MpcException.Reason.INVALID_ARGUMENT);
              assertThat(e).hasMessageMatching("(?s).{4,}");
            });
    assertThat(parties.core.openHandles()).isEqualTo(open);
  }

  @Test
  void refuses_share_that_is_not_of_this_session() {
    SessionConfig config = parties.sign(key, MESSAGE, List.of(1, 2)).toBuilder().setSelf(1).build();
    byte[] share = shares.get(1).getSealedShare().toByteArray();
    assertRefused(config.toBuilder().setKeyId("keys/other").build(), share);
    assertRefused(config.toBuilder().setEpoch(2).build(), share);
    assertRefused(config.toBuilder().setThreshold(1).build(), share);
    assertRefused(parties.keygen(2).toBuilder().setSelf(1).build(), share);
    Vault vault = parties.vaults.get(1);
    byte[] identity = parties.identities.get(1).sealed();
    assertRefused(config, shares.get(2).getSealedShare().toByteArray());
    assertFails(
        MpcException.Reason.UNSEAL_FAILED,
        () -> parties.vaults.get(2).start(config, identity, share));
    for (int i = 0; i < share.length; i += 7) {
      byte[] altered = share.clone();
      altered[i] ^= 1;
      byte[] cut = Arrays.copyOf(share, i);
      assertThatThrownBy(() -> vault.start(config, identity, altered))
          .isInstanceOf(MpcException.class);
      assertThatThrownBy(() -> vault.start(config, identity, cut)).isInstanceOf(MpcException.class);
    }
    assertThatThrownBy(() -> vault.start(config, identity, NO_SHARE))
        .isInstanceOf(MpcException.class);
  }

  /** Signing makes no evidence and leaves the identity alone; key generation needs it. */
  @Test
  void refuses_identity_that_is_not_of_this_vault() {
    SessionConfig config = parties.keygen(2).toBuilder().setSelf(1).build();
    Vault vault = parties.vaults.get(1);
    byte[] identity = parties.identities.get(1).sealed();
    assertFails(
        MpcException.Reason.UNSEAL_FAILED,
        () -> vault.start(config, parties.identities.get(2).sealed(), NO_SHARE));
    assertThatThrownBy(() -> vault.start(config, NO_SHARE, NO_SHARE))
        .isInstanceOf(MpcException.class);
    for (int i = 0; i < identity.length; i++) {
      byte[] altered = identity.clone();
      altered[i] ^= 1;
      assertThatThrownBy(() -> vault.start(config, altered, NO_SHARE))
          .isInstanceOf(MpcException.class);
    }
  }

  @Test
  void an_observer_needs_public_data_and_never_a_party_id() {
    SessionConfig config = parties.sign(key, MESSAGE, List.of(1, 2));
    assertThatThrownBy(() -> parties.core.observe(config)).isInstanceOf(MpcException.class);
    assertThatThrownBy(
            () -> parties.core.observe(config.toBuilder().setSelf(1).setKeyPublic(key).build()))
        .isInstanceOf(MpcException.class);
    assertThatThrownBy(
            () ->
                parties.observe(
                    config,
                    key.toBuilder().setPublicKey(ByteString.copyFrom(new byte[48])).build()))
        .isInstanceOf(MpcException.class);
  }

  @Test
  void hostile_envelopes_are_steps_and_the_run_goes_on() {
    SessionConfig config = parties.sign(key, MESSAGE, List.of(1, 2));
    Random random = new Random(5);
    try (MpcSession one = parties.start(1, config, shares.get(1).getSealedShare().toByteArray());
        MpcSession two = parties.start(2, config, shares.get(2).getSealedShare().toByteArray())) {
      byte[] good = two.firstStep().getOutgoing(0).getEnvelope().toByteArray();
      for (int i = 0; i < 2000; i++) {
        byte[] bad;
        if (i < good.length) {
          bad = Arrays.copyOf(good, i);
        } else {
          bad = new byte[random.nextInt(2000)];
          random.nextBytes(bad);
        }
        assertThat(one.handle(2, bad).getProgressCase())
            .as("envelope %s", i)
            .isEqualTo(Step.ProgressCase.DROPPED);
      }
      for (int sender : new int[] {0, 1, 3, 70_000, -1}) {
        assertThat(one.handle(sender, good).getProgressCase()).isEqualTo(Step.ProgressCase.DROPPED);
      }
      assertThat(one.handle(2, good).getProgressCase()).isEqualTo(Step.ProgressCase.DONE);
    }
  }

  @Test
  void an_oversized_envelope_is_refused_and_the_run_goes_on() {
    SessionConfig config = parties.sign(key, MESSAGE, List.of(1, 2));
    try (MpcSession one = parties.start(1, config, shares.get(1).getSealedShare().toByteArray());
        MpcSession two = parties.start(2, config, shares.get(2).getSealedShare().toByteArray())) {
      byte[] huge = new byte[NativeBindings.MAX_INPUT + 1];
      assertFails(MpcException.Reason.INVALID_ARGUMENT, () -> one.handle(2, huge));
      byte[] good = two.firstStep().getOutgoing(0).getEnvelope().toByteArray();
      assertThat(one.handle(2, good).getProgressCase()).isEqualTo(Step.ProgressCase.DONE);
    }
  }

  @Test
  void a_closed_session_refuses_and_closes_again() {
    MpcSession session = parties.start(1, parties.keygen(2), NO_SHARE);
    session.close();
    session.close();
    assertThatThrownBy(() -> session.handle(2, new byte[1]))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("session is closed");
    assertThatThrownBy(session::firstStep).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void a_session_outlives_its_vault_which_then_starts_no_other() {
    try (LocalParties two = new LocalParties(2)) {
      SessionConfig config = two.keygen(2);
      try (MpcSession one = two.start(1, config, NO_SHARE);
          MpcSession other = two.start(2, config, NO_SHARE)) {
        two.vaults.get(1).close();
        Step step = one.handle(2, other.firstStep().getOutgoing(0).getEnvelope().toByteArray());
        assertThat(step.getProgressCase()).isEqualTo(Step.ProgressCase.WAITING);
        assertThatThrownBy(() -> two.start(1, two.keygen(2), NO_SHARE))
            .isInstanceOf(IllegalStateException.class);
      }
    }
  }

  @Test
  void concurrent_calls_fail_or_succeed_and_never_overlap() throws Exception {
    long open = parties.core.openHandles();
    AtomicInteger refused = new AtomicInteger();
    AtomicInteger served = new AtomicInteger();
    try (ExecutorService pool = Executors.newFixedThreadPool(4)) {
      for (int round = 0; round < 50; round++) {
        MpcSession session = parties.start(1, parties.keygen(2), NO_SHARE);
        List<Future<?>> running =
            IntStream.range(0, 4)
                .<Future<?>>mapToObj(
                    thread ->
                        pool.submit(
                            () -> {
                              for (int i = 0; i < 50; i++) {
                                try {
                                  session.handle(2, new byte[20_000]);
                                  served.incrementAndGet();
                                } catch (IllegalStateException e) {
                                  refused.incrementAndGet();
                                }
                              }
                            }))
                .toList();
        if (round % 2 == 0) {
          session.close();
        }
        for (Future<?> result : running) {
          result.get();
        }
        session.close();
      }
    }
    assertThat(served.get()).isPositive();
    assertThat(refused.get()).isPositive();
    assertThat(parties.core.openHandles()).isEqualTo(open);
  }

  @Test
  void running_sessions_does_not_grow() {
    NativeHeap.assertDoesNotGrow(
        () -> {
          SessionConfig config = parties.sign(key, MESSAGE, List.of(1, 2));
          try (MpcSession one =
                  parties.start(1, config, shares.get(1).getSealedShare().toByteArray());
              MpcSession observer = parties.observe(config, key)) {
            observer.handle(1, one.firstStep().getOutgoing(0).getEnvelope().toByteArray());
            one.handle(2, new byte[100]);
          }
          assertThatThrownBy(() -> parties.core.observe(config)).isInstanceOf(MpcException.class);
        });
  }

  @Test
  void a_forgotten_session_is_freed_and_counted() {
    long rescued = parties.core.rescuedHandles();
    long open = parties.core.openHandles();
    parties.start(1, parties.keygen(2), NO_SHARE);
    await()
        .atMost(Duration.ofSeconds(20))
        .until(
            () -> {
              System.gc();
              return parties.core.rescuedHandles() > rescued && parties.core.openHandles() <= open;
            });
  }
}
