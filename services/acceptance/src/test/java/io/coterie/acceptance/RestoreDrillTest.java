package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A signer is stopped, its disk is put back as it was 50 signatures earlier, and it signs 1,000
 * more: no nonce point is ever seen twice, in the last rounds that parties send and in the
 * signatures.
 */
@Timeout(600)
class RestoreDrillTest {
  private static final int BEFORE = 50;
  private static final int AFTER = 1_000;
  private static final int IN_FLIGHT = 16;

  /** Of two parties that are both needed. */
  private static final List<String> HOLDERS = List.of("party-1", "party-2");

  private static final String RESTORED = "party-2";
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(32));
  private static final int NONCE_BYTES = 32;

  private static Cluster cluster;
  private static OutsideVerifier outside;

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(2)
            .threshold(2)
            .setting(Settings.COORDINATOR, "--" + WireLog.PROPERTY + "=true")
            .folder(Path.of("target", "cluster-restore"))
            .progress(line -> System.out.println("progress: restore: " + line))
            .start();
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

  @ParameterizedTest
  @EnumSource(names = {"SCHEME_ECDSA_SECP256K1", "SCHEME_ED25519", "SCHEME_BIP340_SECP256K1"})
  void aRestoredSignerRepeatsNothing(Scheme scheme) throws Exception {
    WireLog.clear();
    Key key = cluster.wallet().createKey("drill-" + scheme.getNumber(), scheme, 2, HOLDERS);
    Set<ByteString> nonces = new HashSet<>();
    sign(key, IN_FLIGHT, nonces);
    Path data = cluster.signer(RESTORED).folder().resolve("data");
    Path copy = Files.createDirectories(cluster.folder().resolve("copy-" + scheme.getNumber()));
    cluster.kill(RESTORED);
    PartyFiles.copy(data, copy);
    cluster.restart(RESTORED);
    sign(key, BEFORE, nonces);

    cluster.kill(RESTORED);
    PartyFiles.copy(copy, data);
    cluster.restart(RESTORED);
    Key used = key;
    if (scheme == Scheme.SCHEME_ECDSA_SECP256K1) {
      // It has forgotten whom it excludes: nothing multiplies with it before there are new shares.
      String name = key.getName().substring("keys/".length());
      used = cluster.wallet().refreshKey(name, scheme, key.getEpoch());
    }
    int presigned = sign(used, AFTER, nonces);

    int signatures = IN_FLIGHT + BEFORE + AFTER;
    assertThat(presigned).as("signed with presignatures").isPositive().isLessThan(AFTER);
    assertThat(nonces).hasSize(signatures);
    // A request has a further session only after one that the coordinator abandoned, on a busy
    // machine say. A party that has seen the signature of that one answers the further order with
    // it, and nobody combines again.
    int further = WireLog.sessions() - signatures;
    assertThat(WireLog.signatures()).isBetween(signatures - further, signatures + further);
    assertThat(WireLog.points()).isGreaterThanOrEqualTo(WireLog.signatures());
    assertThat(WireLog.shownTwice()).isEmpty();
  }

  /**
   * Signs the same payload so often.
   *
   * @param nonces takes the nonce of each signature: r of ECDSA, R of the others
   * @return how many were signed with presignatures
   */
  private static int sign(Key key, int count, Set<ByteString> nonces)
      throws InterruptedException, ExecutionException {
    int presigned = 0;
    try (ExecutorService callers = Executors.newFixedThreadPool(IN_FLIGHT)) {
      List<Future<Signing>> signings = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        SigningIntent.Builder intent =
            WalletBackend.signingIntent(key.getName().substring("keys/".length()), key.getScheme());
        intent.setDigest(DIGEST);
        signings.add(callers.submit(() -> cluster.wallet().sign(intent)));
      }
      for (Future<Signing> answer : signings) {
        Signing signing = answer.get();
        assertThat(verdict(key, signing).valid()).as("%s", signing).isTrue();
        nonces.add(signing.getSignature().substring(0, NONCE_BYTES));
        presigned += signing.getPresigned() ? 1 : 0;
      }
    }
    return presigned;
  }

  private static OutsideVerifier.Verdict verdict(Key key, Signing signing) {
    return switch (key.getScheme()) {
      case SCHEME_ED25519 ->
          outside.ed25519(signing.getPublicKey(), DIGEST, signing.getSignature());
      case SCHEME_BIP340_SECP256K1 ->
          outside.bip340(signing.getPublicKey(), DIGEST, signing.getSignature());
      default -> outside.ecdsa(signing.getPublicKey(), DIGEST, signing.getSignature());
    };
  }
}
