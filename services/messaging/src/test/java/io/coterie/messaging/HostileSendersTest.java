package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Socket;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Hostile senders beside honest ones, against a process with the settings of the image. A few
 * senders for some seconds; {@code -Dcoterie.messaging.hostile.senders=1000
 * -Dcoterie.messaging.hostile.seconds=60} is the full size. Times are printed, and at full size
 * judged.
 *
 * <p>The senders are {@link HostileClients}, all at one address or each at its own. In earnest they
 * work on other machines: an attacker who takes processors away from the service is not one of the
 * network. With four processors or more the service has half of them to itself, and the flood takes
 * all that database and honest clients leave of the others. With fewer the flood has the lowest
 * priority and takes what all the others leave.
 */
class HostileSendersTest {
  private static final int SENDERS = Integer.getInteger("coterie.messaging.hostile.senders", 20);
  private static final Duration TIME =
      Duration.ofSeconds(Integer.getInteger("coterie.messaging.hostile.seconds", 3));
  private static final boolean FULL = SENDERS >= 1_000;
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();

  /** Processors of which the service, whose image is sized for two, may have its own. */
  private static final int APART = 4;

  /** A service that has run for long has compiled what it runs; nothing is judged before. */
  private static final Duration WARM_UP = FULL ? Duration.ofSeconds(45) : Duration.ZERO;

  /** For rounds beside a flood from one address: of each kind, the 99th percentile. */
  private static final long MOST = 50;

  /** No round at all takes longer. */
  private static final Map<From, Long> LONGEST =
      Map.of(From.ONE_ADDRESS, 1_000L, From.AN_ADDRESS_EACH, 5_000L);

  private static final long MOST_CONNECTION = 250;

  private static final Duration INTERVAL = Duration.ofMillis(20);
  private static final Duration CONNECTION_INTERVAL = Duration.ofMillis(500);

  /** As long as the hostile senders wait before they connect again. */
  private static final Duration AFTER_REFUSAL = Duration.ofMillis(100);

  /** Where the hostile senders are. */
  enum From {
    ONE_ADDRESS,
    AN_ADDRESS_EACH
  }

  static List<From> floods() {
    return FULL ? List.of(From.values()) : List.of(From.AN_ADDRESS_EACH);
  }

  private static final String ONLINE = "/v1/messages/multi_recipient?ts=1&online=true";

  /** The flood, from its start to the end of its input. */
  private record Flood(Process process, BufferedReader output) implements AutoCloseable {
    static Flood start(From from, TestService service, int port, Party victim, TestClient client)
        throws IOException {
      List<String> lines = new ArrayList<>();
      lines.add(target(victim));
      for (int i = 0; i < Math.clamp(SENDERS, 1, 50); i++) {
        lines.add(target(client.party()));
      }
      for (int i = 0; i < Math.max(1, SENDERS / 5); i++) {
        lines.add("enrolled\t" + client.party().authorization());
      }
      Path file = Files.write(service.folder().resolve("hostile"), lines);
      Process process =
          new ProcessBuilder(
                  "nice",
                  "-n",
                  "19",
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-XX:+UseSerialGC",
                  "-Xmx512m",
                  "-cp",
                  System.getProperty(
                      "surefire.test.class.path", System.getProperty("java.class.path")),
                  HostileClients.class.getName(),
                  Integer.toString(port),
                  Integer.toString(SENDERS),
                  file.toString(),
                  Boolean.toString(from == From.AN_ADDRESS_EACH))
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
      Flood flood = new Flood(process, process.inputReader());
      assertThat(flood.output().readLine()).isEqualTo(HostileClients.BEGUN);
      return flood;
    }

    private static String target(Party party) {
      return String.join(
          "\t",
          "target",
          party.aci.toString(),
          Integer.toString(party.registrationId),
          TestClient.base64(party.accessKey));
    }

    /** Ends the flood, and gives its words about itself. */
    String end() throws IOException {
      process.getOutputStream().close();
      return output.readLine();
    }

    @Override
    public void close() {
      process.destroyForcibly().onExit().orTimeout(60, TimeUnit.SECONDS).join();
    }
  }

  private static void pause(Duration time) {
    try {
      Thread.sleep(time);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Half of the processors are for the service, and the others for all else. */
  private static String processors(boolean ofService) {
    int half = PROCESSORS / 2;
    return ofService ? "0-" + (half - 1) : half + "-" + (PROCESSORS - 1);
  }

  /** Keeps this process, and those that it starts, off the processors of the service. */
  private static void leaveProcessorsToService() throws Exception {
    Process taskset =
        new ProcessBuilder(
                "taskset", "-apc", processors(false), Long.toString(ProcessHandle.current().pid()))
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    assertThat(taskset.waitFor()).isZero();
  }

  @ParameterizedTest
  @MethodSource("floods")
  void honest_messages_arrive_and_the_service_stays_alive(From from) throws Exception {
    boolean apart = FULL && PROCESSORS >= APART;
    if (apart) {
      leaveProcessorsToService();
    }
    TestService database = TestService.shared();
    Party party = new TestClient(database).party();
    List<String> launcher = apart ? List.of("taskset", "-c", processors(true)) : List.of();
    try (ProcessReplica replica = database.processReplica(launcher, ProcessReplica.IMAGE)) {
      TestClient honest = replica.awaitReady(party.authorization());
      Party sender = honest.party();
      Party to = honest.party();
      Rounds rounds = Rounds.none();
      List<Long> connections = List.of();
      try (Socket named = sender.connect().drained();
          Reconnecting sealed = new Reconnecting(honest);
          Socket receiver = to.connect().drained();
          Flood flood = Flood.start(from, database, replica.port(), to, honest)) {
        for (Duration time : List.of(WARM_UP, TIME)) {
          long end = System.nanoTime() + time.toNanos();
          CompletableFuture<List<Long>> connecting =
              CompletableFuture.supplyAsync(() -> connections(honest, end));
          rounds = rounds(named, sealed, to, receiver, end);
          connections = connecting.join();
        }
        System.out.println(flood.end());
        if (!FULL || from == From.ONE_ADDRESS) {
          assertThat(sealed.times).as("reconnections of the sealed sender").isZero();
        }
        System.out.println(replica.cost());
      }
      assertThat(replica.isAlive()).isTrue();
      assertThat(replica.log()).doesNotContain("OutOfMemoryError");
      judge(from, rounds, connections);
    } catch (CompletionException e) {
      throw new AssertionError("an honest client was refused", e);
    }
  }

  private static void judge(From from, Rounds rounds, List<Long> connections) {
    String beside = "beside %d hostile senders, %s".formatted(SENDERS, from);
    print("honest named rounds", beside, rounds.named());
    print("honest sealed rounds", beside, rounds.sealed());
    print("honest connections", beside, connections);
    if (FULL) {
      List<Bar> bars = new ArrayList<>();
      bars.add(
          Bar.atMost("honest rounds, longest in ms", millis(rounds.all(), 100), LONGEST.get(from)));
      if (from == From.ONE_ADDRESS) {
        // Beside as many addresses as hostile senders an honest one has a small share of anything.
        bars.add(Bar.atMost("honest named rounds, p99 in ms", millis(rounds.named(), 99), MOST));
        bars.add(Bar.atMost("honest sealed rounds, p99 in ms", millis(rounds.sealed(), 99), MOST));
        bars.add(
            Bar.atMost("honest connections, p99 in ms", millis(connections, 99), MOST_CONNECTION));
      }
      bars.forEach(bar -> System.out.println(bar));
      assertThat(bars).allMatch(Bar::isMet);
    }
  }

  /** Times of rounds in nanoseconds, each from when it was due. */
  private record Rounds(List<Long> named, List<Long> sealed) {
    static Rounds none() {
      return new Rounds(new ArrayList<>(), new ArrayList<>());
    }

    List<Long> all() {
      return Stream.concat(named.stream(), sealed.stream()).toList();
    }
  }

  /** A sealed sender, which connects again when its place was given to another. */
  private static final class Reconnecting implements AutoCloseable {
    private final TestClient client;
    private Socket socket;
    private int times;

    Reconnecting(TestClient client) {
      this.client = client;
      this.socket = client.connect(null);
    }

    /** A call that was not answered is made again. */
    int send(Party to, byte[] content) {
      long end = System.nanoTime() + TestClient.PATIENCE.toNanos();
      while (true) {
        try {
          return sealed(socket, to, content);
        } catch (CompletionException refused) {
          if (System.nanoTime() > end) {
            throw refused;
          }
        }
        connect(end);
      }
    }

    private void connect(long end) {
      socket.abort();
      times++;
      while (true) {
        pause(AFTER_REFUSAL);
        try {
          socket = client.connect(null);
          return;
        } catch (CompletionException refused) {
          if (System.nanoTime() > end) {
            throw refused;
          }
        }
      }
    }

    @Override
    public void close() {
      socket.close();
    }
  }

  /** Rounds at regular times: one that begins late because of others has taken that time, too. */
  private static Rounds rounds(
      Socket named, Reconnecting sealed, Party to, Socket receiver, long end) {
    Rounds rounds = Rounds.none();
    long planned = System.nanoTime();
    for (int i = 0; planned < end; i++) {
      byte[] content = TestClient.bytes("honest " + i);
      boolean isSealed = i % 2 == 0;
      int status = isSealed ? sealed.send(to, content) : named(named, to, content);
      assertThat(status).isEqualTo(200);
      await("honest " + i, receiver);
      (isSealed ? rounds.sealed() : rounds.named()).add(System.nanoTime() - planned);
      planned += INTERVAL.toNanos();
      long early = planned - System.nanoTime();
      if (early > 0) {
        pause(Duration.ofNanos(early));
      }
    }
    return rounds;
  }

  /** A message whose answer was lost was sent once more, and comes twice. */
  private static void await(String content, Socket receiver) {
    String received;
    do {
      received = receiver.next().envelope().getContent().toStringUtf8();
    } while (!received.endsWith(content));
  }

  private static int sealed(Socket socket, Party to, byte[] content) {
    return socket
        .call(
            "PUT",
            ONLINE,
            TestClient.multiRecipient(content, Recipient.of(to)),
            TestClient.multiRecipientHeaders(to))
        .status();
  }

  private static int named(Socket socket, Party to, byte[] content) {
    return socket
        .json(
            "PUT",
            "/v1/messages/" + to.aci,
            TestClient.messages(true, TestClient.message(to, content)))
        .status();
  }

  /** Connections one after another; one that is refused is tried again until time is over. */
  private static List<Long> connections(TestClient client, long end) {
    List<Long> nanos = new ArrayList<>();
    while (System.nanoTime() < end) {
      long start = System.nanoTime();
      while (!connects(client) && System.nanoTime() < end) {
        pause(AFTER_REFUSAL);
      }
      nanos.add(System.nanoTime() - start);
      pause(CONNECTION_INTERVAL);
    }
    return nanos;
  }

  private static boolean connects(TestClient client) {
    try (Socket socket = client.connect(null)) {
      assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);
      return true;
    } catch (CompletionException refused) {
      return false;
    }
  }

  private static double millis(List<Long> nanos, int percent) {
    return nanos.stream().sorted().toList().get((nanos.size() * percent - 1) / 100) / 1e6;
  }

  private static void print(String of, String beside, List<Long> nanos) {
    System.out.printf(
        "%s: %s: %d, ms: p50=%.1f p99=%.1f most=%.1f%n",
        of, beside, nanos.size(), millis(nanos, 50), millis(nanos, 99), millis(nanos, 100));
  }
}
