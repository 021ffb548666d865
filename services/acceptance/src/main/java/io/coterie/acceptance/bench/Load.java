package io.coterie.acceptance.bench;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.channel.SendMode;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;

/** Signing under load: many requests at once, then one after another, scheme by scheme. */
final class Load {
  private static final Duration REFILL = Duration.ofSeconds(1);
  private static final int IN_FLIGHT = 128;
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final String ECDSA = "ecdsa-secp256k1";
  private static final String ED25519 = "ed25519";
  private static final String BIP340 = "bip340-secp256k1";
  private static final ByteString MESSAGE = ByteString.copyFromUtf8("withdrawal 4711: 1.25 ETH");
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(32));
  private static final String ONE = "one_at_a_time";
  private static final String MANY = "in_flight_" + IN_FLIGHT;
  private static final Shape LOADED = new Shape(2, 3);

  private final Cluster cluster;
  private final Rows rows;
  private final Consumer<String> progress;
  private final int runs;
  private final Duration throughputTime;

  /**
   * @param runs requests one after another
   * @param throughputTime for the requests in flight, half of it to warm up
   */
  Load(Cluster cluster, Rows rows, Consumer<String> progress, int runs, Duration throughputTime) {
    this.cluster = cluster;
    this.rows = rows;
    this.progress = progress;
    this.runs = runs;
    this.throughputTime = throughputTime;
  }

  /**
   * Measures each scheme; the results are written after each.
   *
   * @param schemes their names, or one that is blank for all of them
   */
  void measure(List<String> schemes) throws InterruptedException {
    List<String> parties = cluster.partyNames().subList(0, LOADED.parties());
    for (Kind kind : List.of(bls(parties), ecdsa(parties), ed25519(parties), bip340(parties))) {
      if (schemes.contains("") || schemes.contains(kind.scheme())) {
        measure(kind);
        rows.write();
      }
    }
  }

  /** One signature scheme under load: how to make a key, and what to ask for. */
  private record Kind(
      String scheme, Function<WalletBackend, String> newKey, Function<String, SigningIntent> next) {
    SignRequest request(WalletBackend wallet, String key) {
      return WalletBackend.signRequest(wallet.intents().sign(next.apply(key)));
    }
  }

  private Kind bls(List<String> parties) {
    return new Kind(
        Rows.BLS,
        wallet -> wallet.createKey("load-bls", LOADED.threshold(), parties).getName(),
        key -> WalletBackend.signingIntent(shortName(key), MESSAGE.toByteArray()).build());
  }

  private Kind ecdsa(List<String> parties) {
    return new Kind(
        ECDSA,
        wallet -> wallet.createEcdsaKey("load-ecdsa", LOADED.threshold(), parties).getName(),
        key -> WalletBackend.ecdsaIntent(shortName(key), 0, 7).setEthereumMessage(MESSAGE).build());
  }

  private Kind ed25519(List<String> parties) {
    return new Kind(
        ED25519,
        newKey(Scheme.SCHEME_ED25519, parties),
        key ->
            WalletBackend.signingIntent(shortName(key), Scheme.SCHEME_ED25519)
                .setMessage(MESSAGE)
                .build());
  }

  private Kind bip340(List<String> parties) {
    return new Kind(
        BIP340,
        newKey(Scheme.SCHEME_BIP340_SECP256K1, parties),
        key ->
            WalletBackend.signingIntent(shortName(key), Scheme.SCHEME_BIP340_SECP256K1)
                .setTaproot(TaprootOutput.getDefaultInstance())
                .setDigest(DIGEST)
                .build());
  }

  private static Function<WalletBackend, String> newKey(Scheme scheme, List<String> parties) {
    return wallet ->
        wallet
            .createKey("load-" + scheme.getNumber(), scheme, LOADED.threshold(), parties)
            .getName();
  }

  private static String shortName(String key) {
    return key.substring(key.indexOf('/') + 1);
  }

  /**
   * Many requests at once for a while, then one after another, once everything is warm. Each begins
   * with a filled pool of presignatures.
   */
  private void measure(Kind kind) throws InterruptedException {
    String key = kind.newKey().apply(cluster.wallet());
    progress.accept("%s, %d in flight".formatted(kind.scheme(), IN_FLIGHT));
    // Compiling the services' code takes that long on two cores.
    flood(kind, key, throughputTime.dividedBy(2));
    awaitPresignatures();
    Metrics before = cluster.metrics();
    Flood flood = flood(kind, key, throughputTime.dividedBy(2));
    Metrics after = cluster.metrics();
    int count = flood.latencies().size();
    addLoad(kind, MANY, "rate", "signatures/s", count / flood.seconds());
    addLoad(kind, MANY, "processor_time", "ms", flood.processorMillis() / count);
    addLoad(kind, MANY, "presigned", "percent", 100.0 * flood.presigned() / count);
    addLoad(
        kind,
        MANY,
        "bodies_per_message",
        "count",
        grown("coterie_channel_batch_bodies_sum", before, after)
            / grown("coterie_channel_batch_bodies_count", before, after));
    addLoad(kind, MANY, "latency", "ms", Rows.array(flood.latencies()));
    awaitPresignatures();
    // Compiling goes on for some thousand signatures, and costs more than they do.
    for (int i = 0; i < 2 * runs; i++) {
      cluster.wallet().signings().sign(kind.request(cluster.wallet(), key));
    }
    awaitPresignatures();
    progress.accept("%s, one at a time, warm".formatted(kind.scheme()));
    int[] presigned = {0};
    long processorBefore = Timing.processorNanos();
    double[] latencies =
        Timing.samples(
            runs,
            () -> {
              SignRequest request = kind.request(cluster.wallet(), key);
              return Timing.millis(
                  () -> {
                    if (cluster.wallet().signings().sign(request).getPresigned()) {
                      presigned[0]++;
                    }
                  });
            });
    double processorMillis = (Timing.processorNanos() - processorBefore) / 1e6;
    addLoad(kind, ONE, "latency", "ms", latencies);
    addLoad(kind, ONE, "processor_time", "ms", processorMillis / runs);
    addLoad(kind, ONE, "presigned", "percent", 100.0 * presigned[0] / runs);
  }

  private static double grown(String metric, Metrics before, Metrics after) {
    return after.sum(metric) - before.sum(metric);
  }

  /**
   * Waits until the coordinator has as many presignatures as it wants, or, at its limit, no more
   * come.
   */
  private void awaitPresignatures() {
    long end = System.nanoTime() + PATIENCE.toNanos();
    double ready = 0;
    for (double before = -1; ready > before && System.nanoTime() < end; ) {
      before = ready;
      LockSupport.parkNanos(REFILL.toNanos());
      Metrics metrics = cluster.coordinator().metrics();
      ready = metrics.sum("coterie_coordinator_presignatures_ready");
      if (ready >= metrics.sum("coterie_coordinator_presignatures_wanted")) {
        return;
      }
    }
  }

  /** The outcome of many requests at once. */
  private record Flood(
      List<Double> latencies, int presigned, double seconds, double processorMillis) {}

  /** Keeps {@link #IN_FLIGHT} requests in flight, all of which have to succeed. */
  private Flood flood(Kind kind, String key, Duration time) throws InterruptedException {
    Semaphore free = new Semaphore(IN_FLIGHT);
    List<Double> latencies = Collections.synchronizedList(new ArrayList<>());
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    AtomicInteger presigned = new AtomicInteger();
    long begin = System.nanoTime();
    long processorBefore = Timing.processorNanos();
    while (System.nanoTime() - begin < time.toNanos()) {
      free.acquire();
      long start = System.nanoTime();
      ListenableFuture<Signing> future =
          cluster.wallet().signingsAsync().sign(kind.request(cluster.wallet(), key));
      future.addListener(
          () -> {
            try {
              Signing signing = future.get();
              latencies.add((System.nanoTime() - start) / 1e6);
              if (signing.getPresigned()) {
                presigned.incrementAndGet();
              }
            } catch (ExecutionException e) {
              failures.add(e.getCause());
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            } finally {
              free.release();
            }
          },
          Runnable::run);
    }
    free.acquire(IN_FLIGHT);
    double seconds = (System.nanoTime() - begin) / 1e9;
    double processorMillis = (Timing.processorNanos() - processorBefore) / 1e6;
    if (!failures.isEmpty()) {
      throw new IllegalStateException(
          failures.size() + " requests failed under load", failures.getFirst());
    }
    return new Flood(List.copyOf(latencies), presigned.get(), seconds, processorMillis);
  }

  private void addLoad(Kind kind, String phase, String metric, String unit, double... samples) {
    rows.add(
        "load",
        kind.scheme(),
        LOADED.threshold(),
        LOADED.parties(),
        Rows.label(SendMode.GROUP),
        phase,
        metric,
        unit,
        samples);
  }

  /** Prints what was measured. */
  void print(PrintStream out) {
    out.println();
    out.printf("Sign, %s, warm%n", LOADED);
    for (String scheme : List.of(Rows.BLS, ECDSA, ED25519, BIP340)) {
      out.printf(
          "  %-16s one at a time: median %.1f ms, processor time %.1f ms, %.0f %% presigned%n",
          scheme,
          value(scheme, ONE, "latency"),
          value(scheme, ONE, "processor_time"),
          value(scheme, ONE, "presigned"));
      out.printf(
          "  %-16s %d in flight: %.0f a second, median %.0f ms, processor time %.1f ms, %.0f %%"
              + " presigned, %.1f bodies a message, no errors%n",
          "",
          IN_FLIGHT,
          value(scheme, MANY, "rate"),
          value(scheme, MANY, "latency"),
          value(scheme, MANY, "processor_time"),
          value(scheme, MANY, "presigned"),
          value(scheme, MANY, "bodies_per_message"));
    }
    out.println("Processor time is that of all services and the client, without PostgreSQL.");
  }

  private double value(String scheme, String phase, String metric) {
    return rows.value(
        "load",
        scheme,
        LOADED.threshold(),
        LOADED.parties(),
        Rows.label(SendMode.GROUP),
        phase,
        metric);
  }
}
