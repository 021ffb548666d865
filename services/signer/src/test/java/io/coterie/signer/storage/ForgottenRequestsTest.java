package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When a party forgets the requests that it has claimed. */
class ForgottenRequestsTest {
  private static final Instant BEGIN = Instant.parse("2026-11-26T08:00:00Z");

  /** Longer than a request is kept. */
  private static final Duration LONG = VerifiedIntent.MAX_LIFE.plus(Duration.ofDays(2));

  @TempDir Path folder;

  private Instant now = BEGIN;
  private PartyStore store;
  private int sessions;

  @BeforeEach
  void open() {
    InstantSource source = () -> now;
    Clock clock = source.withZone(ZoneOffset.UTC);
    store = PartyStore.open(folder, "alpha", clock, (_, _) -> {});
  }

  @AfterEach
  void close() {
    store.close();
  }

  private static ByteString bytes32(int seed) {
    byte[] bytes = new byte[32];
    bytes[0] = (byte) seed;
    return ByteString.copyFrom(bytes);
  }

  /** Claims a request for a session of its own, which it is bound to. */
  private Outcome claim(String requester, String requestId, int digest) {
    sessions++;
    SessionId session = new SessionId(bytes32(sessions));
    Binding binding =
        new Binding(
            requester,
            requestId,
            session,
            ByteString.copyFromUtf8("order"),
            ByteString.EMPTY,
            now.plusSeconds(60));
    Claim claim =
        new Claim(
            session,
            requester,
            requestId,
            bytes32(digest),
            binding,
            null,
            null,
            ByteString.EMPTY,
            MemoryLedger.COORDINATOR);
    return store
        .claims()
        .claimOnce(claim, AuditEvent.of(requester, "order.accept", "ok", Map.of()))
        .toCompletableFuture()
        .join();
  }

  private long claims() throws SQLException {
    try (Connection file =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        ResultSet row =
            file.createStatement().executeQuery("SELECT count(*) FROM claimed_request")) {
      return row.getLong(1);
    }
  }

  private void pass(Duration time) {
    now = now.plus(time);
    forget(time);
  }

  /** Forgets, and waits until that is done. */
  private void forget(Duration running) {
    store.claims().forgetRequests(running);
    settle();
  }

  /** Waits until all that was given to write before is on disk. */
  private void settle() {
    store
        .claims()
        .decline(new SessionId(bytes32(255)), MemoryLedger.COORDINATOR, null)
        .toCompletableFuture()
        .join();
  }

  @Test
  void a_request_is_forgotten_when_no_intent_can_have_its_id_any_more() throws SQLException {
    String old = RequestId.at(BEGIN);
    assertThat(claim("wallet", old, 1)).isEqualTo(Outcome.CLAIMED);
    assertThat(claim("other", old, 1)).isEqualTo(Outcome.CLAIMED);
    pass(Duration.ZERO);
    pass(VerifiedIntent.MAX_LIFE);
    String young = RequestId.at(now);
    assertThat(claim("wallet", young, 1)).isEqualTo(Outcome.CLAIMED);
    assertThat(claim("wallet", old, 2)).as("it may live").isEqualTo(Outcome.REQUEST_ID_REUSED);

    pass(Duration.ofHours(25));

    assertThat(claims()).as("only the young one").isEqualTo(1);
    assertThat(claim("wallet", old, 2)).as("dead for ever").isEqualTo(Outcome.FENCED);
    assertThat(claim("other", old, 1)).isEqualTo(Outcome.FENCED);
    assertThat(claim("wallet", young, 1)).isEqualTo(Outcome.REQUEST_BOUND);
    assertThat(claim("wallet", young, 2)).isEqualTo(Outcome.REQUEST_ID_REUSED);
  }

  @Test
  void a_clock_that_jumps_makes_it_forget_nothing() {
    String id = RequestId.at(BEGIN);
    assertThat(claim("wallet", id, 1)).isEqualTo(Outcome.CLAIMED);
    pass(Duration.ZERO);
    now = now.plus(LONG);
    forget(Duration.ofMinutes(1));
    assertThat(claim("wallet", id, 2)).isEqualTo(Outcome.REQUEST_ID_REUSED);

    close();
    open();
    forget(Duration.ofMinutes(1));
    assertThat(claim("wallet", id, 2)).as("after a restart").isEqualTo(Outcome.REQUEST_ID_REUSED);

    now = BEGIN.plusSeconds(120);
    forget(Duration.ofMinutes(1));
    assertThat(claim("wallet", id, 2)).as("set right").isEqualTo(Outcome.REQUEST_ID_REUSED);
    assertThat(claim("wallet", id, 1)).isEqualTo(Outcome.REQUEST_BOUND);
  }

  @Test
  void a_party_that_was_down_forgets_later_and_catches_up() {
    String id = RequestId.at(BEGIN);
    assertThat(claim("wallet", id, 1)).isEqualTo(Outcome.CLAIMED);
    pass(Duration.ZERO);
    now = now.plus(Duration.ofDays(3));
    forget(Duration.ofHours(30));
    assertThat(claim("wallet", id, 2)).isEqualTo(Outcome.REQUEST_ID_REUSED);
    forget(Duration.ofHours(10));
    assertThat(claim("wallet", id, 2)).isEqualTo(Outcome.FENCED);
  }

  @Test
  void a_clock_that_is_set_back_revives_nothing_that_was_forgotten() throws SQLException {
    String id = RequestId.at(BEGIN);
    assertThat(claim("wallet", id, 1)).isEqualTo(Outcome.CLAIMED);
    pass(Duration.ZERO);
    pass(LONG);
    assertThat(claims()).isZero();

    now = BEGIN.plusSeconds(1);
    forget(Duration.ofMinutes(1));
    assertThat(claim("wallet", id, 2)).isEqualTo(Outcome.FENCED);
    close();
    open();
    assertThat(claim("wallet", id, 2)).as("after a start").isEqualTo(Outcome.FENCED);
  }

  @Test
  void more_than_are_forgotten_at_once_are_forgotten_one_after_another() throws SQLException {
    close(); // nobody else may write into its file
    try (Connection file =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        PreparedStatement insert =
            file.prepareStatement(
                "INSERT INTO claimed_request (requester, request_id, intent_digest)"
                    + " VALUES (?, ?, zeroblob(32))")) {
      file.setAutoCommit(false);
      for (int i = 0; i < 2_500; i++) {
        insert.setString(1, "requester-" + i % 3);
        insert.setString(2, RequestId.at(BEGIN));
        insert.executeUpdate();
      }
      file.commit();
    }
    open();
    pass(Duration.ZERO);
    pass(LONG);
    // A transaction that has forgotten as much as one may gives the next one to write.
    for (int more = 1; more <= 10; more++) {
      settle();
    }
    assertThat(claims()).isZero();
  }
}
