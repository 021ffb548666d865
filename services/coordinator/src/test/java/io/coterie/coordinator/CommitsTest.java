package io.coterie.coordinator;

import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.proto.custody.v1.SignedIntent;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which commits of a coordinator wait for the disk, as PostgreSQL sees its statements. */
class CommitsTest {
  /** Notes with each row that is written whether the commit of its statement waits. */
  private static final List<String> NOTES =
      List.of(
          "create table commits (note text)",
          """
          create function noted() returns trigger language plpgsql as $$ begin
            insert into commits values (tg_op || ' ' || tg_table_name || ' ' || new.state
              || ' ' || current_setting('synchronous_commit'));
            return new;
          end $$""",
          "create trigger noted before insert or update on keys for each row"
              + " execute function noted()",
          "create trigger noted before insert or update on signings for each row"
              + " execute function noted()");

  @TempDir Path folder;
  private TestInstallation one;

  @BeforeEach
  void start() throws SQLException {
    one = new TestInstallation(folder, 3).start();
    try (Connection database = one.bean(DataSource.class).getConnection();
        Statement statement = database.createStatement()) {
      for (String sql : NOTES) {
        statement.execute(sql);
      }
    }
  }

  @AfterEach
  void stop() {
    one.close();
  }

  /** Only a signing that has not ended may be written without a wait. */
  private void committed(String... expected) {
    List<String> notes =
        List.of(one.query("select string_agg(distinct note, ',') from commits").split(","));
    assertThat(notes)
        .contains(expected)
        .allMatch(note -> note.endsWith(note.contains(" signings 1 ") ? " off" : " on"));
  }

  @Test
  void a_signature_waits_for_the_disk_when_it_ends_and_not_when_it_comes() {
    ManagedChannel backend = one.backend();
    one.createKey(backend, "hot", 2, 3);
    SignedIntent intent = one.wallet.sign(signingIntent("hot", "once").build());
    signing(backend).sign(sign(intent));
    committed(
        "INSERT keys 1 on", "UPDATE keys 2 on", "INSERT signings 1 off", "UPDATE signings 2 on");
  }

  /** A taking that is lost was not done; an end of a request must not be lost. */
  @Test
  void work_is_taken_without_a_wait_and_ended_with_one() {
    SigningStore store = one.bean(SigningStore.class);
    SigningRecord pending = StoreContractTest.signing();
    store.claimOnce(pending);
    store.take(pending.id());
    store.takeAll(true);
    store.finish(pending.unknown(StoreContractTest.WHY, 1, StoreContractTest.NOW));
    store.settle(StoreContractTest.signed(pending, 0));
    committed(
        "INSERT signings 1 off",
        "UPDATE signings 1 off",
        "UPDATE signings 3 on",
        "UPDATE signings 2 on");
  }
}
