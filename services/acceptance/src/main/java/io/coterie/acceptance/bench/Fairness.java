package io.coterie.acceptance.bench;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.function.Supplier;

/**
 * {@code make bench-fairness}: the cost of a greedy requester to another one, in an installation
 * whose services are processes of their own. Each requester has its own certificate and key. The
 * modest one asks for a third of what the installation can do, alone, then beside the greedy one,
 * which has many more requests in flight; the ratio of the two rates is held against the bar.
 *
 * <p>Then the same greed comes under the name of the modest one, which no share divides. If that
 * costs no more, the load was too small to show anything, and the run fails as well.
 */
public final class Fairness {
  /** A greedy requester costs another at most a fifth of its rate. */
  private static final double BAR = 0.8;

  /** More than a requester gets of a coordinator's 1024 places for requests: seven of eight. */
  private static final int GREEDY_CALLERS = 960;

  private static final int MODEST_CALLERS = 64;

  /** The modest one asks for such a part of what the greedy one gets alone. */
  private static final double PART = 1.0 / 3;

  /** A name that both requesters may use. */
  private static final String KEY = "audit-";

  private final Duration time;

  private Fairness(Duration time) {
    this.time = time;
  }

  /**
   * @param args seconds for which each rate is counted
   */
  public static void main(String[] args) {
    boolean fair = false;
    try {
      fair = new Fairness(Duration.ofSeconds(Integer.parseInt(args[0]))).run();
    } catch (RuntimeException | InterruptedException e) {
      e.printStackTrace();
    }
    // Threads that gRPC and the database leave running must not keep the caller waiting.
    System.exit(fair ? 0 : 1);
  }

  private boolean run() throws InterruptedException {
    boolean fair = true;
    try (Cluster cluster =
        Cluster.of(3)
            .threshold(2)
            .processes()
            .folder(Path.of("build", "fairness"))
            .progress(line -> System.out.println("progress: " + line))
            .start()) {
      for (Scheme scheme : List.of(Scheme.SCHEME_BLS12381, Scheme.SCHEME_ECDSA_SECP256K1)) {
        fair &= isFair(cluster, scheme);
      }
    }
    return fair;
  }

  private boolean isFair(Cluster cluster, Scheme scheme) throws InterruptedException {
    WalletBackend modest = cluster.backend(Cluster.AUDITOR);
    WalletBackend greedy = cluster.wallet();
    String name = KEY + scheme.getNumber();
    Key key = greedy.createKey(name, scheme, cluster.threshold(), cluster.partyNames());
    Supplier<SigningIntent> intents = () -> intent(name, scheme);
    // Both know the key before their callers all ask for it at once.
    greedy.intents().sign(intents.get());
    modest.intents().sign(intents.get());

    Callers.Counted most;
    try (Callers all = greedy(greedy, intents)) {
      most = all.count(time).verified(key);
    }
    Duration interval = Duration.ofNanos((long) (1e9 / (most.rate() * PART)));
    System.out.printf(
        Locale.ROOT,
        "%s, %d of %d: a requester with %d in flight gets %.1f/s; the modest one asks for %.1f/s,%n"
            + "  and waits for %d at once at most%n",
        scheme,
        key.getThreshold(),
        key.getPartiesCount(),
        GREEDY_CALLERS,
        most.rate(),
        1e9 / interval.toNanos(),
        MODEST_CALLERS);

    Callers.Counted alone;
    try (Callers few = new Callers(modest, intents, MODEST_CALLERS, interval)) {
      Thread.sleep(time.dividedBy(4));
      alone = few.count(time).verified(key);
    }
    print("alone", alone);
    Callers.Counted beside = beside(greedy(greedy, intents), modest, intents, interval);
    print("beside a greedy requester", beside.verified(key));
    Callers.Counted unshared = beside(greedy(modest, intents), modest, intents, interval);
    print("beside the same under its own name", unshared.verified(key));

    double ratio = beside.rate() / alone.rate();
    double control = unshared.rate() / alone.rate();
    System.out.printf(
        Locale.ROOT,
        "  ratio %.2f, at least %.2f is wanted: %s%n",
        ratio,
        BAR,
        ratio >= BAR ? "met" : "MISSED");
    System.out.printf(
        Locale.ROOT,
        "  ratio %.2f without shares: %s%n",
        control,
        control < BAR ? "the load would show it" : "THE LOAD IS TOO SMALL TO SHOW ANYTHING");
    return ratio >= BAR && control < BAR;
  }

  private Callers greedy(WalletBackend of, Supplier<SigningIntent> intents)
      throws InterruptedException {
    Callers all = new Callers(of, intents, GREEDY_CALLERS, Duration.ZERO);
    // The windows of the parties have found their size by then.
    Thread.sleep(time.dividedBy(2));
    return all;
  }

  private Callers.Counted beside(
      Callers greedy, WalletBackend modest, Supplier<SigningIntent> intents, Duration interval)
      throws InterruptedException {
    try (greedy;
        Callers few = new Callers(modest, intents, MODEST_CALLERS, interval)) {
      Thread.sleep(time.dividedBy(4));
      greedy.forget();
      Callers.Counted counted = few.count(time);
      Callers.Counted meanwhile = greedy.counted();
      // Beside one whose callers have all given up, or that is served nothing, everybody looks
      // fair.
      if (meanwhile.signed().isEmpty()) {
        throw new IllegalStateException("the greedy requester was none: it got no signature");
      }
      print("  the greedy one meanwhile", meanwhile);
      return counted;
    }
  }

  private static void print(String when, Callers.Counted counted) {
    System.out.printf(
        Locale.ROOT,
        "  %-36s %6.1f/s   p50 %6.0f ms, p99 %6.0f ms%n",
        when,
        counted.rate(),
        counted.millis(0.5),
        counted.millis(0.99));
  }

  private static SigningIntent intent(String key, Scheme scheme) {
    ByteString message = ByteString.copyFromUtf8("withdrawal " + UUID.randomUUID());
    SigningIntent.Builder intent = WalletBackend.signingIntent(key, scheme);
    return scheme == Scheme.SCHEME_BLS12381
        ? intent.setMessage(message).build()
        : intent.setEthereumMessage(message).build();
  }
}
