package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.signer.group.TicketRecord;
import io.coterie.signer.group.TicketStore;
import io.coterie.signer.group.TicketStore.Registration;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tickets on the disk of an issuer: each is bound once, and so are its identity and its point. */
class TicketStoreTest {
  private static final String GROUP = "groups/approvers";
  private static final AuditEvent MADE = AuditEvent.of("wallet", "group.step", "done", Map.of());

  @TempDir Path folder;
  private PartyStore store;

  @BeforeEach
  void open() {
    store = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {});
  }

  @AfterEach
  void close() {
    store.close();
  }

  private TicketStore tickets() {
    return store.tickets();
  }

  private static <T> T await(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private static ByteString bytes(int first) {
    byte[] bytes = new byte[32];
    bytes[0] = (byte) first;
    return ByteString.copyFrom(bytes);
  }

  private static TicketRecord ticket(int epoch, int name, int identity) {
    return new TicketRecord(
        GROUP,
        epoch,
        bytes(name),
        bytes(identity),
        ByteString.copyFromUtf8("intent " + name),
        ByteString.copyFromUtf8("reservation " + name),
        null);
  }

  private static TicketRecord.Member member(int point, int runs) {
    return new TicketRecord.Member(
        ByteString.copyFromUtf8("record of " + runs),
        ByteString.copyFromUtf8("part"),
        runs,
        bytes(point),
        ByteString.copyFromUtf8("acceptance"));
  }

  private boolean bind(TicketRecord ticket) {
    return await(tickets().bind(ticket, "wallet", MADE));
  }

  private Registration register(TicketRecord ticket, TicketRecord.Member member) {
    return await(tickets().register(ticket, member, MADE));
  }

  private boolean count(TicketRecord ticket, int runs) {
    return await(tickets().count(ticket, member(1, runs), MADE));
  }

  @Test
  void a_ticket_and_an_identity_are_bound_once_in_an_epoch() {
    assertThat(bind(ticket(1, 1, 1))).isTrue();
    assertThat(bind(ticket(1, 1, 2))).as("the ticket").isFalse();
    assertThat(bind(ticket(1, 2, 1))).as("the identity").isFalse();
    assertThat(bind(ticket(1, 2, 2))).isTrue();
    assertThat(bind(ticket(2, 1, 1))).as("of another epoch").isTrue();
    close();
    open();
    assertThat(tickets().find(GROUP, 1, bytes(1))).contains(ticket(1, 1, 1));
    assertThat(tickets().ofIdentity(GROUP, 1, bytes(2))).contains(ticket(1, 2, 2));
    assertThat(tickets().find(GROUP, 1, bytes(3))).isEmpty();
    assertThat(tickets().find("groups/others", 1, bytes(1))).isEmpty();
    assertThat(tickets().members(GROUP, 1)).isZero();
  }

  @Test
  void a_ticket_has_one_member_whose_point_is_nobody_elses() {
    TicketRecord one = ticket(1, 1, 1);
    TicketRecord two = ticket(1, 2, 2);
    assertThat(bind(one) && bind(two)).isTrue();
    assertThat(register(one, member(1, 0))).isEqualTo(Registration.STORED);
    assertThat(register(one, member(3, 0))).isEqualTo(Registration.KNOWN);
    assertThat(register(two, member(1, 0))).isEqualTo(Registration.POINT_TAKEN);
    assertThat(tickets().members(GROUP, 1)).isEqualTo(1);
    assertThat(tickets().find(GROUP, 1, bytes(1)).orElseThrow().member()).isEqualTo(member(1, 0));
    assertThat(register(two, member(2, 0))).isEqualTo(Registration.STORED);
  }

  @Test
  void a_run_is_counted_once_and_only_upwards() {
    TicketRecord one = ticket(1, 1, 1);
    assertThat(bind(one)).isTrue();
    assertThat(count(one, 1)).as("of no member").isFalse();
    register(one, member(1, 0));
    assertThat(count(one, 2)).isTrue();
    for (int spent : List.of(1, 2)) {
      assertThat(count(one, spent)).isFalse();
    }
    close();
    open();
    assertThat(count(one, 2)).isFalse();
    assertThat(count(one, 3)).isTrue();
    assertThat(tickets().find(GROUP, 1, bytes(1)).orElseThrow().member()).isEqualTo(member(1, 3));
  }

  /** The table keeps the promises, whatever the code above it does. */
  @Test
  void the_table_lets_nothing_be_replaced() throws SQLException {
    TicketRecord one = ticket(1, 1, 1);
    bind(one);
    register(one, member(1, 0));
    count(one, 3);
    close();
    try (Connection db =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        Statement statement = db.createStatement()) {
      for (String change :
          List.of(
              "reservation = x'00'",
              "identity = zeroblob(32)",
              "intent = x'00'",
              "point = x'00'",
              "part = x'00'",
              "acceptance = x'00'",
              "member = x'00'",
              "runs = 2",
              "member = x'00', runs = 3")) {
        assertThatThrownBy(() -> statement.executeUpdate("UPDATE group_ticket SET " + change))
            .as(change)
            .isInstanceOf(SQLException.class)
            .hasMessageContaining("a ticket is bound once");
      }
    }
    open();
  }
}
