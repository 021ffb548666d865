package io.coterie.acceptance.demo;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.ClusterPlan;
import io.coterie.acceptance.cluster.Edge;
import io.coterie.acceptance.cluster.InstallationCa;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.MetricsUser;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Service;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;

/**
 * {@code make demo}: a whole installation on this machine, keys that no party holds, signatures by
 * two of three parties, and their verification by implementations that are not ours. With {@code
 * EDGE=1} in the environment Envoy is in front of it; with {@code KEEP=1} it stays up.
 */
public final class Demo {
  private static final String KEY = "demo";

  private static final String KEYGEN = "bls_keygen";
  private static final String SIGN = "bls_sign";

  private final Page page = new Page();

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
    page.title(
        "Starting messaging, a coordinator and three signers" + (edge ? ", behind Envoy" : ""));
    ClusterPlan plan =
        Cluster.of(3).threshold(2).folder(Path.of("build", "demo")).progress(page::step);
    if (edge) {
      plan.edge(Path.of(""));
    }
    try (OutsideVerifier outside = OutsideVerifier.start(Path.of(""));
        Cluster cluster = plan.start()) {

      page.title("Creating a 2-of-3 key by distributed key generation");
      Metrics before = cluster.metrics();
      long begin = System.nanoTime();
      Key key = cluster.createKey(KEY);
      double keyMs = Page.millisSince(begin);
      Metrics keygen = cluster.metrics().since(before);
      page.row("key", key.getName() + ", " + key.getState() + ", epoch " + key.getEpoch());
      page.row("scheme", "BLS12-381, 48-byte keys in G1, proof-of-possession suite");
      page.row(
          "parties",
          key.getThreshold()
              + " of "
              + key.getPartiesCount()
              + ": "
              + String.join(", ", key.getPartiesList()));
      page.row("public key", Page.hex(key.getPublicKey().toByteArray()));
      page.row("took", "%.0f ms, four rounds".formatted(keyMs));
      page.rounds(cluster, keygen, KEYGEN);

      page.title("Signing through the public gRPC API");
      WalletBackend wallet = cluster.wallet();
      byte[] message = Transfers.MESSAGE.getBytes(StandardCharsets.UTF_8);
      SignRequest request =
          WalletBackend.signRequest(
              wallet.intents().sign(WalletBackend.signingIntent(KEY, message).build()));
      begin = System.nanoTime();
      Signing signing = wallet.signings().sign(request);
      double firstMs = Page.millisSince(begin);
      Signing again = wallet.signings().sign(request);
      Metrics beforeWarm = cluster.metrics();
      List<Double> warm =
          IntStream.range(0, Transfers.WARM_SIGNATURES)
              .mapToObj(
                  i -> {
                    long start = System.nanoTime();
                    wallet.sign(KEY, Transfers.MESSAGE + " #" + i);
                    return Page.millisSince(start);
                  })
              .sorted()
              .toList();
      Metrics sign = cluster.metrics().since(beforeWarm);
      page.row("message", Transfers.MESSAGE);
      page.row("signed by", String.join(", ", signing.getSigningSetList()));
      page.row("signature", Page.hex(signing.getSignature().toByteArray()));
      page.row(
          "same again",
          again.getSignature().equals(signing.getSignature())
              ? "the same request id gives the same bytes"
              : "THE SAME REQUEST ID GAVE OTHER BYTES");
      page.row(
          "took",
          "%.0f ms the first, then %.1f ms in the median of %d"
              .formatted(firstMs, warm.get(warm.size() / 2), warm.size()));
      page.rounds(cluster, sign, SIGN);

      page.title("On the wire");
      page.line("  %-22s %12s %14s".formatted("", "requests", "bytes sent"));
      page.traffic("one key generation", keygen, 1);
      page.traffic("one signature", sign, Transfers.WARM_SIGNATURES);

      page.title("Verifying with an implementation that is not ours");
      byte[] publicKey = key.getPublicKey().toByteArray();
      byte[] signature = signing.getSignature().toByteArray();
      OutsideVerifier.Verdict verdict =
          outside.verify(publicKey, message, signature, key.getProofOfPossession().toByteArray());
      byte[] altered = message.clone();
      altered[0] ^= 1;
      boolean refused = !outside.verify(publicKey, altered, signature).valid();
      page.row("signature", verdict.valid() ? "valid, says " + verdict.by() : "NOT VALID");
      page.row("one bit flipped", refused ? "refused" : "ACCEPTED");
      Transfers transfers = new Transfers(page, cluster, outside);
      boolean good =
          verdict.valid()
              && refused
              && again.getSignature().equals(signing.getSignature())
              && transfers.ecdsa()
              && transfers.solana()
              && transfers.taproot()
              && new Approvers(page, cluster).release(KEY)
              && (!edge || throughTheEdge(cluster));
      if (good && keep) {
        stay(cluster);
      }
      if (good) {
        page.title("Done in %.1f s".formatted(page.seconds()));
      }
      return good;
    }
  }

  /** Envoy's part in all that, and a call in JSON. */
  private boolean throughTheEdge(Cluster cluster) throws InterruptedException {
    page.title("Through the edge: Envoy, with the file that is used on a cluster");
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
    page.row(
        "gRPC",
        "%s, where the %.0f signatures above have gone through"
            .formatted(cluster.endpoint(), signatures));
    page.row("signers", "%.0f WebSockets at %s".formatted(sockets, edge.parties()));
    page.row("JSON", "GET %s: %d".formatted(uri, answer.statusCode()));
    page.row("", answer.body());
    page.row("access log", edge.accessLogLine(requestId));
    page.row("metrics", edge.management() + "/stats/prometheus, such as");
    page.row(
        "",
        "envoy_cluster_grpc_success{envoy_grpc_bridge_method=\"Sign\"} %.0f".formatted(signatures));
    return answer.statusCode() == 200
        && answer.body().contains("\"state\":\"ACTIVE\"")
        && signatures > Transfers.WARM_SIGNATURES
        && sockets >= cluster.partyNames().size();
  }

  private void stay(Cluster cluster) throws InterruptedException {
    String profile = "--profile " + relative(cluster.writeProfile(Cluster.WALLET));
    page.title("Everything stays up; Ctrl-C ends it");
    cluster
        .edge()
        .ifPresent(
            edge -> {
              page.row("gRPC and JSON", cluster.endpoint() + " (Envoy; mutual TLS)");
              page.row("for signers", edge.parties() + " (Envoy)");
              page.row("Envoy", edge.management() + "/stats/prometheus");
              page.row("its log", relative(edge.log()).toString());
            });
    page.row(
        "coordinator", "localhost:" + cluster.apiPort() + " (gRPC, mutual TLS, reflection on)");
    page.row("messaging", "https://localhost:" + cluster.messagingPort());
    for (Service service : cluster.services()) {
      page.row(service.name(), service.management() + "/actuator/prometheus");
    }
    page.row(
        "for metrics",
        "user %s, password in %s"
            .formatted(MetricsUser.NAME, relative(cluster.metricsUser().passwordFile())));
    page.row("log of all", relative(cluster.coordinator().log()).toString());
    page.gap();
    page.line("  Try:");
    page.line("    bin/coterie doctor " + profile);
    page.line("    bin/coterie keys list " + profile);
    page.line("    bin/coterie sign " + KEY + " --message 'hello' " + profile);
    page.line(
        "    bin/coterie key show "
            + Transfers.ECDSA_KEY
            + " --address ethereum --path m/0/0 "
            + profile);
    page.line(
        "    bin/coterie sign "
            + Transfers.ECDSA_KEY
            + " --path m/0/0 --ethereum-message 'hello' "
            + profile);
    page.line("    bin/coterie key show " + Transfers.SOLANA_KEY + " --address solana " + profile);
    page.line(
        "    bin/coterie key show "
            + Transfers.TAPROOT_KEY
            + " --address bitcoin --path m/1/0 "
            + profile);
    InstallationCa.Leaf tls = cluster.wallet().certificate();
    page.line(
        cluster.edge().isEmpty()
            ? "    make demo KEEP=1 EDGE=1: the same with Envoy in front, JSON, an access log"
            : "    curl --cacert %s --cert %s --key %s https://%s/v1/keys/%s"
                .formatted(
                    relative(cluster.ca().certificateFile()),
                    relative(tls.certificate()),
                    relative(tls.key()),
                    cluster.endpoint(),
                    KEY));
    page.line("    make load; make load K6=1: sign at a steady rate, every signature verified");
    page.gap();
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

  private static Path relative(Path file) {
    return Path.of("").toAbsolutePath().relativize(file);
  }
}
