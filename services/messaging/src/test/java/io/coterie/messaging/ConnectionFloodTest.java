package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLSocket;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Floods of connections from other addresses, and an honest client that connects beside them. */
class ConnectionFloodTest {
  private static final int PLACES = 16;
  private static final int BURST = 200;

  /** The first bytes of a TLS record with a ClientHello. */
  private static final byte[] HALF_A_HELLO = {0x16, 3, 1, 2, 0, 1, 0};

  private static TestService service;
  private static TestClient client;

  @BeforeAll
  static void start() {
    service =
        TestService.start(
            "--coterie.messaging.limits.requests=" + PLACES,
            "--coterie.messaging.rates.connections=" + BURST + "/0.001");
    client = new TestClient(service);
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  private static Socket connect(String from) throws IOException {
    Socket socket = new Socket();
    socket.bind(new InetSocketAddress(InetAddress.ofLiteral(from), 0));
    socket.setSoTimeout((int) TestClient.PATIENCE.toMillis());
    socket.connect(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), service.port()));
    return socket;
  }

  private static double refused(String reason) {
    return service
        .context()
        .getBean(MeterRegistry.class)
        .counter("coterie.messaging.refused", "reason", reason)
        .count();
  }

  private static double handshakes() {
    return service
        .context()
        .getBean(MeterRegistry.class)
        .get("coterie.messaging.handshakes")
        .gauge()
        .value();
  }

  private static boolean isEnded(Socket socket) {
    try {
      return socket.getInputStream().read() < 0;
    } catch (IOException reset) {
      return true;
    }
  }

  private static void sendHalf(Socket socket) {
    try {
      socket.getOutputStream().write(HALF_A_HELLO);
    } catch (IOException e) {
      // Refused already.
    }
  }

  private static void close(List<Socket> sockets) throws IOException {
    for (Socket socket : sockets) {
      socket.close();
    }
  }

  private static void assertServed() {
    try (TestClient.Socket socket = client.connect(null)) {
      assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);
    }
  }

  @Test
  void an_honest_client_connects_while_others_hold_all_places_with_halves_of_handshakes()
      throws IOException {
    List<Socket> halves = new ArrayList<>();
    double refused = refused("places");
    double displaced = refused("displaced");
    try {
      for (int i = 0; i < PLACES + 4; i++) {
        halves.add(connect("127.0.0.3"));
        sendHalf(halves.getLast());
      }
      Awaitility.await().until(() -> refused("places") >= refused + 4);
      assertThat(isEnded(halves.getLast())).isTrue();
      assertThat(handshakes()).isPositive();
      assertServed();
      assertThat(refused("displaced")).as("one of them gave way").isGreaterThan(displaced);
    } finally {
      close(halves);
    }
    Awaitility.await().until(() -> handshakes() == 0);
  }

  @Test
  void an_honest_client_connects_while_a_flood_handshakes() throws Exception {
    AtomicBoolean over = new AtomicBoolean();
    AtomicInteger done = new AtomicInteger();
    try (ExecutorService flood = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 6; i++) {
        String from = "127.0.0." + (10 + i);
        flood.submit(
            () -> {
              while (!over.get()) {
                try (Socket socket = connect(from);
                    SSLSocket secure =
                        (SSLSocket)
                            service
                                .trust()
                                .getSocketFactory()
                                .createSocket(socket, "localhost", service.port(), true)) {
                  secure.startHandshake();
                  done.incrementAndGet();
                } catch (IOException e) {
                  Thread.onSpinWait();
                }
              }
              return null;
            });
      }
      try {
        Awaitility.await().until(() -> done.get() > 0);
        for (int i = 0; i < 5; i++) {
          assertServed();
        }
      } finally {
        over.set(true);
      }
    }
  }

  @Test
  void each_address_has_a_rate_of_new_connections() throws IOException {
    double before = refused("rate");
    int ended = 0;
    for (int i = 0; i < BURST + 5; i++) {
      try (Socket socket = connect("127.0.0.4")) {
        if (i >= BURST) {
          ended += isEnded(socket) ? 1 : 0;
        }
      }
    }
    assertThat(ended).isEqualTo(5);
    assertThat(refused("rate")).isEqualTo(before + 5);
    assertServed();
  }

  /** Each of its turns ends although there is more to read, and none of it is lost. */
  @Test
  void a_client_that_sends_without_a_pause_is_answered_all_and_keeps_nobody_waiting() {
    byte[] large = new byte[60 * 1024];
    TestClient elsewhere = client.at(InetAddress.ofLiteral("127.0.0.5"));
    TestClient.Party to = client.party();
    List<CompletableFuture<TestClient.Reply>> replies = new ArrayList<>();
    try (TestClient.Socket first = elsewhere.connect(null);
        TestClient.Socket second = elsewhere.connect(null);
        TestClient.Socket third = elsewhere.connect(null)) {
      for (int i = 0; i < 50; i++) {
        for (TestClient.Socket socket : List.of(first, second, third)) {
          replies.add(
              socket.callAsync(
                  "PUT",
                  "/v1/messages/multi_recipient?ts=1&online=true",
                  TestClient.multiRecipient(large, TestClient.Recipient.of(to)),
                  TestClient.multiRecipientHeaders(to)));
        }
      }
      assertServed();
      assertThat(replies).allMatch(reply -> reply.join().status() == 200);
    }
  }
}
