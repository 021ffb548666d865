package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Pushed;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Two replicas of the service, one database, one Redis. */
class ReplicasTest {
  private static RedisServer redis;
  private static TestService first;
  private static TestService second;
  private static TestClient atFirst;
  private static TestClient atSecond;

  private final Party sender = atFirst.party();
  private final Party recipient = atFirst.party();
  private final List<Socket> opened = new ArrayList<>();

  @BeforeAll
  static void start() {
    redis = RedisServer.launch();
    first = TestService.start(redis.arguments().toArray(String[]::new));
    second = first.replica();
    atFirst = new TestClient(first);
    atSecond = new TestClient(first, second::port);
  }

  @AfterAll
  static void stop() {
    if (second != null) {
      second.closeReplica();
      first.close();
      redis.close();
    }
  }

  @AfterEach
  void hangUp() {
    opened.forEach(Socket::abort);
  }

  private Socket connect(TestClient at, Party party) {
    Socket socket = at.connect(party.authorization()).drained();
    opened.add(socket);
    return socket;
  }

  private Socket silent(TestClient at, Party party) {
    Socket socket = at.connectSilent(party.authorization());
    opened.add(socket);
    return socket;
  }

  private Reply trySend(TestClient at, boolean online, String content) {
    return at.rest(null)
        .call(
            "PUT",
            "/v1/messages/multi_recipient?ts=1&online=" + online,
            TestClient.multiRecipient(
                TestClient.bytes("\n" + content), Recipient.of(sender), Recipient.of(recipient)),
            TestClient.multiRecipientHeaders(sender, recipient));
  }

  private void send(TestClient at, boolean online, String content) {
    Reply reply = trySend(at, online, content);
    assertThat(reply.status()).as(reply.text()).isEqualTo(200);
  }

  private static String text(Pushed pushed) {
    String content = pushed.envelope().getContent().toStringUtf8();
    return content.substring(content.lastIndexOf('\n') + 1);
  }

  @Test
  void delivers_to_a_device_that_is_connected_to_the_other_replica() {
    Socket socket = connect(atSecond, recipient);
    for (boolean online : new boolean[] {true, false}) {
      send(atFirst, online, "online=" + online);
      assertThat(text(socket.next())).isEqualTo("online=" + online);
    }
  }

  @Test
  void keeps_the_order_of_each_sender() {
    Socket socket = connect(atSecond, recipient);
    List<String> sent = IntStream.range(0, 300).mapToObj(i -> "m" + i).toList();
    try (Socket out = atFirst.connect(null)) {
      List<CompletableFuture<Reply>> replies =
          sent.stream()
              .map(
                  content ->
                      out.callAsync(
                          "PUT",
                          "/v1/messages/multi_recipient?ts=1&online=true",
                          TestClient.multiRecipient(
                              TestClient.bytes("\n" + content), Recipient.of(recipient)),
                          TestClient.multiRecipientHeaders(recipient)))
              .toList();
      replies.forEach(reply -> assertThat(reply.join().status()).isEqualTo(200));
    }
    assertThat(sent.stream().map(content -> text(socket.next()))).containsExactlyElementsOf(sent);
  }

  @Test
  void keeps_an_online_message_for_whichever_replica_the_device_connects_to() {
    for (String content : List.of("one", "two", "three")) {
      send(atFirst, true, content);
    }
    Socket socket = connect(atSecond, recipient);
    assertThat(List.of(text(socket.next()), text(socket.next()), text(socket.next())))
        .containsExactly("one", "two", "three");
    assertThat(redis.command("EXISTS coterie:{" + recipient.aci + ".1}:online")).isEqualTo(":0");
  }

  @Test
  void bounds_what_waits_in_redis_and_lets_it_expire() {
    for (int i = 0; i < 3; i++) {
      send(atFirst, true, "m" + i);
    }
    String key = "coterie:{" + recipient.aci + ".1}:online";
    assertThat(redis.command("LLEN " + key)).isEqualTo(":3");
    long left = Long.parseLong(redis.command("PTTL " + key).substring(1));
    assertThat(left).isBetween(1L, 10_000L);
    assertThat(redis.command("PTTL " + key + "-bytes")).isNotEqualTo(":-1");
  }

  @Test
  void has_one_connection_of_a_device_over_all_replicas() {
    Socket older = connect(atFirst, recipient);
    Socket newer = connect(atSecond, recipient);
    assertThat(older.closeCode()).isEqualTo(4409);
    send(atFirst, true, "for the newer");
    assertThat(text(newer.next())).isEqualTo("for the newer");
    Socket newest = connect(atFirst, recipient);
    assertThat(newer.closeCode()).isEqualTo(4409);
    send(atSecond, false, "for the newest");
    assertThat(text(newest.next())).isEqualTo("for the newest");
  }

  @Test
  void lets_a_device_reconnect_again_and_again() {
    Socket last = connect(atFirst, recipient);
    for (int i = 0; i < 40; i++) {
      Socket next = connect(i % 3 == 0 ? atFirst : atSecond, recipient);
      assertThat(last.closeCode()).isEqualTo(4409);
      last = next;
      if (i % 4 == 0) {
        last.close();
        last = connect(atSecond, recipient);
      }
    }
    send(atFirst, true, "still here");
    assertThat(text(last.next())).isEqualTo("still here");
  }

  /** One connection is left, whichever wins, and it is the one that gets messages. */
  @Test
  void agrees_on_one_connection_when_a_device_connects_everywhere_at_once() {
    List<CompletableFuture<Socket>> connecting =
        IntStream.range(0, 8)
            .mapToObj(
                i ->
                    CompletableFuture.supplyAsync(
                        () -> (i % 2 == 0 ? atFirst : atSecond).connect(recipient.authorization())))
            .toList();
    List<Socket> sockets = connecting.stream().map(CompletableFuture::join).toList();
    opened.addAll(sockets);
    Awaitility.await()
        .atMost(TestClient.PATIENCE)
        .until(() -> sockets.stream().filter(s -> !s.closed.isDone()).count() == 1);
    Socket left = sockets.stream().filter(s -> !s.closed.isDone()).findFirst().orElseThrow();
    send(atFirst, true, "for who is left");
    assertThat(text(left.next())).isEqualTo("for who is left");
  }

  @Test
  void tells_all_replicas_of_a_changed_account() {
    Socket old = connect(atSecond, recipient);
    Party again = atFirst.sameNumber(recipient);
    assertThat(again.register(first.enrol(again.number)).status()).isEqualTo(200);
    assertThat(old.closeCode()).isEqualTo(4401);
    assertThatThrownBy(() -> atSecond.connect(recipient.authorization())).isNotNull();
    assertThat(atSecond.rest(again.authorization()).call("GET", "/v1/accounts/whoami").status())
        .isEqualTo(200);
    Socket anew = connect(atSecond, again);
    assertThat(anew.call("GET", "/v1/keepalive").status()).isEqualTo(200);
  }

  /**
   * A process is killed while it delivers: every message that was accepted arrives, in order, from
   * the replica that is left.
   */
  @Test
  void loses_no_stored_message_with_a_replica() {
    int count = 120;
    Set<String> seen = new LinkedHashSet<>();
    try (ProcessReplica doomed = first.processReplica()) {
      TestClient atDoomed = doomed.awaitReady(recipient.authorization());
      Socket socket = silent(atDoomed, recipient);
      for (int i = 0; i < count; i++) {
        send(i % 2 == 0 ? atDoomed : atFirst, false, "m" + i);
        if (i % 3 == 0) {
          Pushed pushed = socket.next();
          seen.add(text(pushed));
          socket.acknowledge(pushed);
        }
      }
      doomed.kill();
      assertThat(socket.closeCode()).isEqualTo(1006);
    }
    Socket socket = connect(atFirst, recipient);
    socket.pushed.forEach(pushed -> seen.add(text(pushed)));
    assertThat(seen)
        .containsExactlyElementsOf(IntStream.range(0, count).mapToObj(i -> "m" + i).toList());
    send(atSecond, true, "and on");
    Awaitility.await().until(() -> socket.pushed.stream().anyMatch(p -> text(p).equals("and on")));
  }

  private static int readiness(TestService replica) throws Exception {
    try (HttpClient http = HttpClient.newBuilder().sslContext(first.trust()).build()) {
      URI uri =
          URI.create(
              "https://localhost:" + replica.managementPort() + "/actuator/health/readiness");
      return http.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.discarding())
          .statusCode();
    }
  }

  @Test
  void outlives_redis_and_everything_redis_knew() throws Exception {
    Socket socket = connect(atSecond, recipient);
    redis.stop();
    assertThat(trySend(atFirst, true, "lost").status()).isEqualTo(503);
    send(atFirst, false, "stored meanwhile");
    Awaitility.await().until(() -> readiness(first) == 503);
    Socket refused = atFirst.connect(sender.authorization());
    opened.add(refused);
    assertThat(refused.closeCode()).as("try again later").isEqualTo(1013);
    assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200);

    redis.start();

    assertThat(text(socket.next())).isEqualTo("stored meanwhile");
    Awaitility.await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> trySend(atFirst, true, "online again").status() == 200);
    assertThat(text(socket.next())).isEqualTo("online again");
    assertThat(readiness(first)).isEqualTo(200);
    Socket newer = connect(atFirst, recipient);
    assertThat(socket.closeCode()).isEqualTo(4409);
    newer.close();
  }
}
