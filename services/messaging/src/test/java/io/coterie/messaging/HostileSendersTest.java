package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Socket;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/**
 * Hostile senders beside honest ones, against a process with the memory of the image. A few senders
 * for some seconds; {@code -Dcoterie.messaging.hostile.senders=1000
 * -Dcoterie.messaging.hostile.seconds=60} is the full size. Times are printed, and at full size
 * judged.
 */
class HostileSendersTest {
  private static final int SENDERS = Integer.getInteger("coterie.messaging.hostile.senders", 20);
  private static final Duration TIME =
      Duration.ofSeconds(Integer.getInteger("coterie.messaging.hostile.seconds", 3));
  private static final boolean FULL = SENDERS >= 1_000;
  private static final Duration MOST = Duration.ofMillis(50);
  private static final Duration HONEST_INTERVAL = Duration.ofMillis(20);

  /** As deploy/images/config.json sets it. */
  private static final String IMAGE_HEAP = "-Xmx192m";

  private static final String ONLINE = "/v1/messages/multi_recipient?ts=1&online=true";
  private static final String STORED = "/v1/messages/multi_recipient?ts=1&online=false";

  private final AtomicBoolean over = new AtomicBoolean();

  /** One attempt of a hostile sender with a connection; it connects anew when that is closed. */
  private interface Attempt {
    void run(Socket socket);
  }

  private void attack(TestClient client, String authorization, Attempt attempt) {
    while (!over.get()) {
      Socket socket = null;
      try {
        socket = client.connectSilent(authorization);
        while (!over.get() && !socket.closed.isDone()) {
          attempt.run(socket);
        }
      } catch (RuntimeException | AssertionError e) {
        // Refused or closed, as it should be.
        pause(Duration.ofMillis(100));
      } finally {
        if (socket != null) {
          socket.abort();
        }
      }
    }
  }

  private static void pause(Duration time) {
    try {
      Thread.sleep(time);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Sends and waits for the answer, or for the end of the connection. */
  private static void send(Socket socket, String path, byte[] body, Map<String, String> headers) {
    CompletableFuture.anyOf(socket.callAsync("PUT", path, body, headers), socket.closed).join();
  }

  private void hostile(int number, TestClient client, Party victim, Party absent) {
    byte[] large = new byte[60 * 1024];
    Map<String, String> absentKey = TestClient.multiRecipientHeaders(absent);
    switch (number % 5) {
      case 0 -> // Anonymous, with a wrong access key.
          attack(
              client,
              null,
              s ->
                  send(
                      s,
                      ONLINE,
                      TestClient.multiRecipient(large, Recipient.of(victim)),
                      absentKey));
      case 1 -> // Fills the memory with messages for somebody who is absent.
          attack(
              client,
              null,
              s ->
                  send(
                      s,
                      ONLINE,
                      TestClient.multiRecipient(large, Recipient.of(absent)),
                      absentKey));
      case 2 -> { // Enrolled, and does not read its answers.
        Party enrolled = client.party();
        attack(
            client,
            enrolled.authorization(),
            s -> {
              s.reading = false;
              s.callAsync("GET", "/v1/nothing/" + "x".repeat(4_000), new byte[0], Map.of());
              pause(Duration.ofMillis(1));
            });
      }
      case 3 -> // Begins messages and does not end them.
          attack(
              client,
              null,
              s -> {
                s.raw().sendBinary(ByteBuffer.wrap(new byte[400 * 1024]), false).join();
                s.closed.orTimeout(5, TimeUnit.SECONDS).join();
              });
      default -> // Fills the database.
          attack(
              client,
              null,
              s ->
                  send(
                      s,
                      STORED,
                      TestClient.multiRecipient(large, Recipient.of(absent)),
                      absentKey));
    }
  }

  @Test
  void honest_messages_arrive_and_the_service_stays_alive() throws Exception {
    TestService database = TestService.shared();
    Party party = new TestClient(database).party();
    // The service is closed first, so that no hostile sender waits for it any more.
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
        ProcessReplica replica = database.processReplica(IMAGE_HEAP)) {
      TestClient honest = replica.awaitReady(party.authorization());
      TestClient elsewhere = honest.at(InetAddress.ofLiteral("127.0.0.2"));
      Party from = honest.party();
      Party to = honest.party();
      List<Long> nanos = new ArrayList<>();
      List<Party> absent = new ArrayList<>();
      for (int i = 0; i < Math.min(SENDERS, 50); i++) {
        absent.add(honest.party());
      }
      try (Socket named = from.connect().drained();
          Socket sealed = honest.connect(null);
          Socket receiver = to.connect().drained()) {
        for (int i = 0; i < SENDERS; i++) {
          int number = i;
          threads.submit(() -> hostile(number, elsewhere, to, absent.get(number % absent.size())));
        }
        long end = System.nanoTime() + TIME.toNanos();
        for (int i = 0; System.nanoTime() < end; i++) {
          byte[] content = TestClient.bytes("honest " + i);
          long start = System.nanoTime();
          int status =
              i % 2 == 0
                  ? sealed
                      .call(
                          "PUT",
                          ONLINE,
                          TestClient.multiRecipient(content, Recipient.of(to)),
                          TestClient.multiRecipientHeaders(to))
                      .status()
                  : named
                      .json(
                          "PUT",
                          "/v1/messages/" + to.aci,
                          TestClient.messages(true, TestClient.message(to, content)))
                      .status();
          assertThat(status).isEqualTo(200);
          assertThat(receiver.next().envelope().getContent().toStringUtf8())
              .endsWith("honest " + i);
          nanos.add(System.nanoTime() - start);
          pause(HONEST_INTERVAL);
        }
        print(nanos);
      } finally {
        over.set(true);
      }
      assertThat(replica.isAlive()).isTrue();
      assertThat(replica.log()).doesNotContain("OutOfMemoryError");
      if (FULL) {
        assertThat(Duration.ofNanos(percentile(nanos, 99))).isLessThan(MOST);
      }
    } catch (CompletionException e) {
      throw new AssertionError("an honest client was refused", e);
    }
  }

  private static long percentile(List<Long> nanos, int percent) {
    return nanos.stream().sorted().toList().get((nanos.size() * percent - 1) / 100);
  }

  private static void print(List<Long> nanos) {
    System.out.printf(
        "hostile senders=%d honest messages=%d ms: p50=%.1f p99=%.1f most=%.1f%n",
        SENDERS,
        nanos.size(),
        percentile(nanos, 50) / 1e6,
        percentile(nanos, 99) / 1e6,
        percentile(nanos, 100) / 1e6);
  }
}
