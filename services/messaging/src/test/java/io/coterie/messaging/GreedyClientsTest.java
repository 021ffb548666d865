package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Socket;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Clients that would keep every thread of the service to themselves, or all of its memory, beside
 * an honest one of another address.
 */
class GreedyClientsTest {
  /** More than a service like this one has threads by habit. */
  private static final int HOSTILE = 150;

  /** From which they come; none of them is an honest client's. */
  private static final int ADDRESSES = 8;

  private static final InetAddress ELSEWHERE = InetAddress.ofLiteral("127.0.0.2");

  private final AtomicBoolean over = new AtomicBoolean();

  /** A connection of a hostile client, which keeps little of what it does not read. */
  private static SSLSocket connect(TestService service, int number) throws IOException {
    SSLSocket socket = (SSLSocket) service.trust().getSocketFactory().createSocket();
    socket.setReceiveBufferSize(4096);
    socket.bind(new InetSocketAddress("127.0.0." + (2 + number % ADDRESSES), 0));
    socket.connect(new InetSocketAddress("localhost", service.port()));
    return socket;
  }

  private interface Attack {
    void run(SSLSocket socket) throws IOException, InterruptedException;
  }

  /** Does something on a connection again and again; connects anew when the service has closed. */
  private void again(TestService service, int number, CountDownLatch begun, Attack attack) {
    while (!over.get()) {
      try (SSLSocket socket = connect(service, number)) {
        begun.countDown();
        attack.run(socket);
      } catch (IOException e) {
        // Closed or refused, as it should be.
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  private void beside(TestService service, Attack attack) throws Exception {
    TestClient client = new TestClient(service);
    Party from = client.party();
    Party to = client.party();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
        Socket sender = from.connect().drained();
        Socket receiver = to.connect().drained()) {
      CountDownLatch begun = new CountDownLatch(HOSTILE);
      for (int i = 0; i < HOSTILE; i++) {
        int number = i;
        threads.submit(() -> again(service, number, begun, attack));
      }
      try {
        begun.await();
        for (int i = 0; i < 20; i++) {
          byte[] content = TestClient.bytes("honest " + i);
          assertThat(
                  sender
                      .json(
                          "PUT",
                          "/v1/messages/" + to.aci,
                          TestClient.messages(true, TestClient.message(to, content)))
                      .status())
              .isEqualTo(200);
          assertThat(receiver.next().envelope().getContent().toByteArray()).isEqualTo(content);
          assertThat(from.rest().call("GET", "/v1/accounts/whoami").status()).isEqualTo(200);
        }
      } finally {
        over.set(true);
        threads.shutdownNow();
      }
    }
  }

  @Test
  void bodies_that_do_not_come_hold_up_nobody_else() throws Exception {
    try (TestService service = TestService.start()) {
      beside(
          service,
          socket -> {
            OutputStream out = socket.getOutputStream();
            out.write(
                """
                POST /v1/registration HTTP/1.1\r
                Host: localhost\r
                Content-Type: application/json\r
                Content-Length: 100000\r
                \r
                """
                    .getBytes(StandardCharsets.US_ASCII));
            while (!over.get()) {
              out.write(' ');
              out.flush();
              Thread.sleep(200);
            }
          });
    }
  }

  /** The database answers nobody, and whoever needs it gets no further. */
  @Test
  void calls_that_wait_for_the_database_hold_up_nobody_else() throws Exception {
    try (TestService service = TestService.start()) {
      TestClient client = new TestClient(service);
      TestClient elsewhere = client.at(ELSEWHERE);
      Party from = client.party();
      Party to = client.party();
      List<Socket> hostile = new ArrayList<>();
      try (Socket sender = from.connect().drained();
          Socket receiver = to.connect().drained();
          Connection database = service.databaseConnection();
          Statement lock = database.createStatement()) {
        // The accounts of both are in memory.
        send(sender, receiver, to, "before");
        for (int i = 0; i < HOSTILE; i++) {
          hostile.add(elsewhere.connect(null));
        }
        database.setAutoCommit(false);
        lock.execute("LOCK TABLE account, device IN ACCESS EXCLUSIVE MODE");
        String key = Base64.getEncoder().encodeToString(new byte[16]);
        for (Socket socket : hostile) {
          for (int i = 0; i < 200; i++) {
            socket.callAsync(
                "GET",
                "/v2/keys/" + UUID.randomUUID() + "/1",
                new byte[0],
                Map.of("Unidentified-Access-Key", key));
          }
        }
        for (int i = 0; i < 20; i++) {
          send(sender, receiver, to, "meanwhile " + i);
        }
        database.rollback();
      } finally {
        hostile.forEach(Socket::abort);
      }
    }
  }

  private static void send(Socket sender, Socket receiver, Party to, String text) {
    assertThat(
            sender
                .json(
                    "PUT",
                    "/v1/messages/" + to.aci,
                    TestClient.messages(true, TestClient.message(to, TestClient.bytes(text))))
                .status())
        .isEqualTo(200);
    assertThat(receiver.next().envelope().getContent().toStringUtf8()).isEqualTo(text);
  }

  /** Frames of which each is allowed, and a multiple of its size when it is read. */
  private enum Growing {
    HEADERS {
      @Override
      byte[] frame(long id) {
        WebSocketRequestMessage.Builder call = call(id, "");
        for (int i = 0; i < 160_000; i++) {
          call.addHeaders("h");
        }
        return message(call);
      }
    },
    UNKNOWN_FIELDS {
      @Override
      byte[] frame(long id) {
        UnknownFieldSet.Field.Builder unknown = UnknownFieldSet.Field.newBuilder();
        for (int i = 0; i < 160_000; i++) {
          unknown.addLengthDelimited(ByteString.copyFromUtf8("u"));
        }
        return message(
            call(id, "")
                .setUnknownFields(
                    UnknownFieldSet.newBuilder().addField(15, unknown.build()).build()));
      }
    },
    PARAMETERS {
      @Override
      byte[] frame(long id) {
        StringBuilder query = new StringBuilder("?");
        for (int i = 0; i < 90_000; i++) {
          query.append(Integer.toString(i, 36)).append('&');
        }
        return message(call(id, query.toString()));
      }
    };

    abstract byte[] frame(long id);

    /** A call that waits for the database. */
    private static WebSocketRequestMessage.Builder call(long id, String query) {
      return WebSocketRequestMessage.newBuilder()
          .setId(id)
          .setVerb("GET")
          .setPath("/v2/keys/" + UUID.randomUUID() + "/1" + query)
          .addHeaders(
              "Unidentified-Access-Key:" + Base64.getEncoder().encodeToString(new byte[16]));
    }

    private static byte[] message(WebSocketRequestMessage.Builder call) {
      return WebSocketMessage.newBuilder()
          .setType(WebSocketMessage.Type.REQUEST)
          .setRequest(call)
          .build()
          .toByteArray();
    }
  }

  @ParameterizedTest
  @EnumSource
  void frames_that_grow_when_they_are_read_do_not_end_the_service(Growing frames) throws Exception {
    TestService service = TestService.shared();
    Party party = new TestClient(service).party();
    List<Socket> hostile = new ArrayList<>();
    try (ProcessReplica replica =
        service.processReplica("-Xmx192m", "-XX:+ExitOnOutOfMemoryError")) {
      TestClient client = replica.awaitReady(party.authorization());
      TestClient elsewhere = client.at(ELSEWHERE);
      try (Socket honest = client.connect(null);
          Connection database = service.databaseConnection();
          Statement lock = database.createStatement()) {
        for (int i = 0; i < 24; i++) {
          hostile.add(elsewhere.connect(null));
        }
        database.setAutoCommit(false);
        lock.execute("LOCK TABLE account, device IN ACCESS EXCLUSIVE MODE");
        for (int i = 1; i <= 16; i++) {
          for (Socket socket : hostile) {
            if (!socket.closed.isDone()) {
              socket.sendRaw(frames.frame(i));
            }
          }
        }
        for (Socket socket : hostile) {
          if (!socket.closed.isDone()) {
            CompletableFuture.anyOf(
                    socket.callAsync("GET", "/v1/keepalive", new byte[0], Map.of()), socket.closed)
                .join();
          }
        }
        assertThat(honest.call("GET", "/v1/keepalive").status()).isEqualTo(200);
        database.rollback();
      } finally {
        hostile.forEach(Socket::abort);
      }
      assertThat(replica.isAlive()).isTrue();
    }
  }

  @Test
  void bodies_that_grow_when_they_are_read_do_not_end_the_service() throws Exception {
    TestService service = TestService.shared();
    Party party = new TestClient(service).party();
    StringBuilder names = new StringBuilder("{");
    for (int i = 0; i < 50_000; i++) {
      names.append('"').append(Integer.toString(i, 36)).append("\":0,");
    }
    byte[] body = names.append("\"x\":0}").toString().getBytes(StandardCharsets.US_ASCII);
    Map<String, String> authorization =
        Map.of("Authorization", TestClient.basic("+15550000000", "a password of some length"));
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
        ProcessReplica replica =
            service.processReplica("-Xmx192m", "-XX:+ExitOnOutOfMemoryError")) {
      TestClient client = replica.awaitReady(party.authorization());
      TestClient elsewhere = client.at(ELSEWHERE);
      CountDownLatch answered = new CountDownLatch(500);
      for (int i = 0; i < 100; i++) {
        threads.submit(
            () -> {
              while (answered.getCount() > 0) {
                elsewhere.rest(null).json("POST", "/v1/registration", body, authorization);
                answered.countDown();
              }
            });
      }
      try (Socket honest = client.connect(null)) {
        while (answered.getCount() > 0 && replica.isAlive()) {
          assertThat(honest.call("GET", "/v1/keepalive").status()).isEqualTo(200);
          answered.await(20, TimeUnit.MILLISECONDS);
        }
      } finally {
        threads.shutdownNow();
      }
      assertThat(replica.isAlive()).isTrue();
    }
  }

  /** In a cluster Spring believes such headers unless it is told not to. */
  @Test
  void a_client_is_at_the_address_that_it_comes_from_and_not_where_it_says() {
    try (TestService service =
        TestService.start(
            "--spring.main.cloud-platform=kubernetes",
            "--coterie.messaging.limits.connections=8")) {
      HttpClient elsewhere =
          HttpClient.newBuilder().sslContext(service.trust()).localAddress(ELSEWHERE).build();
      TestClient client = new TestClient(service);
      List<WebSocket> hostile = new ArrayList<>();
      try {
        for (int i = 1; i <= 4; i++) {
          hostile.add(
              elsewhere
                  .newWebSocketBuilder()
                  .header("X-Forwarded-For", "203.0.113." + i)
                  .buildAsync(client.socketUri(), new WebSocket.Listener() {})
                  .join());
        }
        assertThatThrownBy(
                () ->
                    elsewhere
                        .newWebSocketBuilder()
                        .header("X-Forwarded-For", "203.0.113.9")
                        .buildAsync(client.socketUri(), new WebSocket.Listener() {})
                        .join())
            .isInstanceOf(CompletionException.class);
        try (Socket honest = client.connect(null)) {
          assertThat(honest.call("GET", "/v1/keepalive").status()).isEqualTo(200);
        }
      } finally {
        hostile.forEach(WebSocket::abort);
      }
    }
  }
}
