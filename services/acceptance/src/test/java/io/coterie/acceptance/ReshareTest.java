package io.coterie.acceptance;

import static io.coterie.acceptance.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.payload.EthereumAddress;
import io.coterie.proto.custody.v1.CancelKeyOperationRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Keys that go to other parties, and a party that comes back from an old copy of its disk. */
@Timeout(600)
class ReshareTest {
  private static final Set<String> OLD_SHARES = Set.of("wrong_epoch", "needs_refresh");

  private static final Duration PATIENCE = Duration.ofSeconds(180);
  private static final List<String> FIRST = List.of("party-1", "party-2", "party-3");
  private static final List<String> ALL =
      List.of("party-1", "party-2", "party-3", "party-4", "party-5");
  private static final List<String> LAST = List.of("party-1", "party-4", "party-5");

  private static Cluster cluster;
  private static WalletBackend wallet;
  private static OutsideVerifier outside;

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(5)
            .threshold(2)
            .folder(Path.of("target", "cluster-reshare"))
            .progress(line -> System.out.println("progress: reshare: " + line))
            .start();
    wallet = cluster.wallet();
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

  private static String address(Key key) {
    String address = EthereumAddress.of(ExtendedPublicKey.parse(key.getXpub()).publicKey());
    assertThat(outside.ethereumAddress(key.getXpub(), List.of()).value()).isEqualTo(address);
    return address;
  }

  private static SigningIntent.Builder digestIntent(String key, String octet) {
    return WalletBackend.ecdsaIntent(key).setDigest(ByteString.fromHex(octet.repeat(32)));
  }

  private static Signing signs(Key key) {
    Signing signing = wallet.sign(digestIntent(key.getName().substring("keys/".length()), "5a"));
    assertThat(
            outside.ecdsa(key.getPublicKey(), signing.getDigest(), signing.getSignature()).valid())
        .isTrue();
    return signing;
  }

  private static double reachable() {
    return cluster.coordinator().metrics().sum("coterie_channel_reachable");
  }

  /**
   * How often a signer has refused to use old shares: because they are of another epoch, or because
   * others told it first that its store went back.
   */
  private static double refusalsOfOldShares(String party) {
    return cluster
        .signer(party)
        .metrics()
        .sum(
            "coterie_sessions_total",
            s -> s.label("outcome").equals("refused") && OLD_SHARES.contains(s.label("cause")));
  }

  @Test
  void aKeyGoesFromThreeToFiveToOthersAndItsAddressStays() {
    Key first = wallet.createEcdsaKey("moving", 2, FIRST);
    signs(first);
    Key grown = wallet.reshareKey(first, 3, ALL);
    assertThat(grown.getThreshold()).isEqualTo(3);
    assertThat(grown.getPartiesList()).isEqualTo(ALL);
    assertThat(grown.getEpoch()).isEqualTo(2);
    assertThat(address(grown)).isEqualTo(address(first));
    assertThat(signs(grown).getSigningSetList()).hasSize(3);

    Key moved = wallet.reshareKey(grown, 2, LAST);
    assertThat(moved.getPartiesList()).isEqualTo(LAST);
    assertThat(moved.getXpub()).isEqualTo(first.getXpub());
    for (int i = 0; i < 3; i++) {
      assertThat(LAST).containsAll(signs(moved).getSigningSetList());
    }
    refused(ErrorReason.EPOCH_MISMATCH, () -> wallet.reshareKey(grown, 2, FIRST));

    // Those who have left are not needed, and cannot help.
    cluster.kill("party-2");
    cluster.kill("party-3");
    try {
      signs(moved);
    } finally {
      cluster.restart("party-2");
      cluster.restart("party-3");
    }
    // One who has left comes back.
    Key back = wallet.reshareKey(moved, 2, List.of("party-2", "party-5"));
    assertThat(signs(back).getSigningSetList()).containsExactly("party-2", "party-5");
    assertThat(address(back)).isEqualTo(address(first));
  }

  @Test
  void aBlsKeyIsRefreshedAndGoesToOtherParties() {
    Key first = wallet.createKey("validator", 2, FIRST);
    signsMessage(first);
    Key refreshed = wallet.refreshKey("validator", Scheme.SCHEME_BLS12381, 1);
    assertThat(refreshed.toBuilder().clearAttestation().build())
        .isEqualTo(first.toBuilder().clearAttestation().setEpoch(2).build());
    signsMessage(refreshed);

    Key moved = wallet.reshareKey(refreshed, 3, LAST);
    assertThat(moved.getPublicKey()).isEqualTo(first.getPublicKey());
    assertThat(moved.getProofOfPossession()).isEqualTo(first.getProofOfPossession());
    assertThat(moved.getEpoch()).isEqualTo(3);
    assertThat(signsMessage(moved).getSigningSetList()).containsExactlyElementsOf(LAST);
    refused(ErrorReason.EPOCH_MISMATCH, () -> wallet.reshareKey(refreshed, 2, FIRST));
  }

  /**
   * A message that nobody has signed before, and the key's proof of possession, verified outside.
   */
  private static Signing signsMessage(Key key) {
    byte[] message = ("epoch " + key.getEpoch()).getBytes(StandardCharsets.UTF_8);
    Signing signing = wallet.sign("validator", message);
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    byte[] publicKey = key.getPublicKey().toByteArray();
    byte[] signature = signing.getSignature().toByteArray();
    byte[] proof = key.getProofOfPossession().toByteArray();
    assertThat(outside.verify(publicKey, message, signature, proof).valid()).isTrue();
    return signing;
  }

  @Test
  void aReshareThatWaitsForAPartyIsCancelled() {
    Key key = wallet.createEcdsaKey("cancelled", 2, FIRST);
    double all = reachable();
    cluster.kill("party-5");
    try {
      long end = System.nanoTime() + PATIENCE.toNanos();
      while (reachable() >= all && System.nanoTime() < end) {
        LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
      }
      ReshareIntent intent = WalletBackend.reshareIntent(key, 2, LAST).build();
      ReshareKeyRequest request =
          ReshareKeyRequest.newBuilder().setSignedIntent(wallet.intents().sign(intent)).build();
      CancelKeyOperationRequest cancel =
          CancelKeyOperationRequest.newBuilder()
              .setName(key.getName())
              .setRequestId(intent.getRequestId())
              .build();
      refused(ErrorReason.OPERATION_NOT_RUNNING, () -> wallet.keys().cancelKeyOperation(cancel));
      assertThatThrownBy(
              () -> wallet.keys().withDeadlineAfter(2, TimeUnit.SECONDS).reshareKey(request))
          .isInstanceOf(StatusRuntimeException.class);
      assertThat(wallet.keys().cancelKeyOperation(cancel)).isEqualTo(key);
      refused(ErrorReason.OPERATION_CANCELLED, () -> wallet.keys().reshareKey(request));
      signs(key);
    } finally {
      cluster.restart("party-5");
    }
    assertThat(wallet.reshareKey(key, 2, LAST).getEpoch()).isEqualTo(2);
  }

  /**
   * A signer whose disk is put back as it was before a refresh holds a share that fits nothing any
   * more. It signs nothing with it, the others go on without it, and a reshare to the parties as
   * they are gives it a share again.
   */
  @Test
  void aRestoredSignerSignsNothingOldAndIsRepaired() throws IOException {
    Key key = wallet.createEcdsaKey("restored", 2, FIRST);
    signs(key);
    Path data = cluster.signer("party-3").folder().resolve("data");
    Path copy = Files.createDirectories(cluster.folder().resolve("copy"));
    cluster.kill("party-3");
    PartyFiles.copy(data, copy);
    cluster.restart("party-3");
    Key refreshed = wallet.refreshKey("restored", 1);
    signs(refreshed);

    cluster.kill("party-3");
    PartyFiles.copy(copy, data);
    cluster.restart("party-3");
    double before = refusalsOfOldShares("party-3");
    // Without the first, the restored one would be needed.
    cluster.kill("party-1");
    try {
      SignRequest request =
          WalletBackend.signRequest(wallet.intents().sign(digestIntent("restored", "5b").build()));
      // Again while it is not asked: its peers and the coordinator find it some time after its
      // start.
      long end = System.nanoTime() + PATIENCE.toNanos();
      do {
        assertThat(System.nanoTime()).as("the restored one is asked").isLessThan(end);
        assertThatThrownBy(
                () -> wallet.signings().withDeadlineAfter(3, TimeUnit.SECONDS).sign(request))
            .isInstanceOf(StatusRuntimeException.class);
      } while (refusalsOfOldShares("party-3") <= before);
    } finally {
      cluster.restart("party-1");
    }
    for (int i = 0; i < 3; i++) {
      assertThat(signs(refreshed).getSigningSetList()).doesNotContain("party-3");
    }

    Key repaired = wallet.reshareKey(refreshed, 2, FIRST);
    assertThat(repaired.getEpoch()).isEqualTo(3);
    cluster.kill("party-1");
    try {
      assertThat(signs(repaired).getSigningSetList()).containsExactly("party-2", "party-3");
    } finally {
      cluster.restart("party-1");
    }
  }
}
