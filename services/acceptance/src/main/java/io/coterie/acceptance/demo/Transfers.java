package io.coterie.acceptance.demo;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.payload.BitcoinAddress;
import io.coterie.platform.payload.BitcoinPsbt;
import io.coterie.platform.payload.EthereumAddress;
import io.coterie.platform.payload.EthereumTransaction;
import io.coterie.platform.payload.SolanaAddress;
import io.coterie.platform.payload.SolanaTransaction;
import io.coterie.platform.scheme.TaprootKey;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Transfers on Ethereum, Bitcoin and Solana, each checked by the chain's usual library. */
final class Transfers {
  static final String MESSAGE =
      "withdrawal 4711: 1.25 ETH to 0x52908400098527886E0F7030069857D2E4169EE7";

  /** Signatures for a median. */
  static final int WARM_SIGNATURES = 30;

  static final String ECDSA_KEY = "demo-ecdsa";
  private static final Integer[] ETHEREUM_PATH = {0, 0};
  private static final Integer[] BITCOIN_PATH = {1, 0};
  private static final String RECIPIENT = "0x52908400098527886E0F7030069857D2E4169EE7";
  static final String SOLANA_KEY = "demo-solana";
  private static final String SOLANA_RECIPIENT = "J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99";
  static final String TAPROOT_KEY = "demo-taproot";

  /** The first address of the example of BIP-84. */
  private static final String COINS_RECIPIENT = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu";

  private final Page page;
  private final Cluster cluster;
  private final OutsideVerifier outside;

  Transfers(Page page, Cluster cluster, OutsideVerifier outside) {
    this.page = page;
    this.cluster = cluster;
    this.outside = outside;
  }

  /** An Ethereum and a Bitcoin address of one key, and a transfer from each. */
  boolean ecdsa() {
    page.title("Creating a 2-of-3 ECDSA key, and spending from its addresses");
    WalletBackend wallet = cluster.wallet();
    long begin = System.nanoTime();
    Key key = wallet.createEcdsaKey(ECDSA_KEY, cluster.threshold(), cluster.partyNames());
    page.row("key", key.getName() + ", " + key.getState() + ", secp256k1");
    page.row("xpub", key.getXpub());
    page.row(
        "took",
        "%.0f ms, by oblivious transfer between each two parties"
            .formatted(Page.millisSince(begin)));
    ExtendedPublicKey root = ExtendedPublicKey.parse(key.getXpub());

    ByteString ethereumKey = root.derive(List.of(ETHEREUM_PATH)).publicKey();
    String sender = EthereumAddress.of(ethereumKey);
    page.gap();
    page.row("Ethereum m/0/0", sender);
    ByteString draft = outside.ethereumDraft(1, 0, RECIPIENT, "1250000000000000000");
    begin = System.nanoTime();
    Signing transfer =
        wallet.sign(
            WalletBackend.ecdsaIntent(ECDSA_KEY, ETHEREUM_PATH).setEthereumTransaction(draft));
    double transferMs = Page.millisSince(begin);
    page.fields(transfer);
    ByteString raw = signedTransaction(draft, transfer);
    page.row("raw transaction", "0x" + Page.hex(raw.toByteArray()));
    OutsideVerifier.Verdict recovered = outside.ethereumTransaction(raw);
    page.row(
        "sender",
        recovered.valid() && recovered.value().equals(sender)
            ? recovered.value() + ", recovered by " + recovered.by()
            : "WRONG: " + recovered.value());

    ByteString bitcoinKey = root.derive(List.of(BITCOIN_PATH)).publicKey();
    page.gap();
    page.row("Bitcoin m/1/0", BitcoinAddress.of(bitcoinKey, BitcoinAddress.Network.MAINNET));
    ByteString unsigned = outside.bitcoinDraft(bitcoinKey, 1, 60_000, COINS_RECIPIENT, 500);
    begin = System.nanoTime();
    Spent spent =
        spend(
            WalletBackend.ecdsaIntent(ECDSA_KEY, BITCOIN_PATH),
            unsigned,
            (psbt, signing) -> psbt.signed(0, bitcoinKey, signing.getDerSignature()));
    double spentMs = Page.millisSince(begin);
    show(spent);
    page.gap();
    page.row("took", "%.0f ms and %.0f ms".formatted(transferMs, spentMs));
    List<Signing> more = new ArrayList<>();
    List<Double> times =
        IntStream.range(0, WARM_SIGNATURES)
            .mapToObj(
                i -> {
                  long start = System.nanoTime();
                  more.add(
                      wallet.sign(
                          WalletBackend.ecdsaIntent(ECDSA_KEY, ETHEREUM_PATH)
                              .setEthereumMessage(ByteString.copyFromUtf8(MESSAGE + " #" + i))));
                  return Page.millisSince(start);
                })
            .sorted()
            .toList();
    page.row(
        "then",
        "%d messages, %d of them in one round with presignatures, %.1f ms in the median"
            .formatted(
                more.size(),
                more.stream().filter(Signing::getPresigned).count(),
                times.get(times.size() / 2)));
    return recovered.valid() && recovered.value().equals(sender) && spent.finalised().valid();
  }

  /** A transfer on Solana. */
  boolean solana() {
    page.title("Creating a 2-of-3 Ed25519 key, and signing a Solana transaction");
    WalletBackend wallet = cluster.wallet();
    long begin = System.nanoTime();
    Key key =
        wallet.createKey(
            SOLANA_KEY, Scheme.SCHEME_ED25519, cluster.threshold(), cluster.partyNames());
    page.row("key", key.getName() + ", " + key.getState() + ", Ed25519");
    page.row("took", "%.0f ms, by FROST".formatted(Page.millisSince(begin)));
    String sender = SolanaAddress.of(key.getPublicKey());
    page.row("Solana", sender);
    ByteString draft = outside.solanaDraft("0", sender, SOLANA_RECIPIENT, 1_250_000_000);
    begin = System.nanoTime();
    Signing transfer =
        wallet.sign(
            WalletBackend.signingIntent(SOLANA_KEY, Scheme.SCHEME_ED25519)
                .setSolanaTransaction(draft));
    double transferMs = Page.millisSince(begin);
    page.fields(transfer);
    OutsideVerifier.Verdict verdict;
    try {
      verdict =
          outside.solanaTransaction(
              SolanaTransaction.decode(draft).signed(key.getPublicKey(), transfer.getSignature()));
    } catch (IntentException e) {
      throw new IllegalStateException("the draft is refused: " + e.getMessage(), e);
    }
    boolean good = verdict.valid() && verdict.value().equals(sender);
    page.row("transaction", good ? "valid, paid by its sender, says " + verdict.by() : "NOT VALID");
    page.row("took", "%.0f ms".formatted(transferMs));
    return good;
  }

  /** A spend from a Taproot address by its key path. */
  boolean taproot() {
    page.title("Creating a 2-of-3 BIP-340 key, and spending from a Taproot address");
    WalletBackend wallet = cluster.wallet();
    long begin = System.nanoTime();
    Key key =
        wallet.createKey(
            TAPROOT_KEY, Scheme.SCHEME_BIP340_SECP256K1, cluster.threshold(), cluster.partyNames());
    page.row("key", key.getName() + ", " + key.getState() + ", BIP-340 on secp256k1");
    page.row("took", "%.0f ms, by FROST".formatted(Page.millisSince(begin)));
    List<Integer> path = List.of(BITCOIN_PATH);
    ByteString outputKey =
        TaprootKey.output(
            TaprootKey.xOnly(ExtendedPublicKey.parse(key.getXpub()).derive(path).publicKey()),
            ByteString.EMPTY);
    page.row("Bitcoin m/1/0", BitcoinAddress.taproot(outputKey, BitcoinAddress.Network.MAINNET));
    ByteString unsigned =
        outside.taprootDraft(
            key.getXpub(), path, ByteString.EMPTY, 1, 60_000, COINS_RECIPIENT, 500);
    begin = System.nanoTime();
    Spent spent =
        spend(
            WalletBackend.signingIntent(TAPROOT_KEY, Scheme.SCHEME_BIP340_SECP256K1)
                .addAllDerivationPath(path)
                .setTaproot(TaprootOutput.getDefaultInstance()),
            unsigned,
            (psbt, signing) -> psbt.signedTaproot(0, outputKey, signing.getSignature()));
    double spentMs = Page.millisSince(begin);
    show(spent);
    page.row("took", "%.0f ms".formatted(spentMs));
    return spent.finalised().valid();
  }

  /** Puts a signature into the first input of a PSBT. */
  private interface Input {
    BitcoinPsbt sign(BitcoinPsbt psbt, Signing signing) throws IntentException;
  }

  /** A signed input, and the final transaction that bitcoinjs-lib makes of it. */
  private record Spent(Signing signing, OutsideVerifier.Verdict finalised) {}

  private Spent spend(SigningIntent.Builder intent, ByteString psbt, Input input) {
    try {
      Signing signing =
          cluster.wallet().sign(intent.setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt)));
      return new Spent(
          signing, outside.bitcoinPsbt(input.sign(BitcoinPsbt.decode(psbt), signing).encoded()));
    } catch (IntentException e) {
      throw new IllegalStateException("bitcoinjs-lib's draft is refused: " + e.getMessage(), e);
    }
  }

  private void show(Spent spent) {
    page.fields(spent.signing());
    OutsideVerifier.Verdict made = spent.finalised();
    page.row("final", made.valid() ? made.value() + ", made by " + made.by() : "NOT VALID");
  }

  private static ByteString signedTransaction(ByteString draft, Signing signing) {
    try {
      return EthereumTransaction.decode(draft)
          .signed(signing.getSignature(), signing.getRecoveryId());
    } catch (IntentException e) {
      throw new IllegalStateException("the draft of ethers is refused: " + e.getMessage(), e);
    }
  }
}
