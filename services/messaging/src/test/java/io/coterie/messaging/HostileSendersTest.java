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
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * Hostile senders beside honest ones, against a process with the settings of the image. A few
 * senders for some seconds; {@code -Dcoterie.messaging.hostile.senders=1000
 * -Dcoterie.messaging.hostile.seconds=60} is the full size. Times are printed, and at full size
 * judged.
 *
 * <p>The hostile senders are {@link HostileClients}, with the lowest priority, because in earnest
 * their work is done on other machines: the processors are there for service and honest clients
 * first, and everything that these leave is used up by the flood, which prints what it did.
 */
class HostileSendersTest {
  private static final int SENDERS = Integer.getInteger("coterie.messaging.hostile.senders", 20);
  private static final Duration TIME =
      Duration.ofSeconds(Integer.getInteger("coterie.messaging.hostile.seconds", 3));
  private static final boolean FULL = SENDERS >= 1_000;
  private static final Duration MOST = Duration.ofMillis(50);
  private static final Duration HONEST_INTERVAL = Duration.ofMillis(20);

  /** Rounds after which another honest client connects. */
  private static final int ROUNDS_FOR_A_CONNECTION = 25;

  private static final String ONLINE = "/v1/messages/multi_recipient?ts=1&online=true";

  /** The flood, from its start to the end of its input. */
  private record Flood(Process process, BufferedReader output) implements AutoCloseable {
    static Flood start(TestService service, int port, Party victim, TestClient client)
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
                  file.toString())
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

  @Test
  void honest_messages_arrive_and_the_service_stays_alive() throws Exception {
    TestService database = TestService.shared();
    Party party = new TestClient(database).party();
    try (ProcessReplica replica = database.processReplica(ProcessReplica.IMAGE)) {
      TestClient honest = replica.awaitReady(party.authorization());
      Party from = honest.party();
      Party to = honest.party();
      List<Long> rounds = new ArrayList<>();
      List<Long> connections = new ArrayList<>();
      try (Socket named = from.connect().drained();
          Socket sealed = honest.connect(null);
          Socket receiver = to.connect().drained();
          Flood flood = Flood.start(database, replica.port(), to, honest)) {
        long end = System.nanoTime() + TIME.toNanos();
        for (int i = 0; System.nanoTime() < end; i++) {
          rounds.add(round(i, i % 2 == 0 ? sealed : named, to, receiver));
          if (i % ROUNDS_FOR_A_CONNECTION == 0) {
            connections.add(connection(honest));
          }
          pause(HONEST_INTERVAL);
        }
        System.out.println(flood.end());
        print("honest rounds", rounds);
        print("honest connections", connections);
        System.out.println(replica.cost());
      }
      assertThat(replica.isAlive()).isTrue();
      assertThat(replica.log()).doesNotContain("OutOfMemoryError");
      if (FULL) {
        assertThat(Duration.ofNanos(percentile(rounds, 99))).isLessThan(MOST);
      }
    } catch (CompletionException e) {
      throw new AssertionError("an honest client was refused", e);
    }
  }

  /** One message, from the call to the answer and the recipient. */
  private static long round(int number, Socket sender, Party to, Socket receiver) {
    byte[] content = TestClient.bytes("honest " + number);
    boolean sealed = number % 2 == 0;
    long start = System.nanoTime();
    int status =
        sealed
            ? sender
                .call(
                    "PUT",
                    ONLINE,
                    TestClient.multiRecipient(content, Recipient.of(to)),
                    TestClient.multiRecipientHeaders(to))
                .status()
            : sender
                .json(
                    "PUT",
                    "/v1/messages/" + to.aci,
                    TestClient.messages(true, TestClient.message(to, content)))
                .status();
    assertThat(status).isEqualTo(200);
    assertThat(receiver.next().envelope().getContent().toStringUtf8()).endsWith("honest " + number);
    return System.nanoTime() - start;
  }

  private static long connection(TestClient client) {
    long start = System.nanoTime();
    try (Socket socket = client.connect(null)) {
      assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);
      return System.nanoTime() - start;
    }
  }

  private static long percentile(List<Long> nanos, int percent) {
    return nanos.stream().sorted().toList().get((nanos.size() * percent - 1) / 100);
  }

  private static void print(String of, List<Long> nanos) {
    System.out.printf(
        "%s: beside %d hostile senders %d, ms: p50=%.1f p99=%.1f most=%.1f%n",
        of,
        SENDERS,
        nanos.size(),
        percentile(nanos, 50) / 1e6,
        percentile(nanos, 99) / 1e6,
        percentile(nanos, 100) / 1e6);
  }
}
