package io.coterie.acceptance.demo;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Edge;
import io.coterie.acceptance.cluster.InstallationCa;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Service;
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
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.TaprootOutput;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * {@code make demo}: a whole installation on this machine, keys that no party holds, signatures by
 * two of three parties, and their verification by implementations that are not ours. With {@code
 * EDGE=1} in the environment Envoy is in front of it; with {@code KEEP=1} it stays up.
 */
public final class Demo {
  private static final String KEY = "demo";
  private static final String MESSAGE =
      "withdrawal 4711: 1.25 ETH to 0x52908400098527886E0F7030069857D2E4169EE7";
  private static final String ECDSA_KEY = "demo-ecdsa";
  private static final Integer[] ETHEREUM_PATH = {0, 0};
  private static final Integer[] BITCOIN_PATH = {1, 0};
  private static final String RECIPIENT = "0x52908400098527886E0F7030069857D2E4169EE7";

  /** The first address of the example of BIP-84. */
  private static final String COINS_RECIPIENT = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu";

  private static final String SOLANA_KEY = "demo-solana";
  private static final String SOLANA_RECIPIENT = "J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99";
  private static final String TAPROOT_KEY = "demo-taproot";

  private static final int WARM_SIGNATURES = 30;
  private static final String KEYGEN = "bls_keygen";
  private static final String SIGN = "bls_sign";

  private final PrintStream out = System.out;
  private final long started = System.nanoTime();
  private final boolean color = System.console() != null && System.console().isTerminal();

  private Demo() {}

  public static void main(String[] args) throws InterruptedException {
    boolean verified;
    try {
      verified = new Demo().run(wanted("KEEP"), wanted("EDGE"));
    } catch (RuntimeException e) {
      System.err.println("the demo failed: " + e.getMessage());
      e.printStackTrace(System.err);
      verified = false;
    }
    System.exit(verified ? 0 : 1);
  }

  private static boolean wanted(String variable) {
    return !System.getenv().getOrDefault(variable, "").isBlank();
  }

  private boolean run(boolean keep, boolean edge) throws InterruptedException {
    title("Starting messaging, a coordinator and three signers" + (edge ? ", behind Envoy" : ""));
    Cluster.Builder plan =
        Cluster.of(3).threshold(2).folder(Path.of("build", "demo")).progress(this::step);
    if (edge) {
      plan.edge(Path.of(""));
    }
    try (OutsideVerifier outside = OutsideVerifier.start(Path.of(""));
        Cluster cluster = plan.start()) {

      title("Creating a 2-of-3 key by distributed key generation");
      Metrics before = cluster.metrics();
      long begin = System.nanoTime();
      Key key = cluster.createKey(KEY);
      double keyMs = millisSince(begin);
      Metrics keygen = cluster.metrics().since(before);
      row("key", key.getName() + ", " + key.getState() + ", epoch " + key.getEpoch());
      row("scheme", "BLS12-381, 48-byte keys in G1, proof-of-possession suite");
      row(
          "parties",
          key.getThreshold()
              + " of "
              + key.getPartiesCount()
              + ": "
              + String.join(", ", key.getPartiesList()));
      row("public key", hex(key.getPublicKey().toByteArray()));
      row("took", "%.0f ms, four rounds".formatted(keyMs));
      rounds(cluster, keygen, KEYGEN);

      title("Signing through the public gRPC API");
      WalletBackend wallet = cluster.wallet();
      byte[] message = MESSAGE.getBytes(StandardCharsets.UTF_8);
      SignRequest request =
          WalletBackend.signRequest(
              wallet.intents().sign(WalletBackend.signingIntent(KEY, message).build()));
      begin = System.nanoTime();
      Signing signing = wallet.signings().sign(request);
      double firstMs = millisSince(begin);
      Signing again = wallet.signings().sign(request);
      Metrics beforeWarm = cluster.metrics();
      List<Double> warm =
          IntStream.range(0, WARM_SIGNATURES)
              .mapToObj(
                  i -> {
                    long start = System.nanoTime();
                    wallet.sign(KEY, MESSAGE + " #" + i);
                    return millisSince(start);
                  })
              .sorted()
              .toList();
      Metrics sign = cluster.metrics().since(beforeWarm);
      row("message", MESSAGE);
      row("signed by", String.join(", ", signing.getSigningSetList()));
      row("signature", hex(signing.getSignature().toByteArray()));
      row(
          "same again",
          again.getSignature().equals(signing.getSignature())
              ? "the same request id gives the same bytes"
              : "THE SAME REQUEST ID GAVE OTHER BYTES");
      row(
          "took",
          "%.0f ms the first, then %.1f ms in the median of %d"
              .formatted(firstMs, warm.get(warm.size() / 2), warm.size()));
      rounds(cluster, sign, SIGN);

      title("On the wire");
      out.printf("  %-22s %12s %14s%n", "", "requests", "bytes sent");
      traffic("one key generation", keygen, 1);
      traffic("one signature", sign, WARM_SIGNATURES);

      title("Verifying with an implementation that is not ours");
      byte[] publicKey = key.getPublicKey().toByteArray();
      byte[] signature = signing.getSignature().toByteArray();
      OutsideVerifier.Verdict verdict =
          outside.verify(publicKey, message, signature, key.getProofOfPossession().toByteArray());
      byte[] altered = message.clone();
      altered[0] ^= 1;
      boolean refused = !outside.verify(publicKey, altered, signature).valid();
      row("signature", verdict.valid() ? "valid, says " + verdict.by() : "NOT VALID");
      row("one bit flipped", refused ? "refused" : "ACCEPTED");
      boolean good =
          verdict.valid()
              && refused
              && again.getSignature().equals(signing.getSignature())
              && ecdsa(cluster, outside)
              && solana(cluster, outside)
              && taproot(cluster, outside)
              && (!edge || throughTheEdge(cluster));
      if (good && keep) {
        stay(cluster);
      }
      if (good) {
        title("Done in %.1f s".formatted(millisSince(started) / 1000));
      }
      return good;
    }
  }

  /** An Ethereum and a Bitcoin address of one key, and a transfer from each. */
  private boolean ecdsa(Cluster cluster, OutsideVerifier outside) {
    title("Creating a 2-of-3 ECDSA key, and spending from its addresses");
    WalletBackend wallet = cluster.wallet();
    long begin = System.nanoTime();
    Key key = wallet.createEcdsaKey(ECDSA_KEY, cluster.threshold(), cluster.partyNames());
    row("key", key.getName() + ", " + key.getState() + ", secp256k1");
    row("xpub", key.getXpub());
    row(
        "took",
        "%.0f ms, by oblivious transfer between each two parties".formatted(millisSince(begin)));
    ExtendedPublicKey root = ExtendedPublicKey.parse(key.getXpub());

    ByteString ethereumKey = root.derive(List.of(ETHEREUM_PATH)).publicKey();
    String sender = EthereumAddress.of(ethereumKey);
    out.println();
    row("Ethereum m/0/0", sender);
    ByteString draft = outside.ethereumDraft(1, 0, RECIPIENT, "1250000000000000000");
    begin = System.nanoTime();
    Signing transfer =
        wallet.sign(
            WalletBackend.ecdsaIntent(ECDSA_KEY, ETHEREUM_PATH).setEthereumTransaction(draft));
    double transferMs = millisSince(begin);
    fields(transfer);
    ByteString raw = signedTransaction(draft, transfer);
    row("raw transaction", "0x" + hex(raw.toByteArray()));
    OutsideVerifier.Verdict recovered = outside.ethereumTransaction(raw);
    row(
        "sender",
        recovered.valid() && recovered.value().equals(sender)
            ? recovered.value() + ", recovered by " + recovered.by()
            : "WRONG: " + recovered.value());

    ByteString bitcoinKey = root.derive(List.of(BITCOIN_PATH)).publicKey();
    out.println();
    row("Bitcoin m/1/0", BitcoinAddress.of(bitcoinKey, BitcoinAddress.Network.MAINNET));
    ByteString unsigned = outside.bitcoinDraft(bitcoinKey, 1, 60_000, COINS_RECIPIENT, 500);
    begin = System.nanoTime();
    Signing spent;
    OutsideVerifier.Verdict finalised;
    try {
      ByteString psbt = BitcoinPsbt.canonical(unsigned);
      spent =
          wallet.sign(
              WalletBackend.ecdsaIntent(ECDSA_KEY, BITCOIN_PATH)
                  .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt)));
      finalised =
          outside.bitcoinPsbt(
              BitcoinPsbt.decode(psbt).signed(0, bitcoinKey, spent.getDerSignature()).encoded());
    } catch (IntentException e) {
      throw new IllegalStateException("bitcoinjs-lib's draft is refused: " + e.getMessage(), e);
    }
    double spentMs = millisSince(begin);
    fields(spent);
    row(
        "final",
        finalised.valid() ? finalised.value() + ", made by " + finalised.by() : "NOT VALID");
    out.println();
    row("took", "%.0f ms and %.0f ms".formatted(transferMs, spentMs));
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
                  return millisSince(start);
                })
            .sorted()
            .toList();
    row(
        "then",
        "%d messages, %d of them in one round with presignatures, %.1f ms in the median"
            .formatted(
                more.size(),
                more.stream().filter(Signing::getPresigned).count(),
                times.get(times.size() / 2)));
    return recovered.valid() && recovered.value().equals(sender) && finalised.valid();
  }

  /** A transfer on Solana. */
  private boolean solana(Cluster cluster, OutsideVerifier outside) {
    title("Creating a 2-of-3 Ed25519 key, and signing a Solana transaction");
    WalletBackend wallet = cluster.wallet();
    long begin = System.nanoTime();
    Key key =
        wallet.createKey(
            SOLANA_KEY, Scheme.SCHEME_ED25519, cluster.threshold(), cluster.partyNames());
    row("key", key.getName() + ", " + key.getState() + ", Ed25519");
    row("took", "%.0f ms, by FROST".formatted(millisSince(begin)));
    String sender = SolanaAddress.of(key.getPublicKey());
    row("Solana", sender);
    ByteString draft = outside.solanaDraft("0", sender, SOLANA_RECIPIENT, 1_250_000_000);
    begin = System.nanoTime();
    Signing transfer =
        wallet.sign(
            WalletBackend.signingIntent(SOLANA_KEY, Scheme.SCHEME_ED25519)
                .setSolanaTransaction(draft));
    double transferMs = millisSince(begin);
    fields(transfer);
    OutsideVerifier.Verdict verdict;
    try {
      verdict =
          outside.solanaTransaction(
              SolanaTransaction.decode(draft).signed(key.getPublicKey(), transfer.getSignature()));
    } catch (IntentException e) {
      throw new IllegalStateException("the draft is refused: " + e.getMessage(), e);
    }
    boolean good = verdict.valid() && verdict.value().equals(sender);
    row("transaction", good ? "valid, paid by its sender, says " + verdict.by() : "NOT VALID");
    row("took", "%.0f ms".formatted(transferMs));
    return good;
  }

  /** A spend from a Taproot address by its key path. */
  private boolean taproot(Cluster cluster, OutsideVerifier outside) {
    title("Creating a 2-of-3 BIP-340 key, and spending from a Taproot address");
    WalletBackend wallet = cluster.wallet();
    long begin = System.nanoTime();
    Key key =
        wallet.createKey(
            TAPROOT_KEY, Scheme.SCHEME_BIP340_SECP256K1, cluster.threshold(), cluster.partyNames());
    row("key", key.getName() + ", " + key.getState() + ", BIP-340 on secp256k1");
    row("took", "%.0f ms, by FROST".formatted(millisSince(begin)));
    List<Integer> path = List.of(BITCOIN_PATH);
    ByteString outputKey =
        TaprootKey.output(
            TaprootKey.xOnly(ExtendedPublicKey.parse(key.getXpub()).derive(path).publicKey()),
            ByteString.EMPTY);
    row("Bitcoin m/1/0", BitcoinAddress.taproot(outputKey, BitcoinAddress.Network.MAINNET));
    ByteString unsigned =
        outside.taprootDraft(
            key.getXpub(), path, ByteString.EMPTY, 1, 60_000, COINS_RECIPIENT, 500);
    begin = System.nanoTime();
    Signing spent;
    OutsideVerifier.Verdict finalised;
    try {
      ByteString psbt = BitcoinPsbt.canonical(unsigned);
      spent =
          wallet.sign(
              WalletBackend.signingIntent(TAPROOT_KEY, Scheme.SCHEME_BIP340_SECP256K1)
                  .addAllDerivationPath(path)
                  .setTaproot(TaprootOutput.getDefaultInstance())
                  .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt)));
      finalised =
          outside.bitcoinPsbt(
              BitcoinPsbt.decode(psbt).signedTaproot(0, outputKey, spent.getSignature()).encoded());
    } catch (IntentException e) {
      throw new IllegalStateException("bitcoinjs-lib's draft is refused: " + e.getMessage(), e);
    }
    double spentMs = millisSince(begin);
    fields(spent);
    row(
        "final",
        finalised.valid() ? finalised.value() + ", made by " + finalised.by() : "NOT VALID");
    row("took", "%.0f ms".formatted(spentMs));
    return finalised.valid();
  }

  /** What Envoy makes of all that, and JSON. */
  private boolean throughTheEdge(Cluster cluster) throws InterruptedException {
    title("Through the edge: Envoy, with the file that is used on a cluster");
    Edge edge = cluster.edge().orElseThrow();
    URI uri = edge.clients().resolve("/v1/keys/" + KEY);
    HttpResponse<String> answer;
    try (HttpClient http = HttpClient.newBuilder().sslContext(cluster.wallet().tls()).build()) {
      answer = http.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String requestId = answer.headers().firstValue("x-request-id").orElseThrow();
    Metrics metrics = edge.metrics();
    double signatures =
        metrics.sum(
            "envoy_cluster_grpc_success", s -> s.label("envoy_grpc_bridge_method").equals("Sign"));
    double sockets =
        metrics.sum(
            "envoy_http_downstream_cx_upgrades_active",
            s -> s.label("envoy_http_conn_manager_prefix").equals("parties"));
    row(
        "gRPC",
        "%s, where the %.0f signatures above have gone through"
            .formatted(cluster.endpoint(), signatures));
    row("signers", "%.0f WebSockets at %s".formatted(sockets, edge.parties()));
    row("JSON", "GET %s: %d".formatted(uri, answer.statusCode()));
    row("", answer.body());
    row("access log", edge.accessLogLine(requestId));
    row("metrics", edge.management() + "/stats/prometheus, such as");
    row(
        "",
        "envoy_cluster_grpc_success{envoy_grpc_bridge_method=\"Sign\"} %.0f".formatted(signatures));
    return answer.statusCode() == 200
        && answer.body().contains("\"state\":\"ACTIVE\"")
        && signatures > WARM_SIGNATURES
        && sockets >= cluster.partyNames().size();
  }

  private static ByteString signedTransaction(ByteString draft, Signing signing) {
    try {
      return EthereumTransaction.decode(draft)
          .signed(signing.getSignature(), signing.getRecoveryId());
    } catch (IntentException e) {
      throw new IllegalStateException("the draft of ethers is refused: " + e.getMessage(), e);
    }
  }

  /** What every signer understood before it agreed. */
  private void fields(Signing signing) {
    row(
        "signed by",
        String.join(", ", signing.getSigningSetList())
            + (signing.getPresigned() ? ", with a presignature" : ""));
    row(
        "who understood",
        signing.getDecoded().getFieldsList().stream()
            .map(field -> field.getName() + " " + field.getValue())
            .collect(Collectors.joining(", ")));
  }

  private void stay(Cluster cluster) throws InterruptedException {
    String profile = "--profile " + relative(cluster.writeProfile(Cluster.WALLET));
    title("Everything stays up; Ctrl-C ends it");
    cluster
        .edge()
        .ifPresent(
            edge -> {
              row("gRPC and JSON", cluster.endpoint() + " (Envoy; mutual TLS)");
              row("for signers", edge.parties() + " (Envoy)");
              row("Envoy", edge.management() + "/stats/prometheus");
              row("its log", relative(edge.log()).toString());
            });
    row("coordinator", "localhost:" + cluster.apiPort() + " (gRPC, mutual TLS, reflection on)");
    row("messaging", "https://localhost:" + cluster.messagingPort());
    for (Service service : cluster.services()) {
      row(service.name(), service.management() + "/actuator/prometheus");
    }
    row("log of all", relative(cluster.coordinator().log()).toString());
    out.println();
    out.println("  Try:");
    out.println("    bin/coterie doctor " + profile);
    out.println("    bin/coterie keys list " + profile);
    out.println("    bin/coterie sign " + KEY + " --message 'hello' " + profile);
    out.println(
        "    bin/coterie key show " + ECDSA_KEY + " --address ethereum --path m/0/0 " + profile);
    out.println(
        "    bin/coterie sign "
            + ECDSA_KEY
            + " --path m/0/0 --ethereum-message 'hello' "
            + profile);
    out.println("    bin/coterie key show " + SOLANA_KEY + " --address solana " + profile);
    out.println(
        "    bin/coterie key show " + TAPROOT_KEY + " --address bitcoin --path m/1/0 " + profile);
    InstallationCa.Leaf tls = cluster.wallet().certificate();
    out.println(
        cluster.edge().isEmpty()
            ? "    make demo KEEP=1 EDGE=1: the same with Envoy in front, JSON, an access log"
            : "    curl --cacert %s --cert %s --key %s https://%s/v1/keys/%s"
                .formatted(
                    relative(cluster.ca().certificateFile()),
                    relative(tls.certificate()),
                    relative(tls.key()),
                    cluster.endpoint(),
                    KEY));
    out.println("    make load; make load K6=1: sign at a steady rate, every signature verified");
    out.println();
    CountDownLatch interrupted = new CountDownLatch(1);
    Thread main = Thread.currentThread();
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  interrupted.countDown();
                  try {
                    main.join(20_000);
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                }));
    interrupted.await();
  }

  /** Mean time of each round at each party, from the signers' Prometheus endpoints. */
  private void rounds(Cluster cluster, Metrics metrics, String protocol) {
    String timer = "coterie_protocol_round_seconds";
    Predicate<Metrics.Sample> ofProtocol = s -> s.label("protocol").equals(protocol);
    List<String> rounds =
        metrics.samples().stream()
            .filter(s -> s.name().equals(timer + "_count") && ofProtocol.test(s) && s.value() > 0)
            .map(s -> s.label("round"))
            .distinct()
            .sorted()
            .toList();
    StringBuilder header = new StringBuilder("  %-14s".formatted("round"));
    cluster.partyNames().forEach(p -> header.append("%14s".formatted(p)));
    out.println();
    out.println(header.append("   slowest peer"));
    for (String round : rounds) {
      StringBuilder line = new StringBuilder("  %-14s".formatted(round));
      for (String party : cluster.partyNames()) {
        Predicate<Metrics.Sample> series =
            s ->
                ofProtocol.test(s)
                    && s.label("round").equals(round)
                    && s.label("party").equals(party);
        double count = metrics.sum(timer + "_count", series);
        line.append(
            count == 0
                ? "%14s".formatted("-")
                : "%11.1f ms".formatted(1000 * metrics.sum(timer + "_sum", series) / count));
      }
      out.println(line.append("   ").append(straggler(metrics, protocol, round)));
    }
  }

  private static String straggler(Metrics metrics, String protocol, String round) {
    String timer = "coterie_protocol_wait_seconds_sum";
    return metrics.samples().stream()
        .filter(
            s ->
                s.name().equals(timer)
                    && s.label("protocol").equals(protocol)
                    && s.label("round").equals(round)
                    && s.value() > 0)
        .max((a, b) -> Double.compare(a.value(), b.value()))
        .map(s -> s.label("straggler"))
        .orElse("-");
  }

  private void traffic(String what, Metrics metrics, int runs) {
    out.printf(
        Locale.ROOT,
        "  %-22s %12.1f %14.0f%n",
        what,
        metrics.sum("coterie_channel_requests_total") / runs,
        metrics.sum("coterie_channel_bytes_total", s -> s.label("direction").equals("out")) / runs);
  }

  private void title(String text) {
    out.println();
    out.println(color ? "\u001b[1m" + text + "\u001b[0m" : text);
  }

  private void step(String text) {
    out.printf(Locale.ROOT, "  %5.1f s  %s%n", millisSince(started) / 1000, text);
  }

  private void row(String label, String value) {
    out.printf("  %-16s %s%n", label, value);
  }

  private static Path relative(Path file) {
    return Path.of("").toAbsolutePath().relativize(file);
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  private static double millisSince(long nanos) {
    return (System.nanoTime() - nanos) / 1e6;
  }
}
