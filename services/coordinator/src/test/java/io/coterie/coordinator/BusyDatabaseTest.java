package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.party.v1.RefusalReason;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Coordinators whose database answers some statements only. */
@Timeout(120)
class BusyDatabaseTest {
  private static final List<String> ALL = List.of("p1", "p2", "p3");

  @TempDir Path folder;
  private TestInstallation one;
  private TestInstallation two;
  private ManagedChannel atOne;

  @BeforeEach
  void start() {
    one = new TestInstallation(folder, 3, "--coterie.coordinator.handover.gone-after=4s").start();
    two = one.another();
    atOne = one.backend();
  }

  @AfterEach
  void stop() {
    two.close();
    one.close();
  }

  private Future<Signing> asks(SignedIntent intent) {
    return SigningServiceGrpc.newFutureStub(atOne)
        .withDeadlineAfter(20, TimeUnit.SECONDS)
        .sign(sign(intent));
  }

  private long orders(SignedIntent intent) {
    return one.parties.orders.stream().filter(o -> o.getSignedIntent().equals(intent)).count();
  }

  /** As when as many requests wait for rows that are locked. */
  @Test
  void a_replica_whose_connections_all_wait_is_there() throws Exception {
    List<Connection> taken = new ArrayList<>();
    List<Double> unseen = new ArrayList<>();
    try {
      for (String pool : List.of("soonDataSource", "durableDataSource")) {
        HikariDataSource connections = one.context().getBean(pool, HikariDataSource.class);
        for (int i = 0; i < connections.getMaximumPoolSize(); i++) {
          taken.add(connections.getConnection());
        }
      }
      String start = one.query("select now()::text");
      Awaitility.await()
          .pollInterval(Duration.ofMillis(250))
          .untilAsserted(
              () -> {
                unseen.add(
                    Double.parseDouble(
                        one.query(
                            "select extract(epoch from now() - seen_at)::text"
                                + " from coordinator_replicas")));
                assertThat(
                        one.query(
                            "select (now() > '" + start + "'::timestamptz + interval '7 s')::text"))
                    .isEqualTo("true");
              });
      assertThat(unseen).as("seconds since it was seen").allMatch(seconds -> seconds < 4);
    } finally {
      for (Connection connection : taken) {
        connection.close();
      }
    }
  }

  private void execute(String sql) throws SQLException {
    try (Connection database = one.bean(DataSource.class).getConnection();
        Statement statement = database.createStatement()) {
      statement.execute(sql);
    }
  }

  private int failedStatements() {
    return Integer.parseInt(
        one.query(
            "select xact_rollback::text from pg_stat_database"
                + " where datname = current_database()"));
  }

  /** An attempt that ends forgets which sessions it has not settled. */
  @Test
  void an_attempt_waits_until_the_database_says_which_epoch_a_key_has() throws Exception {
    one.createKey(atOne, "hot", 2, 3);
    // So that the key is remembered.
    Future<Signing> before = asks(one.wallet.sign(signingIntent("hot", "before").build()));
    assertThat(before.get().getState()).isEqualTo(Signing.State.SIGNED);
    ALL.forEach(
        party ->
            one.parties.behave(
                party,
                new Behaviour.Once(
                    new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_WRONG_EPOCH))));
    SignedIntent intent = one.wallet.sign(signingIntent("hot", "waits").build());
    execute("alter table keys rename to keys_away");
    Future<Signing> call = asks(intent);
    eventually(() -> orders(intent) == 2);
    int failed = failedStatements();
    eventually(() -> failedStatements() >= failed + 4);
    assertThat(orders(intent)).as("no other session begins").isEqualTo(2);
    execute("alter table keys_away rename to keys");
    eventually(call::isDone);
    assertThat(call.resultNow().getState()).isEqualTo(Signing.State.SIGNED);
  }

  /** The rows of a replica that is gone, some of which cannot be read. */
  @Test
  void a_signing_that_cannot_be_taken_up_holds_up_no_other() {
    one.createKey(atOne, "hot", 2, 3);
    ALL.forEach(party -> one.parties.behave(party, new Behaviour.Silent()));
    for (int i = 0; i < 4; i++) {
      SignedIntent intent = one.wallet.sign(signingIntent("hot", "left " + i).build());
      Future<Signing> _ = asks(intent);
      eventually(() -> orders(intent) >= 2);
    }
    one.kill();
    String sound = one.query("select max(id::text) from signings");
    one.query("update signings set decoded = '\\xff' where id <> '" + sound + "' returning 1");
    // Rows are read in the order in which they were written.
    one.query("update signings set sessions = sessions where id = '" + sound + "' returning 1");
    one.parties.behave();
    two.start();
    eventually(
        () -> one.query("select state::text from signings where id = '" + sound + "'").equals("2"));
  }
}
