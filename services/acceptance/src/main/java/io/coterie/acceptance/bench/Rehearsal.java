package io.coterie.acceptance.bench;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.ClusterPlan;
import io.coterie.acceptance.cluster.Service;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Services from the files of their images, in a whole installation: so that what they load and what
 * their compiler learns can be recorded for the class cache of the image (docs/adr/0019), or so
 * that their start can be measured.
 *
 * <pre>
 * record FOLDER SERVICE...    writes FOLDER/SERVICE/start.aotconf for each of messaging, coordinator, signer
 * measure FOLDER RUNS BUSY    a signer's time from exec to ready, with the image's class cache and without,
 *                             beside so many threads that do nothing but turn
 * </pre>
 *
 * FOLDER/SERVICE/root is the root of an image, as {@code deploy/images/build} lays it out.
 */
public final class Rehearsal {
  private static final String SIGNER = "signer";
  private static final Set<String> SERVICES =
      Set.of(Cluster.MESSAGING_NAME, Settings.COORDINATOR, SIGNER);
  private static final String PARTY = Cluster.partyName(1);
  private static final String CACHE_OPTION = "-XX:AOTCache=";

  /** All parties take part in everything, so that the one that is looked at does. */
  private static final int PARTIES = 2;

  /** Enough for the compiler's profiles to show what a signing uses most. */
  private static final int SIGNATURES = 15;

  /** As in the values of the signer's chart. */
  private static final String CHART_HEAP = "-Xmx128m";

  private static final Duration PATIENCE = Duration.ofMinutes(3);

  private Rehearsal() {}

  public static void main(String[] args) {
    boolean done = false;
    try {
      List<String> rest = Arrays.asList(args).subList(Math.min(2, args.length), args.length);
      if (args.length >= 3 && args[0].equals("record")) {
        record(Path.of(args[1]).toAbsolutePath(), rest);
        done = true;
      } else if (args.length == 4 && args[0].equals("measure")) {
        measure(
            Path.of(args[1]).toAbsolutePath(),
            Integer.parseInt(args[2]),
            Integer.parseInt(args[3]));
        done = true;
      } else {
        System.err.println("arguments: record FOLDER SERVICE... | measure FOLDER RUNS BUSY");
      }
    } catch (RuntimeException e) {
      e.printStackTrace();
    }
    // Threads that gRPC and the database leave running must not keep the build waiting.
    System.exit(done ? 0 : 1);
  }

  private static void record(Path images, List<String> services) {
    ClusterPlan plan = plan(images);
    for (String service : services) {
      if (!SERVICES.contains(service)) {
        throw new IllegalArgumentException("no service " + service);
      }
      Path recording = images.resolve(service).resolve("start.aotconf");
      List<String> options =
          List.of("-Xmx256m", "-XX:AOTMode=record", "-XX:AOTConfiguration=" + recording);
      plan.launch(
          service.equals(SIGNER) ? PARTY : service,
          launch(images, service, () -> command(images, service, options, "@java.args")));
    }
    try (Cluster cluster = plan.start()) {
      for (Scheme scheme :
          List.of(
              Scheme.SCHEME_BLS12381,
              Scheme.SCHEME_ECDSA_SECP256K1,
              Scheme.SCHEME_ED25519,
              Scheme.SCHEME_BIP340_SECP256K1)) {
        work(cluster, scheme);
      }
      cluster.metrics();
    }
  }

  /** A key of a scheme, signatures without presignatures and then with them, new shares. */
  private static void work(Cluster cluster, Scheme scheme) {
    String name = scheme.name().toLowerCase(Locale.ROOT).replace('_', '-');
    WalletBackend wallet = cluster.wallet();
    Key key = wallet.createKey(name, scheme, PARTIES, cluster.partyNames());
    for (int i = 0; i < SIGNATURES; i++) {
      Signing signing = wallet.sign(intent(name, scheme, i));
      if (signing.getState() != Signing.State.SIGNED) {
        throw new IllegalStateException(name + " did not sign: " + signing.getState());
      }
    }
    wallet.refreshKey(name, scheme, key.getEpoch());
  }

  private static SigningIntent.Builder intent(String key, Scheme scheme, int number) {
    SigningIntent.Builder intent = WalletBackend.signingIntent(key, scheme);
    byte[] content = new byte[32];
    content[0] = (byte) number;
    return switch (scheme) {
      case SCHEME_BLS12381 -> intent.setMessage(ByteString.copyFrom(content));
      default -> intent.setDigest(ByteString.copyFrom(content));
    };
  }

  private static void measure(Path images, int runs, int busy) {
    Path root = images.resolve(SIGNER).resolve("root");
    List<String> options = List.of(CHART_HEAP);
    Path plain = images.resolve("java-without-cache.args");
    List<String> with = command(images, SIGNER, options, "@java.args");
    List<String> without = command(images, SIGNER, options, "@" + plain);
    List<List<String>> next = new ArrayList<>(List.of(with));
    try {
      List<String> lines = Files.readAllLines(root.resolve("opt/coterie/java.args"));
      if (lines.stream().noneMatch(line -> line.startsWith(CACHE_OPTION))) {
        throw new IllegalStateException("the signer's image has no class cache");
      }
      Files.write(plain, lines.stream().filter(line -> !line.startsWith(CACHE_OPTION)).toList());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    List<Start> withCache = new ArrayList<>();
    List<Start> withoutCache = new ArrayList<>();
    ClusterPlan plan = plan(images).launch(PARTY, launch(images, SIGNER, () -> next.getFirst()));
    try (Cluster cluster = plan.start()) {
      Service signer = cluster.signer(PARTY);
      for (int i = 0; i < busy; i++) {
        Thread.ofPlatform().daemon().start(Rehearsal::turn);
      }
      for (int run = 0; run < runs; run++) {
        next.set(0, with);
        withCache.add(start(signer));
        next.set(0, without);
        withoutCache.add(start(signer));
      }
    }
    System.out.printf("  a signer from exec to ready, beside %d busy threads:%n", busy);
    report("with the class cache", withCache);
    report("without", withoutCache);
  }

  private static void turn() {
    while (true) {
      Thread.onSpinWait();
    }
  }

  /**
   * @param seconds from the start of the process to its being ready
   * @param megabytes resident then
   */
  private record Start(double seconds, long megabytes) {}

  private static Start start(Service signer) {
    signer.close();
    long begin = System.nanoTime();
    signer.restart(PATIENCE);
    return new Start((System.nanoTime() - begin) / 1e9, signer.residentBytes() >> 20);
  }

  private static void report(String what, List<Start> starts) {
    List<Start> sorted = starts.stream().sorted(Comparator.comparing(Start::seconds)).toList();
    System.out.printf(
        Locale.ROOT,
        "    %-20s  %.1f s (median of %d; %.1f to %.1f s), %d MiB resident%n",
        what,
        sorted.get(sorted.size() / 2).seconds(),
        sorted.size(),
        sorted.getFirst().seconds(),
        sorted.getLast().seconds(),
        sorted.getLast().megabytes());
  }

  private static ClusterPlan plan(Path images) {
    return Cluster.of(PARTIES)
        .threshold(PARTIES)
        .processes()
        .folder(images.resolve("rehearsal"))
        .progress(line -> System.out.println("progress: rehearsal: " + line));
  }

  private static Service.Launch launch(
      Path images, String service, Supplier<List<String>> command) {
    return new Service.Launch(images.resolve(service).resolve("root/opt/coterie"), command);
  }

  private static List<String> command(
      Path images, String service, List<String> options, String arguments) {
    List<String> command = new ArrayList<>();
    command.add(images.resolve(service).resolve("root/opt/java/bin/java").toString());
    command.addAll(options);
    command.add(arguments);
    return command;
  }
}
