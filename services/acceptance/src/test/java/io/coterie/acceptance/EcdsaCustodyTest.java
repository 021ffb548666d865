package io.coterie.acceptance;

import static io.coterie.acceptance.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.payload.BitcoinAddress;
import io.coterie.platform.payload.BitcoinPsbt;
import io.coterie.platform.payload.EthereumAddress;
import io.coterie.platform.payload.EthereumTransaction;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.DecodedField;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** ECDSA keys from end to end; implementations that are not ours judge their signatures. */
@Timeout(600)
class EcdsaCustodyTest {
  private static final int POOL = 6;

  /** The presignatures that the first signature of a kind makes wanted. */
  private static final int FIRST_WANTED = 4;

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final String SOMEONE = "0x52908400098527886E0F7030069857D2E4169EE7";
  private static final String SOMEONES_COINS = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu";

  private static final String TYPED_DATA =
      """
      {"types":{
         "EIP712Domain":[{"name":"name","type":"string"},{"name":"chainId","type":"uint256"}],
         "Order":[{"name":"to","type":"address"},{"name":"amounts","type":"uint256[]"}]},
       "primaryType":"Order",
       "domain":{"name":"Acceptance","chainId":1},
       "message":{"to":"%s","amounts":["1","2"]}}
      """
          .formatted(SOMEONE);

  private static Cluster cluster;
  private static WalletBackend wallet;
  private static OutsideVerifier outside;

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(3)
            .threshold(2)
            .setting(Settings.COORDINATOR, "--coterie.coordinator.presignatures.target=" + POOL)
            .folder(Path.of("target", "cluster-ecdsa"))
            .progress(line -> System.out.println("progress: ecdsa: " + line))
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

  private static Key createKey(String name) {
    Key key = wallet.createEcdsaKey(name, 2, cluster.partyNames());
    assertThat(key.getState()).isEqualTo(Key.State.ACTIVE);
    assertThat(key.getEpoch()).isEqualTo(1);
    ExtendedPublicKey root = ExtendedPublicKey.parse(key.getXpub());
    assertThat(root.publicKey()).isEqualTo(key.getPublicKey());
    assertThat(outside.ethereumAddress(key.getXpub(), List.of()).value())
        .isEqualTo(EthereumAddress.of(root.publicKey()));
    return key;
  }

  private static ByteString child(Key key, Integer... path) {
    return ExtendedPublicKey.parse(key.getXpub()).derive(List.of(path)).publicKey();
  }

  private static String name(Key key) {
    return key.getName().substring("keys/".length());
  }

  /** Checks what holds for every signature, whatever was signed. */
  private static Signing sign(Key key, SigningIntent.Builder intent) {
    SignRequest request = WalletBackend.signRequest(wallet.intents().sign(intent.build()));
    Signing signing = wallet.signings().sign(request);
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(signing.getSigningSetList()).hasSize(2);
    assertThat(signing.getPublicKey())
        .isEqualTo(child(key, intent.getDerivationPathList().toArray(Integer[]::new)));
    assertThat(
            outside
                .ecdsa(signing.getPublicKey(), signing.getDigest(), signing.getSignature())
                .valid())
        .isTrue();
    assertThat(wallet.signings().sign(request)).isEqualTo(signing);
    assertThat(
            wallet
                .signings()
                .getSigning(GetSigningRequest.newBuilder().setName(signing.getName()).build()))
        .isEqualTo(signing);
    return signing;
  }

  private static Signing signDigest(Key key, Integer... path) {
    return sign(
        key,
        WalletBackend.ecdsaIntent(name(key), path).setDigest(ByteString.fromHex("5a".repeat(32))));
  }

  private static String fields(Signing signing) {
    return signing.getDecoded().getFieldsList().stream()
        .map((DecodedField f) -> f.getName() + ": " + f.getValue())
        .collect(Collectors.joining("\n"));
  }

  @Test
  void everyPayloadIsSignedAsWalletsExpectIt() throws Exception {
    Key key = createKey("payloads");
    Integer[] path = {0, 7};
    ByteString child = child(key, path);
    String address = outside.ethereumAddress(key.getXpub(), List.of(path)).value();
    assertThat(EthereumAddress.of(child)).isEqualTo(address);

    ByteString draft = outside.ethereumDraft(1, 3, SOMEONE, "1250000000000000000");
    Signing transfer =
        sign(key, WalletBackend.ecdsaIntent(name(key), path).setEthereumTransaction(draft));
    assertThat(transfer.getDecoded().getKind()).isEqualTo("ethereum-transaction");
    assertThat(fields(transfer))
        .contains("chain id: 1", "to: " + SOMEONE, "value: 1250000000000000000", "nonce: 3");
    assertThat(
            outside.ethereumTransaction(
                EthereumTransaction.decode(draft)
                    .signed(transfer.getSignature(), transfer.getRecoveryId())))
        .satisfies(verdict -> assertThat(verdict.valid()).isTrue())
        .satisfies(verdict -> assertThat(verdict.value()).isEqualTo(address));

    ByteString text = ByteString.copyFromUtf8("I own this address");
    Signing message =
        sign(key, WalletBackend.ecdsaIntent(name(key), path).setEthereumMessage(text));
    assertThat(fields(message)).contains("text: I own this address");
    assertThat(
            outside.ethereumMessage(text, message.getSignature(), message.getRecoveryId()).value())
        .isEqualTo(address);

    Signing order =
        sign(key, WalletBackend.ecdsaIntent(name(key), path).setEthereumTypedData(TYPED_DATA));
    assertThat(fields(order)).contains("primary type: Order", "message.amounts[1]: 2");
    assertThat(
            outside
                .ethereumTypedData(TYPED_DATA, order.getSignature(), order.getRecoveryId())
                .value())
        .isEqualTo(address);

    ByteString psbt = outside.bitcoinDraft(child, 2, 60_000, SOMEONES_COINS, 500);
    BitcoinPsbt signed = BitcoinPsbt.decode(psbt);
    for (int input = 0; input < 2; input++) {
      Signing spent =
          sign(
              key,
              WalletBackend.ecdsaIntent(name(key), path)
                  .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt).setInput(input)));
      assertThat(fields(spent))
          .contains("input: " + input + " of 2", "output 0: 119500 to " + SOMEONES_COINS);
      signed = signed.signed(input, child, spent.getDerSignature());
    }
    OutsideVerifier.Verdict finalised = outside.bitcoinPsbt(signed.encoded());
    assertThat(finalised.valid()).as("%s", finalised).isTrue();
    assertThat(finalised.value()).startsWith("02000000000102");

    assertThat(signDigest(key).getDigest()).isEqualTo(ByteString.fromHex("5a".repeat(32)));
  }

  /** Waits until the coordinator has so many presignatures more, and makes none. */
  private static void awaitPool(double before, int presignatures) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while ((ready() < before + presignatures || presignatures("making") > 0)
        && System.nanoTime() < end) {
      LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
    }
    assertThat(ready()).isGreaterThanOrEqualTo(before + presignatures);
  }

  private static double ready() {
    return presignatures("ready");
  }

  private static double presignatures(String state) {
    return cluster.coordinator().metrics().sum("coterie_coordinator_presignatures_" + state);
  }

  @Test
  void presignaturesAreUsedOnceTheyAreThereAndNeverTwice() {
    Key key = createKey("presigned");
    double before = ready();
    assertThat(signDigest(key, 1).getPresigned()).as("nothing can be ready yet").isFalse();
    awaitPool(before, FIRST_WANTED);
    for (int i = 0; i < 2 * POOL; i++) {
      Signing signing = signDigest(key, 1);
      if (i < 2) {
        assertThat(signing.getPresigned()).isTrue();
      }
    }
    // The same digest was signed each time: a nonce used twice would give the same r.
    assertThat(
            IntStream.range(0, POOL)
                .mapToObj(i -> signDigest(key, 1).getSignature().substring(0, 32))
                .distinct())
        .hasSize(POOL);
  }

  @Test
  void aRefreshedKeySignsOnUnderTheSameAddress() {
    Key key = createKey("refreshed");
    double before = ready();
    signDigest(key, 2);
    awaitPool(before, 1);
    RefreshKeyRequest request =
        RefreshKeyRequest.newBuilder()
            .setSignedIntent(
                wallet.intents().sign(WalletBackend.refreshIntent(name(key), 1).build()))
            .build();

    Key refreshed = wallet.keys().refreshKey(request);

    assertThat(refreshed.getEpoch()).isEqualTo(2);
    assertThat(refreshed.getPublicKey()).isEqualTo(key.getPublicKey());
    assertThat(refreshed.getXpub()).isEqualTo(key.getXpub());
    assertThat(wallet.keys().refreshKey(request)).isEqualTo(refreshed);
    assertThat(wallet.keys().getKey(GetKeyRequest.newBuilder().setName(key.getName()).build()))
        .isEqualTo(refreshed);
    refused(ErrorReason.EPOCH_MISMATCH, () -> wallet.refreshKey(name(key), 1));
    for (int i = 0; i < 3; i++) {
      signDigest(key, 2);
    }
    assertThat(wallet.refreshKey(name(key), 2).getEpoch()).isEqualTo(3);
    signDigest(key, 2);
  }

  @Test
  void aSignerThatDiesWithAFullPoolStopsNobody() {
    Key key = createKey("bereft");
    double before = ready();
    Signing first = signDigest(key, 3);
    awaitPool(before, FIRST_WANTED);
    String victim = first.getSigningSet(0);
    cluster.kill(victim);
    try {
      for (int i = 0; i < 3; i++) {
        assertThat(signDigest(key, 3).getSigningSetList()).doesNotContain(victim);
      }
    } finally {
      cluster.restart(victim);
    }
    // The restarted signer has lost its presignatures; signing goes on with it and without.
    for (int i = 0; i < POOL; i++) {
      signDigest(key, 3);
    }
  }

  @Test
  void whatIsNoPayloadOfThisKeyIsRefusedWithItsProblem() throws IntentException {
    Key key = createKey("hostile");
    ByteString draft = outside.ethereumDraft(1, 3, SOMEONE, "5");
    assertProblem(
        IntentProblem.ETHEREUM_TRANSACTION_MALFORMED,
        WalletBackend.ecdsaIntent(name(key))
            .setEthereumTransaction(draft.substring(0, draft.size() - 1)));
    assertProblem(
        IntentProblem.ETHEREUM_TRANSACTION_TYPE,
        WalletBackend.ecdsaIntent(name(key))
            .setEthereumTransaction(ByteString.fromHex("03").concat(draft.substring(1))));
    assertProblem(
        IntentProblem.PAYLOAD_NOT_READ,
        WalletBackend.ecdsaIntent(name(key))
            .setEthereumTransaction(ByteString.fromHex("cb010182cf08808080018080")));
    assertProblem(
        IntentProblem.TYPED_DATA_VALUE,
        WalletBackend.ecdsaIntent(name(key))
            .setEthereumTypedData(TYPED_DATA.replace("\"2\"", "\"two\"")));
    ByteString psbt = outside.bitcoinDraft(child(key, 1), 1, 60_000, SOMEONES_COINS, 500);
    assertProblem(
        IntentProblem.PSBT_UTXO_NOT_OF_KEY,
        WalletBackend.ecdsaIntent(name(key), 2)
            .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt)));
    assertProblem(
        IntentProblem.PSBT_INPUT_UNKNOWN,
        WalletBackend.ecdsaIntent(name(key), 1)
            .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt).setInput(1)));
    refused(
        ErrorReason.INTENT_MALFORMED,
        () ->
            wallet.sign(
                WalletBackend.ecdsaIntent(name(key), -1)
                    .setDigest(ByteString.copyFrom(new byte[32]))));
    refused(
        ErrorReason.INTENT_MALFORMED,
        () ->
            wallet.sign(
                WalletBackend.ecdsaIntent(name(key)).setDigest(ByteString.copyFrom(new byte[31]))));
    assertThat(BitcoinAddress.of(child(key, 1), BitcoinAddress.Network.MAINNET)).startsWith("bc1q");
  }

  private static void assertProblem(IntentProblem problem, SigningIntent.Builder intent) {
    assertThat(
            refused(ErrorReason.PAYLOAD_INVALID, () -> wallet.sign(intent))
                .getMetadataOrDefault("problem", ""))
        .isEqualTo(problem.name());
  }

  @Test
  void aRequesterWhoMayNotSignDigestsIsRefusedByTheSigners() {
    WalletBackend auditor = cluster.backend(Cluster.AUDITOR);
    Key key = auditor.createEcdsaKey("audit-ecdsa", 2, cluster.partyNames());
    ByteString text = ByteString.copyFromUtf8("audited");
    assertThat(
            auditor.sign(WalletBackend.ecdsaIntent(name(key)).setEthereumMessage(text)).getState())
        .isEqualTo(Signing.State.SIGNED);
    refused(
        ErrorReason.FORBIDDEN,
        () ->
            auditor.sign(
                WalletBackend.ecdsaIntent(name(key)).setDigest(ByteString.copyFrom(new byte[32]))));
  }
}
