package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.share.KeyShare;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import supranational.blst.BLST_ERROR;
import supranational.blst.P1_Affine;
import supranational.blst.P2_Affine;

/** Three signers with the native core make keys and signatures that an outside verifier accepts. */
class RealCoreTest {
  private static final String KEY = "keys/main";
  private static final List<String> NAMES = NativeParties.NAMES;

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;

  /** Envelopes that the core of a party has handled, by name. */
  private final Map<String, Integer> handled = new ConcurrentHashMap<>();

  @BeforeEach
  void start() {
    cores = new NativeParties();
    handled.clear();
    i = new Installation(folder, cores.evidence(), name -> counting(name, cores.open(name)));
    i.limits = Installation.quick();
    i.start();
  }

  /** Counts the envelopes that a party's core has handled. */
  private ProtocolCore counting(String party, ProtocolCore real) {
    return new ProtocolCore() {
      @Override
      public Run start(SessionConfig config, ByteString sealedShare) throws RefusedException {
        Run run = real.start(config, sealedShare);
        return new Run() {
          @Override
          public Step firstStep() {
            return run.firstStep();
          }

          @Override
          public Step handle(int sender, byte[] envelope) {
            Step step = run.handle(sender, envelope);
            handled.merge(party, 1, Integer::sum);
            return step;
          }

          @Override
          public void close() {
            run.close();
          }
        };
      }

      @Override
      public void discardPresignature(ByteString id) {
        real.discardPresignature(id);
      }

      @Override
      public ByteString signStatement(ByteString statement) {
        return real.signStatement(statement);
      }
    };
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  private KeyPublic keyPublic() {
    return i.party("alpha").store.shares().find(KEY).orElseThrow().keyPublic();
  }

  private SessionId sign(String message, int... set) {
    SignedIntent intent = i.signed(i.signingIntent(Installation.requestId(), KEY, message));
    return i.coordinator.give(i.coordinator.signOrder(intent, KEY, 2, set).build());
  }

  /** The result of the coordinator's observer, from the envelopes that came. */
  private ByteString combine(SessionId session, String message, int... set) {
    return NativeParties.combine(
            i,
            session,
            SessionConfig.newBuilder()
                .setProtocol(ProtocolId.PROTOCOL_ID_BLS_SIGN)
                .setThreshold(2)
                .setKeyId(KEY)
                .setEpoch(1)
                .setPayload(ByteString.copyFromUtf8(message))
                .setKeyPublic(keyPublic()),
            set)
        .getSignature();
  }

  private void awaitAudited(String party, SessionId session, String outcome) {
    String hex = HexFormat.of().formatHex(session.bytes().toByteArray());
    Installation.until(
        party + " has " + outcome,
        () ->
            i.party(party).store.audit().read(1, 1000).stream()
                .anyMatch(
                    r ->
                        r.event().outcome().equals(outcome)
                            && hex.equals(r.event().fields().get("session_id"))));
  }

  @Test
  void key_and_signatures_verify_outside() {
    i.createKey(KEY, 2);
    assertThat(i.parties)
        .extracting(p -> p.store.shares().find(KEY).orElseThrow().keyPublic())
        .containsOnly(keyPublic());
    assertThat(i.parties)
        .extracting(p -> p.store.shares().find(KEY).orElseThrow().sealed())
        .doesNotHaveDuplicates();
    ByteString first = null;
    for (int[] set : new int[][] {{1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}) {
      SessionId session = sign("hello", set);
      ByteString signature = combine(session, "hello", set);
      assertThat(
              new P2_Affine(signature.toByteArray())
                  .core_verify(
                      new P1_Affine(keyPublic().getPublicKey().toByteArray()),
                      true,
                      "hello".getBytes(StandardCharsets.UTF_8),
                      "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_"))
          .isEqualTo(BLST_ERROR.BLST_SUCCESS);
      assertThat(first == null || first.equals(signature)).as("whoever signs").isTrue();
      first = signature;
      for (int id : set) {
        awaitAudited(NAMES.get(id - 1), session, "contributed");
      }
    }
  }

  @Test
  void stored_share_signs_after_a_restart() {
    i.createKey(KEY, 2);
    ByteString before = combine(sign("hello", 1, 2), "hello", 1, 2);
    NAMES.forEach(i::restart);
    assertThat(combine(sign("hello", 2, 3), "hello", 2, 3)).isEqualTo(before);
  }

  static Stream<Arguments> silences() {
    return Stream.of(1, 2, 3, 4).map(Arguments::of);
  }

  /** bravo says nothing from some message on: those that wait for it name it, and nobody else. */
  @ParameterizedTest(name = "silent from its message {0}")
  @MethodSource("silences")
  void silent_party_is_suspected_in_each_round_of_key_generation(int from) {
    // Each of bravo's rounds is one envelope to each peer.
    Map<String, Integer> said = new HashMap<>();
    i.network.tap(
        (sender, to, body) -> {
          if (!sender.name().equals("bravo") || !CrashTest.isEnvelope(body)) {
            return body;
          }
          synchronized (said) {
            return said.merge(to.name(), 1, Integer::sum) >= from ? null : body;
          }
        });
    SignedIntent intent = i.signed(i.keyIntent(Installation.requestId(), KEY, 2));
    SessionId session =
        i.coordinator.give(
            i.coordinator
                .keygenOrder(intent, KEY, 2, 1, 2, 3)
                .setDeadline(Installation.in(Duration.ofSeconds(20)))
                .build());
    for (String honest : List.of("alpha", "charlie")) {
      Installation.until(
          honest + " misses bravo alone", () -> handled.getOrDefault(honest, 0) == 2 * from - 1);
    }
    i.time.pass(Duration.ofSeconds(20));
    for (String honest : List.of("alpha", "charlie")) {
      var report = i.coordinator.awaitFrom(honest, session).report();
      assertThat(report.getTimedOut().getRound()).isEqualTo(from);
      assertThat(report.getTimedOut().getMissingList()).containsExactly(2);
    }
    assertThat(i.party("alpha").store.shares().find(KEY)).isEmpty();
    // The name is free for another attempt.
    i.network.tap((_, _, body) -> body);
    i.createKey(KEY, 2);
  }

  /** The observer needs them; the parties would only check each other's. */
  @Test
  void parties_show_each_other_no_partial_signature() {
    i.createKey(KEY, 2);
    Set<String> shown = ConcurrentHashMap.newKeySet();
    i.network.tap(
        (sender, to, body) -> {
          if (CrashTest.isEnvelope(body)) {
            shown.add(sender.name() + " to " + to.name());
          }
          return body;
        });
    handled.clear();
    SessionId session = sign("hello", 1, 2, 3);
    assertThat(combine(session, "hello", 1, 2, 3)).isNotEqualTo(ByteString.EMPTY);
    NAMES.forEach(party -> awaitAudited(party, session, "contributed"));
    assertThat(shown)
        .containsExactlyInAnyOrder(
            "alpha to coordinator", "bravo to coordinator", "charlie to coordinator");
    assertThat(handled).isEmpty();
  }

  @Test
  void share_of_another_party_is_refused() {
    i.createKey(KEY, 2);
    KeyShare share = i.party("alpha").store.shares().find(KEY).orElseThrow();
    SessionConfig config =
        SessionConfig.newBuilder()
            .setProtocol(ProtocolId.PROTOCOL_ID_BLS_SIGN)
            .setSessionId(ByteString.copyFrom(new byte[32]))
            .setSelf(2)
            .setThreshold(2)
            .setKeyId(KEY)
            .setEpoch(1)
            .setPayload(ByteString.copyFromUtf8("x"))
            .addAllParties(List.of(NativeParties.party(i, 1), NativeParties.party(i, 2)))
            .build();
    ProtocolCore bravo = cores.core("bravo");
    assertThatThrownBy(() -> bravo.start(config, share.sealed()))
        .isInstanceOf(RefusedException.class)
        .hasMessageStartingWith("the core refused");
  }
}
