package io.coterie.coordinator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.custody.signing.SigningRecord;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.concurrent.CompletableFuture;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

/** Rows of PostgreSQL that another statement has locked, as a look for abandoned work has. */
@Timeout(120)
class LockedRowsTest {
  private final PGSimpleDataSource postgres = StoreContractTest.postgres();
  private final Replica here = StoreContractTest.replica(postgres, "here");

  private boolean aStatementWaits() throws Exception {
    try (Connection connection = postgres.getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows =
            statement.executeQuery(
                "select 1 from pg_stat_activity where datname = current_database()"
                    + " and wait_event_type = 'Lock'")) {
      return rows.next();
    }
  }

  /** Else work in progress would leave it, and begin again with what it has not settled. */
  @Test
  void a_locked_request_is_its_replicas_all_the_same() throws Exception {
    here.presence().seen();
    SigningRecord signing = StoreContractTest.signing();
    here.signings().claimOnce(signing);
    CompletableFuture<Boolean> mine;
    try (Connection look = postgres.getConnection();
        Statement statement = look.createStatement()) {
      look.setAutoCommit(false);
      statement.executeUpdate("update signings set worker = 'here'");
      assertThat(here.signings().takeAll(true)).as("nobody waits").isEmpty();
      mine = CompletableFuture.supplyAsync(() -> here.signings().take(signing.id()).isPresent());
      Awaitility.await().until(() -> mine.isDone() || aStatementWaits());
      look.commit();
    }
    assertThat(mine.get()).isTrue();
  }

  /** Else such a question would keep a connection for as long as the row is locked. */
  @Test
  void nobody_waits_long_for_a_locked_request() throws Exception {
    here.presence().seen();
    SigningRecord signing = StoreContractTest.signing();
    here.signings().claimOnce(signing);
    try (Connection look = postgres.getConnection();
        Statement statement = look.createStatement()) {
      look.setAutoCommit(false);
      statement.executeUpdate("update signings set worker = 'here'");
      assertThatThrownBy(() -> here.signings().take(signing.id()))
          .isInstanceOf(StoreUnavailableException.class);
      look.rollback();
    }
    assertThat(here.signings().take(signing.id())).isPresent();
  }

  @Test
  void a_locked_request_that_another_replica_gets_is_the_others() throws Exception {
    here.presence().seen();
    StoreContractTest.replica(postgres, "other").presence().seen();
    SigningRecord signing = StoreContractTest.signing();
    here.signings().claimOnce(signing);
    CompletableFuture<Boolean> mine;
    try (Connection look = postgres.getConnection();
        Statement statement = look.createStatement()) {
      look.setAutoCommit(false);
      statement.executeUpdate("update signings set worker = 'other'");
      mine = CompletableFuture.supplyAsync(() -> here.signings().take(signing.id()).isPresent());
      Awaitility.await().until(() -> mine.isDone() || aStatementWaits());
      look.commit();
    }
    assertThat(mine.get()).isFalse();
  }
}
