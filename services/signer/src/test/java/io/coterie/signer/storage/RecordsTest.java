package io.coterie.signer.storage;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Records that show what the party did are kept for a time, and exported. */
class RecordsTest {
  private static final JsonMapper JSON = JsonMapper.builder().build();
  private static final Duration DAY = Duration.ofDays(1);
  private static final Duration RETENTION = Duration.ofDays(30);

  @TempDir Path folder;
  private PartyStore store;
  private Instant now = Instant.parse("2026-11-26T08:00:00Z");
  private int sessions;

  @BeforeEach
  void open() {
    InstantSource source = () -> now;
    Clock clock = source.withZone(ZoneOffset.UTC);
    store = PartyStore.open(folder, "alpha", clock, (_, _) -> {}, RETENTION, 0);
    forget(Duration.ZERO);
  }

  @AfterEach
  void close() {
    store.close();
  }

  private static ByteString bytes32(int seed) {
    return ByteString.copyFrom(HexFormat.of().parseHex("%064x".formatted(seed)));
  }

  private void claim() {
    sessions++;
    Outcome outcome =
        store
            .claims()
            .claimOnce(
                new Claim(
                    new SessionId(bytes32(sessions)),
                    "wallet",
                    RequestId.at(now),
                    bytes32(sessions),
                    null,
                    null,
                    null,
                    ByteString.copyFromUtf8("intent " + sessions),
                    MemoryLedger.COORDINATOR),
                AuditEvent.of(
                    "wallet",
                    "order.accept",
                    "accepted",
                    Map.of("intent_digest", "%064x".formatted(sessions))))
            .toCompletableFuture()
            .join();
    assertThat(outcome).isEqualTo(Outcome.CLAIMED);
  }

  private void forget(Duration running) {
    store.claims().forgetRequests(running);
    barrier();
    barrier();
  }

  /** All that was submitted before is written; the next one covers what that has submitted. */
  private void barrier() {
    store
        .claims()
        .decline(new SessionId(bytes32(9_999)), MemoryLedger.COORDINATOR, null)
        .toCompletableFuture()
        .join();
  }

  private void pass(Duration time) {
    now = now.plus(time);
    forget(time);
  }

  private long count(String table) throws SQLException {
    try (Connection file =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        ResultSet row = file.createStatement().executeQuery("SELECT count(*) FROM " + table)) {
      return row.getLong(1);
    }
  }

  private List<String> exported(long from) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    PartyStore.export(folder, from, new PrintStream(out, true, UTF_8));
    return out.toString(UTF_8).lines().toList();
  }

  private void assertIntact(long records) {
    assertThat(store.audit().verify())
        .isInstanceOfSatisfying(
            AuditTrail.Verification.Intact.class,
            intact -> assertThat(intact.records()).isEqualTo(records));
  }

  @Test
  void records_intents_and_sessions_are_kept_for_the_retention_and_not_longer() throws Exception {
    claim();
    pass(Duration.ofDays(20));
    claim();
    pass(Duration.ofDays(10));
    assertThat(count("audit_record")).as("until the end of the thirtieth day").isEqualTo(2);
    pass(DAY);
    assertThat(store.audit().read(1, 10)).extracting(AuditRecord::sequence).containsExactly(2L);
    assertThat(count("kept_intent")).isEqualTo(1);
    // Of this one and of the barrier's.
    assertThat(count("claimed_session")).isEqualTo(2);
    assertIntact(2);

    pass(Duration.ofDays(60));
    assertThat(count("kept_intent") + count("claimed_request")).isZero();
    assertThat(store.audit().read(1, 10)).as("the last one goes never").hasSize(1);
    claim();
    assertThat(store.audit().read(1, 10)).extracting(AuditRecord::sequence).containsExactly(2L, 3L);
    assertIntact(3);
    close();
    open();
    claim();
    assertIntact(4);
  }

  @Test
  void a_clock_that_jumps_makes_it_forget_no_record() throws Exception {
    claim();
    claim();
    now = now.plus(Duration.ofDays(400));
    forget(Duration.ofMinutes(1));
    assertThat(count("audit_record")).isEqualTo(2);
    assertThat(count("claimed_session")).isGreaterThanOrEqualTo(2);
  }

  /** Written while the clock was wrong: the records of that time are as old as they are. */
  @Test
  void records_of_a_wrong_clock_are_kept_as_long_as_all_others() throws Exception {
    Instant right = now;
    now = right.plus(Duration.ofDays(400));
    claim();
    now = Instant.EPOCH;
    store.audit().record(AuditEvent.of("signer", "test", "ok", Map.of()));
    barrier();
    now = right;
    claim();
    pass(RETENTION);
    assertThat(count("audit_record")).isEqualTo(3);
    assertThat(count("kept_intent")).isEqualTo(2);
    pass(DAY);
    assertThat(store.audit().read(1, 10)).extracting(AuditRecord::sequence).containsExactly(3L);
    assertThat(count("kept_intent")).isZero();
    assertIntact(3);
  }

  @Test
  void many_are_forgotten_some_at_a_time() throws Exception {
    for (int i = 0; i < 2_300; i++) {
      store.audit().record(AuditEvent.of("signer", "test", "ok", Map.of()));
    }
    barrier();
    assertIntact(2_300);
    now = now.plus(Duration.ofDays(31));
    forget(Duration.ofDays(31));
    for (int i = 0; i < 10; i++) {
      barrier();
    }
    assertThat(store.audit().read(1, 10)).extracting(AuditRecord::sequence).containsExactly(2_300L);
    assertIntact(2_300);
  }

  @Test
  void the_export_has_every_record_with_the_intent_that_was_signed() {
    claim();
    store.audit().record(AuditEvent.of("wallet", "session.end", "completed", Map.of()));
    claim();
    List<String> all = exported(1);
    assertThat(all).hasSize(3);
    List<JsonNode> parsed = all.stream().map(line -> JSON.readTree(line)).toList();
    List<AuditRecord> records = store.audit().read(1, 10);
    for (int i = 0; i < 3; i++) {
      assertThat(parsed.get(i).path("sequence").asLong()).isEqualTo(i + 1);
      assertThat(parsed.get(i).path("hash").asString())
          .isEqualTo(HexFormat.of().formatHex(records.get(i).hash()));
    }
    assertThat(parsed.get(1).has("signed_intent")).isFalse();
    assertThat(parsed.get(2).path("signed_intent").asString())
        .isEqualTo(Base64.getEncoder().encodeToString("intent 2".getBytes(UTF_8)));
    assertThat(exported(3)).isEqualTo(all.subList(2, 3));
    assertThat(exported(4)).isEmpty();
  }

  /** Nobody's name is under the signature: two requesters can sign the same bytes. */
  @Test
  void an_intent_that_two_requesters_signed_is_kept_and_exported_for_each() throws Exception {
    for (String requester : List.of("thief", "wallet")) {
      sessions++;
      store
          .claims()
          .claimOnce(
              new Claim(
                  new SessionId(bytes32(sessions)),
                  requester,
                  RequestId.at(now),
                  bytes32(77),
                  null,
                  null,
                  null,
                  ByteString.copyFromUtf8("signed by " + requester),
                  MemoryLedger.COORDINATOR),
              AuditEvent.of(
                  requester,
                  "order.accept",
                  "accepted",
                  Map.of("intent_digest", "%064x".formatted(77))))
          .toCompletableFuture()
          .join();
    }
    assertThat(exported(1).stream().map(line -> JSON.readTree(line)))
        .extracting(line -> line.path("actor").asString(), RecordsTest::intent)
        .containsExactly(tuple("thief", "signed by thief"), tuple("wallet", "signed by wallet"));
    pass(RETENTION.plus(DAY));
    assertThat(count("kept_intent")).isZero();
  }

  @Test
  void the_word_that_a_request_is_never_signed_is_exported_with_the_intent_that_asked_for_it() {
    store
        .claims()
        .never(
            "wallet",
            RequestId.at(now),
            null,
            ByteString.copyFromUtf8("the signed cancel intent"),
            bytes32(99),
            AuditEvent.of(
                "wallet", "receipt.give", "never", Map.of("cancel_digest", "%064x".formatted(99))))
        .toCompletableFuture()
        .join();
    assertThat(exported(1).stream().map(line -> intent(JSON.readTree(line))))
        .containsExactly("the signed cancel intent");
  }

  private static String intent(JsonNode line) {
    return new String(Base64.getDecoder().decode(line.path("signed_intent").asString()), UTF_8);
  }

  @Test
  void a_trail_that_somebody_has_changed_is_not_exported_as_if_it_were_whole() throws Exception {
    for (int i = 0; i < 3; i++) {
      claim();
    }
    close();
    try (Connection file =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        var statement = file.createStatement()) {
      statement.executeUpdate("DELETE FROM audit_record WHERE sequence = 2");
    }
    assertThatThrownBy(() -> exported(1)).hasMessageContaining("broken at record 3");
    open();
  }
}
