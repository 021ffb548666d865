package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Socket;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** One member stores the largest messages to all others, whose bodies cost it one copy each. */
class StoredBurstTest {
  private static final int MEMBERS = 15;
  private static final int MESSAGES = 64;
  private static final byte[] CONTENT = new byte[95 * 1024];
  private static final String STORED = "/v1/messages/multi_recipient?ts=1&online=false";

  private static void store(Socket sender, List<Party> to) {
    byte[] body =
        TestClient.multiRecipient(
            CONTENT, to.stream().map(Recipient::of).toArray(Recipient[]::new));
    Map<String, String> headers = TestClient.multiRecipientHeaders(to.toArray(Party[]::new));
    for (int i = 0; i < MESSAGES; i++) {
      assertThat(sender.call("PUT", STORED, body, headers).status()).isEqualTo(200);
    }
  }

  private static CompletableFuture<Void> receive(Socket socket, ExecutorService threads) {
    return CompletableFuture.anyOf(
            socket.closed.thenAccept(code -> assertThat(code).as("closed").isNull()),
            CompletableFuture.runAsync(
                () -> {
                  for (int i = 0; i < MESSAGES; i++) {
                    assertThat(socket.next().envelope().getContent().size())
                        .isGreaterThan(CONTENT.length);
                  }
                },
                threads))
        .thenAccept(_ -> {});
  }

  /** They all load at the same moment: when the database, which is locked meanwhile, answers. */
  private static List<Socket> connectWhileNothingIsLoaded(
      TestService database, TestClient client, List<Party> members) throws SQLException {
    try (Connection connection = database.databaseConnection();
        Statement lock = connection.createStatement()) {
      connection.setAutoCommit(false);
      lock.execute("LOCK TABLE stored_message IN ACCESS EXCLUSIVE MODE");
      List<Socket> sockets =
          members.stream().map(member -> client.connect(member.authorization())).toList();
      sockets.forEach(
          socket -> assertThat(socket.call("GET", "/v1/keepalive").status()).isEqualTo(200));
      Awaitility.await()
          .until(() -> database.count("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0);
      connection.rollback();
      return sockets;
    }
  }

  @Test
  void all_members_get_the_largest_messages_at_once_and_the_service_stays_alive() throws Exception {
    TestService database = TestService.shared();
    TestClient client = new TestClient(database);
    List<Party> members = new ArrayList<>();
    for (int i = 0; i < MEMBERS; i++) {
      members.add(client.party());
    }
    try (Socket sender = client.connect(null)) {
      store(sender, members);
    }
    try (ProcessReplica replica = database.processReplica(ProcessReplica.IMAGE);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      TestClient there = replica.awaitReady(members.getFirst().authorization());
      List<Socket> sockets = connectWhileNothingIsLoaded(database, there, members);
      try (Socket sender = there.connect(null)) {
        sockets.stream()
            .map(socket -> receive(socket, threads))
            .toList()
            .forEach(CompletableFuture::join);
        // And all of them are told at the same moment.
        store(sender, members);
        sockets.stream()
            .map(socket -> receive(socket, threads))
            .toList()
            .forEach(CompletableFuture::join);
        assertThat(sockets).allMatch(socket -> !socket.closed.isDone());
      } finally {
        sockets.forEach(Socket::abort);
      }
      assertThat(replica.isAlive()).isTrue();
      assertThat(replica.log()).doesNotContain("OutOfMemoryError");
    }
  }
}
