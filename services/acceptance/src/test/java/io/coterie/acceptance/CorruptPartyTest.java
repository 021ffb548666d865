package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.rpc.ErrorInfo;
import io.coterie.acceptance.Deviation.Kind;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.ClusterPlan;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import io.grpc.StatusRuntimeException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * One of three parties is corrupt, in the real system: it is the only one that is ever named, no
 * key and no wrong signature comes of it, and honest work goes on afterwards.
 */
class CorruptPartyTest {
  private static final String CORRUPT = "party-3";
  private static final String KEY = "before";

  private static Cluster cluster;
  private static Key key;
  private static OutsideVerifier outside;
  private static int keys;

  @BeforeAll
  static void start() {
    ClusterPlan plan =
        Cluster.of(3)
            .threshold(2)
            .folder(Path.of("target", "cluster-corrupt"))
            .setting(CORRUPT, "--" + Deviation.PROPERTY + "=true")
            .progress(line -> System.out.println("progress: corrupt party: " + line));
    // Deadlines of a session short enough that a silent party does not cost the test its patience.
    for (String phase : List.of("min", "initial", "max")) {
      plan.setting("coordinator", "--coterie.coordinator.keygen." + phase + "=2s");
    }
    plan.setting("coordinator", "--coterie.coordinator.limits.keygen-sessions=1");
    cluster = plan.start();
    key = cluster.createKey(KEY);
    outside = OutsideVerifier.start(ProjectRoot.PATH);
  }

  @AfterAll
  static void stop() {
    if (outside != null) {
      outside.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @AfterEach
  void honestWorkGoesOn() {
    Deviation.current = new Deviation(Kind.NONE, 0);
    signAndVerify(key, KEY, "after");
    String name = "honest-" + ++keys;
    signAndVerify(cluster.createKey(name), name, "first");
  }

  private static Signing signAndVerify(Key key, String name, String message) {
    Signing signing = cluster.wallet().sign(name, message);
    assertThat(
            outside
                .verify(
                    key.getPublicKey().toByteArray(),
                    message.getBytes(StandardCharsets.UTF_8),
                    signing.getSignature().toByteArray())
                .valid())
        .isTrue();
    return signing;
  }

  @ParameterizedTest(name = "{0} in round {1} of key generation: {2}")
  @CsvSource({
    "SILENT, 1, KEY_CREATION_FAILED",
    "SILENT, 2, KEY_CREATION_FAILED",
    "SILENT, 3, KEY_CREATION_FAILED",
    "SILENT, 4, KEY_CREATION_FAILED",
    // A broken signature proves nothing against anybody: the message counts as missing.
    "GARBLE, 1, KEY_CREATION_FAILED",
    "GARBLE, 2, KEY_CREATION_FAILED",
    "GARBLE, 3, KEY_CREATION_FAILED",
    "GARBLE, 4, KEY_CREATION_FAILED",
    // Deviations that need the sender's signing key in rounds 3 and 4 (wrong shares, wrong proofs,
    // false
    // complaints) is the core's own table of malicious parties.
    // Messages of two runs show that their sender ran the session twice: it is named, not blamed.
    "OTHER_RUN, 2, KEY_CREATION_FAILED",
    "EQUIVOCATE, 1, KEY_CREATION_FAILED",
    "EQUIVOCATE, 2, KEY_CREATION_FAILED",
  })
  void aDeviationInKeyGenerationNamesTheCorruptPartyAndMakesNoKey(
      Kind kind, int round, ErrorReason expected) {
    String name = "%s-%d".formatted(kind.name().toLowerCase().replace('_', '-'), round);
    Deviation.current = new Deviation(kind, round);
    StatusRuntimeException failure =
        catchThrowableOfType(
            StatusRuntimeException.class,
            () -> cluster.wallet().createKey(name, 2, cluster.partyNames()));
    assertThat(failure).as("%s in round %d must not make a key", kind, round).isNotNull();
    ErrorInfo info = Refusals.info(failure);
    System.out.printf("progress: %s in round %d: %s%n", kind, round, facts(info));
    assertThat(info.getReason()).as("%s", facts(info)).isEqualTo(expected.name());
    assertThat(info.getMetadataOrThrow("party")).isEqualTo(CORRUPT);

    StatusRuntimeException lookup =
        catchThrowableOfType(
            StatusRuntimeException.class,
            () -> assertThat(get(name).getState()).isEqualTo(Key.State.FAILED));
    assertThat(lookup).isNull();
    // The name is free again, for a run in which nobody deviates.
    Deviation.current = new Deviation(Kind.NONE, 0);
    Key honest = cluster.createKey(name);
    assertThat(honest.getState()).isEqualTo(Key.State.ACTIVE);
    signAndVerify(honest, name, "now it works");
  }

  private static Key get(String name) {
    return cluster
        .wallet()
        .keys()
        .getKey(GetKeyRequest.newBuilder().setName("keys/" + name).build());
  }

  private static Map<String, String> facts(ErrorInfo info) {
    return Map.of("reason", info.getReason(), "metadata", info.getMetadataMap().toString());
  }

  @Test
  void replaysInKeyGenerationAndSigningChangeNothing() {
    Deviation.current = new Deviation(Kind.REPLAY, 0);
    Key made = cluster.createKey("replayed");
    assertThat(made.getState()).isEqualTo(Key.State.ACTIVE);
    for (int i = 0; i < 5; i++) {
      signAndVerify(made, "replayed", "message " + i);
    }
  }

  @ParameterizedTest(name = "{0} while signing: the others sign")
  @CsvSource({"SILENT", "GARBLE", "WRONG_PARTIAL"})
  void aDeviationInSigningIsSignedAround(Kind kind) {
    Deviation.current = new Deviation(kind, 1);
    for (int i = 0; i < 6; i++) {
      Signing signing = signAndVerify(key, KEY, kind + " " + i);
      assertThat(signing.getSigningSetList()).doesNotContain(CORRUPT);
    }
  }

  @ParameterizedTest(name = "{0} when every party is needed: {1}")
  @CsvSource({
    "SILENT, PARTY_UNRESPONSIVE",
    "GARBLE, PARTY_MISBEHAVED",
    "WRONG_PARTIAL, PARTY_MISBEHAVED",
  })
  void aDeviationWhereEveryPartyIsNeededNamesTheCorruptOne(Kind kind, ErrorReason expected) {
    String name = "all-" + kind.name().toLowerCase().replace('_', '-');
    Key all = cluster.wallet().createKey(name, 3, cluster.partyNames());
    Deviation.current = new Deviation(kind, 1);
    StatusRuntimeException failure =
        catchThrowableOfType(
            StatusRuntimeException.class,
            () ->
                cluster
                    .wallet()
                    .signings()
                    .withDeadlineAfter(8, java.util.concurrent.TimeUnit.SECONDS)
                    .sign(
                        WalletBackend.signRequest(
                            cluster
                                .wallet()
                                .intents()
                                .sign(WalletBackend.signingIntent(name, new byte[] {1}).build()))));
    assertThat(failure).isNotNull();
    ErrorInfo info = Refusals.info(failure);
    System.out.printf("progress: %s in a 3-of-3 signature: %s%n", kind, facts(info));
    assertThat(info.getReason()).as("%s", facts(info)).isEqualTo(expected.name());
    assertThat(info.getMetadataOrThrow("party")).isEqualTo(CORRUPT);
    Deviation.current = new Deviation(Kind.NONE, 0);
    if (expected == ErrorReason.PARTY_UNRESPONSIVE) {
      signAndVerify(all, name, "now it works");
    } else {
      // A proven culprit stays excluded from the key; the operators have to decide.
      ErrorInfo later =
          Refusals.refused(expected, () -> cluster.wallet().sign(name, "still excluded"));
      assertThat(later.getMetadataOrThrow("party")).isEqualTo(CORRUPT);
    }
  }
}
