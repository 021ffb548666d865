package io.coterie.acceptance.bench;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.channel.SendMode;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Part of {@code make bench-circuits}: signatures as RFC 8032 says with an imported Ed25519 key,
 * through the public API of a whole installation in this process, one after another. First each
 * prepares in its session, then each finds one that its pair has prepared. Prints lines of the CSV;
 * the argument is the number of signatures.
 */
public final class ExactSignatures {
  private static final String KEY = "owned";
  private static final String SCHEME = "circuit";
  private static final int PARTIES = 3;
  private static final int THRESHOLD = 2;
  private static final int SEED_BYTES = 32;

  /** Of a message of one block of SHA-512, and of a small transaction. */
  private static final List<Integer> MESSAGE_BYTES = List.of(40, 300);

  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final Cluster cluster;
  private final Rows rows = new Rows();
  private int signed;

  private ExactSignatures(Cluster cluster) {
    this.cluster = cluster;
  }

  public static void main(String[] args) {
    int runs = Integer.parseInt(args[0]);
    try (Cluster cluster =
        Cluster.of(PARTIES)
            .threshold(THRESHOLD)
            .folder(Path.of("build", "bench", "exact-cluster"))
            .start()) {
      new ExactSignatures(cluster).run(runs);
    } catch (RuntimeException e) {
      System.err.println("the benchmark failed: " + e.getMessage());
      e.printStackTrace(System.err);
      System.exit(1);
    }
    System.exit(0);
  }

  private void run(int runs) {
    byte[] seed = new byte[SEED_BYTES];
    new SecureRandom().nextBytes(seed);
    cluster.wallet().importKey(KEY, seed);
    restart("--coterie.coordinator.presignatures.target=0");
    measure(Math.max(3, runs / 5), false);
    restart();
    measure(runs, true);
    rows.print(System.out);
  }

  private void restart(String... more) {
    cluster.coordinator().close();
    cluster.coordinator().start(more);
    cluster.coordinator().awaitReady(PATIENCE);
    cluster.wallet().keys().withWaitForReady().listKeys(ListKeysRequest.getDefaultInstance());
  }

  private void measure(int runs, boolean prepared) {
    for (int length : MESSAGE_BYTES) {
      // The services' code is compiled, each pair sets up, and what is used is in demand.
      for (int i = 0; i < runs; i++) {
        awaitPrepared();
        sign(length);
      }
      List<Double> latencies = new ArrayList<>();
      int found = 0;
      for (int i = 0; i < runs; i++) {
        awaitPrepared();
        long begin = System.nanoTime();
        Signing signing = sign(length);
        latencies.add((System.nanoTime() - begin) / 1e6);
        found += signing.getPresigned() ? 1 : 0;
      }
      String phase = (prepared ? "prepared-" : "unprepared-") + length;
      add(phase, "latency", "ms", Rows.array(latencies));
      add(phase, "presigned", "percent", 100.0 * found / runs);
    }
  }

  private Signing sign(int length) {
    String message = "transfer " + ++signed;
    message += ".".repeat(length - message.length());
    SignRequest request =
        WalletBackend.signRequest(
            cluster
                .wallet()
                .intents()
                .sign(
                    WalletBackend.signingIntent(KEY, Scheme.SCHEME_ED25519_EXACT)
                        .setMessage(ByteString.copyFromUtf8(message))
                        .build()));
    return cluster.wallet().signings().sign(request);
  }

  /** Waits until nothing is being prepared any more, so that a signature has the machine alone. */
  private void awaitPrepared() {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (System.nanoTime() < end) {
      Metrics metrics = cluster.coordinator().metrics();
      if (metrics.sum("coterie_coordinator_presignatures_ready")
          >= metrics.sum("coterie_coordinator_presignatures_wanted")) {
        return;
      }
      LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
    }
    throw new IllegalStateException("the pairs have not prepared what is wanted");
  }

  private void add(String phase, String metric, String unit, double... samples) {
    rows.add(
        "sign",
        SCHEME,
        THRESHOLD,
        PARTIES,
        Rows.label(SendMode.GROUP),
        phase,
        metric,
        unit,
        samples);
  }
}
