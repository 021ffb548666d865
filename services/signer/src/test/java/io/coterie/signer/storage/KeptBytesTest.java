package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How many bytes a party keeps for whom, and how it forgets them. */
class KeptBytesTest {
  private static final Instant BEGIN = Instant.parse("2026-11-26T08:00:00Z");
  private static final Duration RETENTION = Duration.ofDays(30);
  private static final int MIB = 1 << 20;

  /** Many more than it takes to forget all. */
  private static final int STEPS = 1_000;

  private static final int TEXT = AuditEvent.MAX_TEXT;

  @TempDir Path folder;
  private final SecureRandom random = new SecureRandom();
  private PartyStore store;

  @BeforeEach
  void open() {
    store = open(BEGIN);
    store.claims().forgetRequests(Duration.ZERO);
  }

  private PartyStore open(Instant now) {
    return PartyStore.open(
        folder, "alpha", Clock.fixed(now, ZoneOffset.UTC), (_, _) -> {}, RETENTION, 0);
  }

  @AfterEach
  void close() {
    store.close();
  }

  private ByteString bytes32() {
    byte[] bytes = new byte[32];
    random.nextBytes(bytes);
    return ByteString.copyFrom(bytes);
  }

  private CompletableFuture<Outcome> claim(String requester, int intentBytes) {
    return claim(requester, RequestId.at(BEGIN), bytes32(), intentBytes, null, null);
  }

  /** Claims a session of a request, whose payload is shown in its audit record. */
  private CompletableFuture<Outcome> claim(
      String requester,
      String requestId,
      ByteString digest,
      int intentBytes,
      @Nullable Binding binding,
      @Nullable SessionId instead) {
    SessionId session = binding == null ? new SessionId(bytes32()) : binding.session();
    return store
        .claims()
        .claimOnce(
            new Claim(
                session,
                requester,
                requestId,
                digest,
                binding,
                instead,
                null,
                ByteString.copyFrom(new byte[intentBytes]),
                MemoryLedger.COORDINATOR),
            AuditEvent.of(requester, "order.accept", "accepted", shown(session, intentBytes)))
        .toCompletableFuture();
  }

  /** The fields of a record that shows the beginning of a payload, as many as one has at most. */
  private static Map<String, String> shown(SessionId session, int intentBytes) {
    Map<String, String> fields = new HashMap<>();
    fields.put("session_id", HexFormat.of().formatHex(session.bytes().toByteArray()));
    String payload = "00".repeat(intentBytes);
    for (int from = 0; from < payload.length() && fields.size() < 90; from += TEXT) {
      fields.put(
          "payload." + from, payload.substring(from, Math.min(from + TEXT, payload.length())));
    }
    return fields;
  }

  private long kept(String account) {
    return store.claims().room().keptBytes().getOrDefault(account, 0L);
  }

  private void barrier() {
    store
        .claims()
        .decline(new SessionId(ByteString.copyFrom(new byte[32])), MemoryLedger.COORDINATOR, null)
        .toCompletableFuture()
        .join();
  }

  private long count(String what) throws SQLException {
    try (Database file = Database.reader(folder.resolve(PartyStore.FILE))) {
      return file.count(what);
    }
  }

  @Test
  void a_payload_counts_with_its_intent_and_with_the_record_that_shows_it() {
    claim("small", 100).join();
    claim("large", 64 << 10).join();
    assertThat(kept("small")).isBetween(1_000L, 3_000L);
    assertThat(kept("large")).isBetween(3L * (32 << 10), 4L * (32 << 10));
    claim("large", 64 << 10).join();
    assertThat(kept("large")).isGreaterThan(6L * (32 << 10));
  }

  /** Half of it is that of pages which are not full. */
  @Test
  void the_bytes_that_are_counted_are_those_that_the_file_takes() throws Exception {
    long before = count("PRAGMA page_count");
    CompletableFuture<?>[] claims = new CompletableFuture<?>[3_000];
    for (int i = 0; i < claims.length; i++) {
      claims[i] = claim("wallet", 400);
    }
    CompletableFuture.allOf(claims).join();
    long taken = (count("PRAGMA page_count") - before) * count("PRAGMA page_size");
    assertThat((double) kept("wallet") / taken).isBetween(0.8, 1.3);
  }

  @Test
  void a_session_that_takes_the_place_of_another_one_counts_in_its_place() {
    String requestId = RequestId.at(BEGIN);
    ByteString digest = bytes32();
    Binding first = binding(requestId, 1_000);
    claim("wallet", requestId, digest, 100, first, null).join();
    long once = kept("wallet");
    Outcome second =
        claim("wallet", requestId, digest, 100, binding(requestId, 1_500), first.session()).join();
    assertThat(second).isEqualTo(Outcome.CLAIMED);
    assertThat(kept("wallet")).isEqualTo(once + 500);
    assertThat(kept(MemoryLedger.COORDINATOR)).isPositive();
  }

  private Binding binding(String requestId, int orderBytes) {
    return new Binding(
        "wallet",
        requestId,
        new SessionId(bytes32()),
        ByteString.copyFrom(new byte[orderBytes]),
        ByteString.EMPTY,
        BEGIN.plusSeconds(60));
  }

  @Test
  void the_end_of_a_session_counts_for_the_account_of_its_claim() {
    String requestId = RequestId.at(BEGIN);
    ByteString digest = bytes32();
    claim("wallet", requestId, digest, 100, null, null).join();
    long once = kept("wallet");
    Binding again = binding(requestId, 0);
    claim("wallet", requestId, digest, 100, again, null).join();
    long ordered = kept(MemoryLedger.COORDINATOR);
    long bound = kept("wallet");
    assertThat(bound).as("the binding is the request's").isGreaterThan(once);
    store
        .audit()
        .record(
            AuditEvent.of(
                "wallet",
                "session.end",
                "completed",
                Map.of(
                    "session_id",
                    HexFormat.of().formatHex(again.session().bytes().toByteArray()))));
    barrier();
    assertThat(kept("wallet")).isEqualTo(bound);
    assertThat(kept(MemoryLedger.COORDINATOR)).isGreaterThan(ordered);
  }

  private static final String KEY = "keys/treasury";

  private KeyShare share(String key, int epoch, String requester, int sealedBytes) {
    return new KeyShare(
        key,
        epoch,
        Scheme.SCHEME_ECDSA_SECP256K1,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 3),
        List.of(1, 2, 3),
        KeyPublic.newBuilder().setKeyId(key).setThreshold(2).setEpoch(epoch).build(),
        ByteString.copyFrom(new byte[sealedBytes]),
        new KeyShare.Origin(
            new SessionId(bytes32()), "coordinator", requester, RequestId.at(BEGIN), bytes32()),
        null);
  }

  private static AuditEvent event(String what) {
    return AuditEvent.of("operator", what, "ok", Map.of());
  }

  private boolean stored(KeyShare share) {
    return store.shares().storeProvisional(share, event("stored")).toCompletableFuture().join();
  }

  private boolean active(KeyShare share) {
    Certificate proof =
        Certificate.parse(ByteString.copyFrom(new byte[3 * Certificate.SIGNATURE_BYTES]));
    return store.shares().activate(share, proof, event("active")).toCompletableFuture().join();
  }

  private static final String KEYS_OF_WALLET = DiskShares.ofKeys("wallet");

  /** Shares are kept as long as their key, so a requester could fill the disk with them. */
  @Test
  void a_share_of_a_key_counts_for_its_creator_until_it_is_destroyed() {
    KeyShare first = share(KEY, 1, "wallet", 10_000);
    assertThat(stored(first)).isTrue();
    long made = kept(KEYS_OF_WALLET);
    assertThat(made).isBetween(10_000L, 11_500L);
    assertThat(active(first)).isTrue();
    assertThat(kept(KEYS_OF_WALLET)).as("with its certificate").isEqualTo(made + 192);

    KeyShare second = share(KEY, 2, "other", 20_000);
    assertThat(store.shares().storeNext(second, true, event("stored")).toCompletableFuture().join())
        .isTrue();
    assertThat(kept(KEYS_OF_WALLET)).as("the first is still used").isGreaterThan(made + 20_192);
    assertThat(active(second)).isTrue();
    close();
    store = open(BEGIN);
    assertThat(kept(KEYS_OF_WALLET)).isBetween(20_192L, 21_500L);
    assertThat(kept(DiskShares.ofKeys("other"))).as("who refreshed it").isZero();
    assertThat(kept("wallet")).as("what it signs").isZero();
  }

  /** An exclusion writes the active share anew, without what it had in common with a party. */
  @Test
  void a_share_that_is_written_anew_counts_as_it_is() {
    KeyShare share = share(KEY, 1, "wallet", 10_000);
    assertThat(stored(share)).isTrue();
    assertThat(active(share)).isTrue();
    long before = kept(KEYS_OF_WALLET);
    ByteString shorter = ByteString.copyFrom(new byte[4_000]);
    store
        .shares()
        .exclude(
            new KeyShareStore.Exclusion(
                KEY, Set.of(2), new SessionId(bytes32()), share.session(), 1, shorter))
        .toCompletableFuture()
        .join();
    assertThat(kept(KEYS_OF_WALLET)).isEqualTo(before - 6_000);
  }

  @Test
  void the_bytes_of_shares_are_those_that_the_file_takes() throws Exception {
    for (int sealedBytes : new int[] {300, 5_000, 50_000}) {
      String requester = "makes-" + sealedBytes;
      long before = count("PRAGMA page_count");
      for (int i = 0; i < 300; i++) {
        assertThat(stored(share("keys/%s-%d".formatted(requester, i), 1, requester, sealedBytes)))
            .isTrue();
      }
      long taken = (count("PRAGMA page_count") - before) * count("PRAGMA page_size");
      assertThat((double) kept(DiskShares.ofKeys(requester)) / taken)
          .as(requester)
          .isBetween(0.5, 1.3);
    }
  }

  @Test
  void all_that_is_forgotten_counts_no_more_also_after_a_start() throws Exception {
    String requestId = RequestId.at(BEGIN);
    claim("wallet", requestId, bytes32(), 1_000, binding(requestId, 500), null).join();
    for (int i = 0; i < 600; i++) {
      claim("wallet", 1_000);
      claim("other", 2_000);
    }
    barrier();
    long wallet = kept("wallet");
    close();
    store = open(BEGIN.plus(Duration.ofDays(31)));
    assertThat(kept("wallet")).isEqualTo(wallet);
    store.claims().forgetRequests(Duration.ofDays(31));
    for (int step = 0; step < 20; step++) {
      barrier();
    }
    // The last audit record stays; it is the other's.
    assertThat(kept("wallet")).isZero();
    assertThat(kept("other")).isBetween(1L, 6_000L);
    assertThat(count("SELECT count(*) FROM kept_intent")).isZero();
    assertThat(store.claims().room().fileBytes()).isGreaterThan(4L * MIB);
  }

  @Test
  void much_is_forgotten_in_steps_that_leave_the_journal_short() throws Exception {
    for (int i = 0; i < 300; i++) {
      claim("wallet", 64 << 10);
    }
    barrier();
    Path journal = folder.resolve(PartyStore.FILE + "-wal");
    close();
    store = open(BEGIN.plus(Duration.ofDays(31)));
    store.claims().forgetRequests(Duration.ofDays(31));
    long longest = 0;
    for (int step = 0; step < STEPS && count("SELECT count(*) FROM kept_intent") > 0; step++) {
      barrier();
      longest = Math.max(longest, Files.size(journal));
    }
    assertThat(count("SELECT count(*) FROM kept_intent")).isZero();
    assertThat(longest).isBetween(1L, 12L * MIB);
  }

  /** As long as a backup reads, the journal keeps all that is written. */
  @Test
  void while_a_reader_keeps_the_journal_nothing_more_is_forgotten() throws Exception {
    for (int i = 0; i < 300; i++) {
      claim("wallet", 64 << 10);
    }
    barrier();
    Path journal = folder.resolve(PartyStore.FILE + "-wal");
    close();
    store = open(BEGIN.plus(Duration.ofDays(31)));
    try (var reader =
            java.sql.DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        var statement = reader.createStatement()) {
      reader.setAutoCommit(false);
      statement.executeQuery("SELECT count(*) FROM kept_intent").next();
      store.claims().forgetRequests(Duration.ofDays(31));
      for (int step = 0; step < 60; step++) {
        barrier();
      }
      assertThat(Files.size(journal)).isBetween(16L * MIB, 24L * MIB);
      assertThat(count("SELECT count(*) FROM kept_intent")).isPositive();
      reader.rollback();
    }
    for (int step = 0; step < STEPS && count("SELECT count(*) FROM kept_intent") > 0; step++) {
      store.claims().forgetRequests(Duration.ZERO);
      barrier();
    }
    assertThat(count("SELECT count(*) FROM kept_intent")).isZero();
    assertThat(Files.size(journal)).isLessThan(16L * MIB);
  }
}
