package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore.Exclusion;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PartyStoreTest {
  /** All bindings of a request are of one intent. */
  private static final Instant NOT_AFTER =
      Instant.now().plusSeconds(600).truncatedTo(ChronoUnit.MILLIS);

  @TempDir Path folder;
  private final AtomicInteger commits = new AtomicInteger();

  /** Runs once, after the next transaction and before its writes are told to be done. */
  private final AtomicReference<Runnable> afterCommit = new AtomicReference<>(() -> {});

  private PartyStore store;

  @BeforeEach
  void open() {
    store =
        PartyStore.open(
            folder,
            "alpha",
            Clock.systemUTC(),
            (_, _) -> {
              commits.incrementAndGet();
              afterCommit.getAndSet(() -> {}).run();
            });
  }

  @AfterEach
  void close() {
    store.close();
  }

  private void reopen() {
    close();
    open();
  }

  private static ByteString bytes32(int seed) {
    byte[] bytes = new byte[32];
    bytes[0] = (byte) seed;
    bytes[1] = (byte) (seed >> 8);
    return ByteString.copyFrom(bytes);
  }

  private static Claim claim(int session, String requestId, int digest) {
    return new Claim(
        new SessionId(bytes32(session)),
        "wallet",
        requestId,
        bytes32(digest),
        null,
        null,
        null,
        ByteString.EMPTY,
        MemoryLedger.COORDINATOR);
  }

  private static Binding binding(int session, String requestId) {
    return new Binding(
        "wallet",
        requestId,
        new SessionId(bytes32(session)),
        ByteString.copyFromUtf8("order " + session),
        session % 2 == 0 ? ByteString.EMPTY : ByteString.copyFromUtf8("contribution " + session),
        NOT_AFTER);
  }

  /** A claim of a request that is signed once, by one session. */
  private static Claim binding(Binding binding, @Nullable Integer instead) {
    return new Claim(
        binding.session(),
        binding.requester(),
        binding.requestId(),
        bytes32(1),
        binding,
        instead == null ? null : new SessionId(bytes32(instead)),
        null,
        ByteString.EMPTY,
        MemoryLedger.COORDINATOR);
  }

  private static AuditEvent event(String what) {
    return AuditEvent.of("wallet", what, "ok", Map.of());
  }

  private Outcome claimed(Claim claim) {
    return get(store.claims().claimOnce(claim, event("order.accept")));
  }

  private static <T> T get(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private static final Certificate PROOF =
      new Certificate(
          List.of(
              ByteString.copyFrom(new byte[64]),
              ByteString.copyFromUtf8("x".repeat(64)),
              ByteString.copyFromUtf8("y".repeat(64))));

  private static KeyShare share(String key, int session) {
    return new KeyShare(
        key,
        1,
        Scheme.SCHEME_BLS12381,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 300),
        List.of(1, 2, 300),
        KeyPublic.newBuilder().setKeyId(key).setThreshold(2).setEpoch(1).build(),
        ByteString.copyFromUtf8("sealed " + session),
        new KeyShare.Origin(
            new SessionId(bytes32(session)),
            "coordinator",
            "wallet",
            "request " + session,
            bytes32(9)),
        null);
  }

  private Connection raw() throws SQLException {
    return DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
  }

  // ---- claims ----------------------------------------------------------------------------------

  @Test
  void request_is_bound_to_one_session_at_a_time() {
    Binding first = binding(1, "r1");
    Binding second = binding(2, "r1");
    Binding elsewhere = binding(6, "r2");
    assertThat(claimed(binding(first, null))).isEqualTo(Outcome.CLAIMED);
    assertThat(claimed(binding(first, null))).isEqualTo(Outcome.SESSION_REPLAYED);
    assertThat(claimed(binding(binding(3, "r1"), null))).isEqualTo(Outcome.REQUEST_BOUND);
    assertThat(claimed(binding(binding(4, "r1"), 3))).isEqualTo(Outcome.REQUEST_BOUND);
    reopen();
    assertThat(store.claims().bindings(10)).containsExactly(first);
    assertThat(claimed(binding(second, 1))).isEqualTo(Outcome.CLAIMED);
    assertThat(claimed(binding(binding(5, "r1"), 1))).isEqualTo(Outcome.REQUEST_BOUND);
    assertThat(claimed(binding(elsewhere, null))).isEqualTo(Outcome.CLAIMED);
    assertThat(store.claims().bindings(10)).containsExactlyInAnyOrder(second, elsewhere);
    assertThat(store.claims().bindings(1)).hasSize(1);
  }

  @Test
  void session_that_was_declined_is_never_run() {
    SessionId session = new SessionId(bytes32(1));
    assertThat(get(store.claims().decline(session, MemoryLedger.COORDINATOR, null))).isTrue();
    assertThat(get(store.claims().decline(session, MemoryLedger.COORDINATOR, null))).isTrue();
    assertThat(claimed(claim(1, "r1", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
    assertThat(claimed(claim(2, "r1", 1))).isEqualTo(Outcome.CLAIMED);
    assertThat(
            get(store.claims().decline(new SessionId(bytes32(2)), MemoryLedger.COORDINATOR, null)))
        .as("it was run")
        .isFalse();
    // Refused because its request is bound elsewhere: it will not be run later either.
    assertThat(claimed(binding(binding(3, "r1"), null))).isEqualTo(Outcome.CLAIMED);
    assertThat(claimed(binding(binding(4, "r1"), null))).isEqualTo(Outcome.REQUEST_BOUND);
    assertThat(
            get(store.claims().decline(new SessionId(bytes32(4)), MemoryLedger.COORDINATOR, null)))
        .isTrue();
    reopen();
    assertThat(get(store.claims().decline(session, MemoryLedger.COORDINATOR, null))).isTrue();
    assertThat(
            get(store.claims().decline(new SessionId(bytes32(3)), MemoryLedger.COORDINATOR, null)))
        .isFalse();
  }

  @Test
  void claim_is_once_for_ever() {
    assertThat(claimed(claim(1, "r1", 1))).isEqualTo(Outcome.CLAIMED);
    assertThat(claimed(claim(1, "r1", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
    assertThat(claimed(claim(2, "r1", 1))).as("a retry").isEqualTo(Outcome.CLAIMED);
    assertThat(claimed(claim(3, "r1", 2))).isEqualTo(Outcome.REQUEST_ID_REUSED);
    assertThat(claimed(claim(1, "r2", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
    reopen();
    assertThat(claimed(claim(2, "r1", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
    assertThat(claimed(claim(4, "r1", 2))).isEqualTo(Outcome.REQUEST_ID_REUSED);
    assertThat(claimed(claim(4, "r1", 1))).isEqualTo(Outcome.CLAIMED);
  }

  @Test
  void request_ids_of_requesters_are_apart() {
    assertThat(claimed(claim(1, "r1", 1))).isEqualTo(Outcome.CLAIMED);
    assertThat(
            claimed(
                new Claim(
                    new SessionId(bytes32(2)),
                    "other",
                    "r1",
                    bytes32(7),
                    null,
                    null,
                    null,
                    ByteString.EMPTY,
                    MemoryLedger.COORDINATOR)))
        .isEqualTo(Outcome.CLAIMED);
  }

  @Test
  void a_claim_is_granted_once_however_many_ask() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      for (int round = 0; round < 20; round++) {
        List<Future<Outcome>> asked = new ArrayList<>();
        int number = round;
        for (int n = 0; n < 16; n++) {
          int digest = n % 2;
          asked.add(threads.submit(() -> claimed(claim(number, "r" + number, digest))));
        }
        int granted = 0;
        for (Future<Outcome> outcome : asked) {
          granted += outcome.get() == Outcome.CLAIMED ? 1 : 0;
        }
        assertThat(granted).isEqualTo(1);
      }
    }
  }

  @Test
  void claims_that_come_together_share_transactions() {
    int before = commits.get();
    List<CompletionStage<Outcome>> all = new ArrayList<>();
    for (int n = 0; n < 500; n++) {
      all.add(store.claims().claimOnce(claim(n, "r" + n, 1), event("order.accept")));
    }
    assertThat(all).allSatisfy(o -> assertThat(get(o)).isEqualTo(Outcome.CLAIMED));
    assertThat(commits.get() - before).isLessThan(250);
    reopen();
    assertThat(claimed(claim(499, "r499", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
  }

  @Test
  void what_is_reported_as_claimed_is_seen_by_another_connection() throws Exception {
    claimed(claim(1, "r1", 1));
    // The commit came before the answer, so nothing is lost with this process.
    try (Connection other = raw();
        var row = other.createStatement().executeQuery("SELECT count(*) FROM claimed_session")) {
      assertThat(row.getInt(1)).isEqualTo(1);
    }
    try (Connection other = raw();
        var row = other.createStatement().executeQuery("PRAGMA journal_mode")) {
      assertThat(row.getString(1)).isEqualTo("wal");
    }
  }

  // ---- shares ----------------------------------------------------------------------------------

  @Test
  void share_comes_back_as_it_was() {
    KeyShare share = share("keys/a", 1);
    assertThat(get(store.shares().storeProvisional(share, event("stored")))).isTrue();
    reopen();
    assertThat(store.shares().find("keys/a")).contains(share);
    assertThat(store.shares().undecided()).containsExactly(share);
    assertThat(get(store.shares().activate(share, PROOF, event("active")))).isTrue();
    assertThat(store.shares().find("keys/a")).contains(share.activated(PROOF));
    reopen();
    assertThat(store.shares().find("keys/a")).contains(share.activated(PROOF));
    assertThat(store.shares().undecided()).isEmpty();
    assertThat(store.shares().find("keys/b")).isEmpty();
  }

  @Test
  void active_shares_are_read_beside_the_party_that_runs() {
    assertThat(PartyStore.activeShares(folder)).isEmpty();
    KeyShare share = share("keys/b", 1);
    get(store.shares().storeProvisional(share, event("stored")));
    assertThat(PartyStore.activeShares(folder)).isEmpty();
    get(store.shares().activate(share, PROOF, event("active")));
    KeyShare earlier = share("keys/a", 2);
    get(store.shares().storeProvisional(earlier, event("stored")));
    get(store.shares().activate(earlier, PROOF, event("active")));
    assertThat(PartyStore.activeShares(folder))
        .containsExactly(earlier.activated(PROOF), share.activated(PROOF));
  }

  @Test
  void newer_provisional_share_replaces_an_older_one() {
    KeyShare older = share("keys/a", 1);
    KeyShare newer = share("keys/a", 2);
    get(store.shares().storeProvisional(older, event("stored")));
    assertThat(get(store.shares().storeProvisional(newer, event("stored")))).isTrue();
    assertThat(store.shares().find("keys/a")).contains(newer);
    assertThat(get(store.shares().activate(older, PROOF, event("active"))))
        .as("abandoned")
        .isFalse();
    assertThat(get(store.shares().activate(newer, PROOF, event("active")))).isTrue();
    assertThat(store.shares().find("keys/a")).contains(newer.activated(PROOF));
  }

  @Test
  void active_share_is_never_replaced() {
    KeyShare active = share("keys/a", 1);
    get(store.shares().storeProvisional(active, event("stored")));
    get(store.shares().activate(active, PROOF, event("active")));
    assertThat(get(store.shares().storeProvisional(share("keys/a", 2), event("stored")))).isFalse();
    assertThat(store.shares().find("keys/a")).contains(active.activated(PROOF));
    assertThat(get(store.shares().activate(active, PROOF, event("active")))).as("once").isFalse();
  }

  @Test
  void database_itself_refuses_a_second_active_share() throws Exception {
    KeyShare active = share("keys/a", 1);
    get(store.shares().storeProvisional(active, event("stored")));
    get(store.shares().activate(active, PROOF, event("active")));
    close();
    try (Connection connection = raw();
        Statement statement = connection.createStatement()) {
      assertThatThrownBy(
              () ->
                  statement.executeUpdate(
                      "INSERT INTO key_share SELECT randomblob(32), key, epoch, reshare_epoch, scheme, state,"
                          + " parties, members, key_public, sealed, coordinator, requester,"
                          + " request_id, intent_digest, stored_at_ms, stored_number, account, decliner,"
                          + " certificate FROM key_share"))
          .hasMessageContaining("UNIQUE");
    }
    open();
  }

  // ---- refresh ---------------------------------------------------------------------------------

  private static KeyShare next(int session, int epoch) {
    KeyShare first = share("keys/a", session);
    return new KeyShare(
        first.key(),
        epoch,
        first.scheme(),
        first.state(),
        first.parties(),
        first.members(),
        first.keyPublic().toBuilder().setEpoch(epoch).build(),
        first.sealed(),
        first.origin(),
        null);
  }

  private void active() {
    KeyShare share = share("keys/a", 1);
    get(store.shares().storeProvisional(share, event("stored")));
    get(store.shares().activate(share, PROOF, event("active")));
  }

  private boolean refreshed(int session, int epoch) {
    return get(store.shares().storeNext(next(session, epoch), true, event("stored")));
  }

  private boolean activated(int session, int epoch) {
    return get(store.shares().activate(next(session, epoch), PROOF, event("active")));
  }

  private int epoch() {
    return store.shares().find("keys/a").orElseThrow().epoch();
  }

  @Test
  void share_of_the_next_epoch_lies_beside_the_active_one_and_then_replaces_it() {
    active();
    get(store.shares().exclude(exclusion(7, 2)));
    assertThat(refreshed(2, 2)).isTrue();
    reopen();
    assertThat(epoch()).isEqualTo(1);
    assertThat(store.shares().pending("keys/a").orElseThrow().epoch()).isEqualTo(2);
    assertThat(store.shares().undecided()).hasSize(1);
    assertThat(activated(2, 2)).isTrue();
    assertThat(epoch()).isEqualTo(2);
    assertThat(store.shares().excluded("keys/a")).as("they start afresh").isEmpty();
    reopen();
    assertThat(epoch()).isEqualTo(2);
    assertThat(store.shares().pending("keys/a")).isEmpty();
    assertThat(store.shares().excluded("keys/a")).isEmpty();
    assertThat(count()).as("the old share is gone").isEqualTo(1);
  }

  /** Not in the database's free pages, and not in its journal. */
  @Test
  void nothing_is_left_of_a_share_that_was_replaced() throws Exception {
    active();
    refreshed(7, 2);
    get(store.shares().abandon(next(7, 2), 2, event("abandoned")));
    refreshed(2, 2);
    assertThat(isOnDisk("sealed 1") && isOnDisk("sealed 7")).isTrue();
    activated(2, 2);
    assertThat(isOnDisk("sealed 1") || isOnDisk("sealed 7")).isFalse();
    assertThat(isOnDisk("sealed 2")).isTrue();
    get(store.shares().exclude(without2(5, 2, 2, "without party 2")));
    assertThat(isOnDisk("sealed 2")).isFalse();
    assertThat(isOnDisk("without party 2")).isTrue();
  }

  private boolean isOnDisk(String text) throws Exception {
    try (var files = Files.list(folder)) {
      for (Path file : files.toList()) {
        if (new String(Files.readAllBytes(file), java.nio.charset.StandardCharsets.ISO_8859_1)
            .contains(text)) {
          return true;
        }
      }
    }
    return false;
  }

  @Test
  void only_the_next_epoch_is_stored_and_only_once() {
    assertThat(refreshed(2, 2)).as("no key").isFalse();
    active();
    assertThat(refreshed(2, 3)).as("an epoch left out").isFalse();
    assertThat(refreshed(2, 2)).isTrue();
    assertThat(refreshed(3, 2)).as("another refresh is not decided").isFalse();
    assertThat(activated(3, 2)).as("not stored").isFalse();
    assertThat(activated(2, 2)).isTrue();
    assertThat(activated(2, 2)).isFalse();
    assertThat(refreshed(4, 2)).as("an epoch that was").isFalse();
    assertThat(epoch()).isEqualTo(2);
  }

  @Test
  void declined_session_is_never_stored_and_a_stored_one_never_declined() {
    active();
    SessionId session = new SessionId(bytes32(2));
    assertThat(get(store.shares().decline("keys/a", session, 2))).isTrue();
    reopen();
    assertThat(refreshed(2, 2)).isFalse();
    assertThat(get(store.shares().decline("keys/a", session, 2))).as("again").isTrue();
    assertThat(refreshed(3, 2)).isTrue();
    assertThat(get(store.shares().decline("keys/a", new SessionId(bytes32(3)), 2))).isFalse();
    assertThat(activated(3, 2)).isTrue();
    assertThat(get(store.shares().decline("keys/a", new SessionId(bytes32(3)), 2))).isFalse();
  }

  @Test
  void sessions_that_are_declined_are_bounded_for_each_party_that_asks() {
    active();
    for (int number = 0; number < 1000; number++) {
      assertThat(get(store.shares().decline("keys/a", new SessionId(bytes32(100 + number)), 2)))
          .isTrue();
    }
    SessionId next = new SessionId(bytes32(50));
    assertThat(get(store.shares().decline("keys/a", next, 2))).isFalse();
    assertThat(get(store.shares().decline("keys/a", next, 3))).as("another one").isTrue();
    assertThat(get(store.shares().decline("keys/a", next, 2))).as("it is said").isTrue();
  }

  private boolean abandoned(int session, int epoch, int decliner) {
    return get(store.shares().abandon(next(session, epoch), decliner, event("abandoned")));
  }

  private SessionId used() {
    return store.shares().find("keys/a").orElseThrow().session();
  }

  private Optional<KeyShare.State> state(int session) {
    return store.shares().ofSession(new SessionId(bytes32(session))).map(KeyShare::state);
  }

  @Test
  void share_that_is_abandoned_is_kept_beside_the_active_one_and_another() {
    active();
    refreshed(2, 2);
    assertThat(abandoned(2, 2, 2)).isTrue();
    assertThat(abandoned(2, 2, 2)).as("again").isFalse();
    assertThat(epoch()).isEqualTo(1);
    assertThat(store.shares().pending("keys/a")).isEmpty();
    assertThat(refreshed(3, 2)).isTrue();
    reopen();
    assertThat(store.shares().undecided())
        .extracting(KeyShare::state)
        .containsExactlyInAnyOrder(KeyShare.State.ABANDONED, KeyShare.State.PROVISIONAL);
    assertThat(store.shares().pending("keys/a").orElseThrow().session())
        .isEqualTo(new SessionId(bytes32(3)));
    assertThat(get(store.shares().decline("keys/a", new SessionId(bytes32(2)), 2)))
        .as("stored")
        .isFalse();
    assertThat(activated(3, 2)).isTrue();
    assertThat(abandoned(3, 2, 2)).as("it is used").isFalse();
    assertThat(store.shares().undecided()).as("it can never replace the later one").isEmpty();
    assertThat(activated(2, 2)).isFalse();
    assertThat(count()).isEqualTo(1);
  }

  /** The share of session 2 is used after it was abandoned; that of session 3 lies beside it. */
  private void broughtBack() {
    active();
    refreshed(2, 2);
    abandoned(2, 2, 2);
    refreshed(3, 2);
    activated(2, 2);
  }

  @Test
  void certificate_brings_a_share_back_and_leaves_what_was_stored_later() {
    active();
    get(store.shares().exclude(exclusion(7, 2)));
    refreshed(2, 2);
    abandoned(2, 2, 2);
    refreshed(3, 2);
    assertThat(activated(2, 2)).isTrue();
    assertThat(used()).isEqualTo(new SessionId(bytes32(2)));
    assertThat(store.shares().excluded("keys/a")).as("of the share that is gone").isEmpty();
    assertThat(state(1)).as("the old share").isEmpty();
    reopen();
    assertThat(state(3)).contains(KeyShare.State.PROVISIONAL);
    assertThat(abandoned(3, 2, 2)).isTrue();
    assertThat(refreshed(4, 2)).as("this epoch is there").isFalse();
    // The later of the two counts, whichever certificate comes first.
    assertThat(activated(3, 2)).isTrue();
    assertThat(activated(2, 2)).isFalse();
    assertThat(used()).isEqualTo(new SessionId(bytes32(3)));
    assertThat(count()).isEqualTo(1);
  }

  /** An exclusion found with the share before does not change this one. */
  @Test
  void share_that_took_the_place_of_another_of_its_epoch_is_not_overwritten() {
    broughtBack();
    activated(3, 2);
    get(store.shares().exclude(without2(9, 2, 2, "the older without party 2")));
    assertThat(store.shares().excluded("keys/a")).containsExactly(2);
    assertThat(store.shares().find("keys/a").orElseThrow().sealed()).isEqualTo(next(3, 2).sealed());
  }

  /** Both writes wait for the disk together, so the second runs before the first has completed. */
  @Test
  void share_activated_in_the_same_transaction_is_not_overwritten_either() {
    broughtBack();
    var switched = store.shares().activate(next(3, 2), PROOF, event("active"));
    var excluded = store.shares().exclude(without2(9, 2, 2, "the older without party 2"));
    assertThat(get(switched)).isTrue();
    get(excluded);
    assertThat(store.shares().find("keys/a").orElseThrow().sealed()).isEqualTo(next(3, 2).sealed());
  }

  @Test
  void abandoned_shares_stay_until_a_later_epoch_is_used() {
    broughtBack();
    // Another epoch from the share that was brought back: the other one is not waited for.
    assertThat(refreshed(4, 3)).isTrue();
    assertThat(state(3)).contains(KeyShare.State.ABANDONED);
    assertThat(activated(4, 3)).isTrue();
    assertThat(count()).isEqualTo(1);
    assertThat(activated(3, 2)).isFalse();
  }

  /** A corrupt party that makes one session after the other fail. */
  @Test
  void abandoned_shares_are_bounded() {
    active();
    int session = 10;
    for (int n = 0; n < SqliteShares.MAX_ABANDONED; n++) {
      assertThat(store.shares().decliners("keys/a")).isEmpty();
      assertThat(refreshed(++session, 2)).isTrue();
      assertThat(abandoned(session, 2, 300)).isTrue();
    }
    assertThat(store.shares().decliners("keys/a")).containsExactly(300);
    assertThat(refreshed(++session, 2)).as("with that party").isFalse();
    assertThat(count()).isEqualTo(1 + SqliteShares.MAX_ABANDONED);
    // Without it, and with one that has done nothing yet.
    assertThat(get(store.shares().storeNext(among(++session, 1, 2), true, event("stored"))))
        .isTrue();
    assertThat(abandoned(session, 2, 2)).isTrue();
    assertThat(store.shares().decliners("keys/a")).containsExactlyInAnyOrder(2, 300);
    assertThat(get(store.shares().storeNext(among(++session, 1, 2), true, event("stored"))))
        .isFalse();
    reopen();
    assertThat(store.shares().decliners("keys/a")).containsExactlyInAnyOrder(2, 300);
    assertThat(get(store.shares().storeNext(among(++session, 1, 4), true, event("stored"))))
        .isTrue();
    assertThat(get(store.shares().activate(among(session, 1, 4), PROOF, event("active")))).isTrue();
    assertThat(store.shares().decliners("keys/a")).as("a fresh start").isEmpty();
    assertThat(count()).isEqualTo(1);
  }

  private static KeyShare among(int session, Integer... members) {
    KeyShare next = next(session, 2);
    return new KeyShare(
        next.key(),
        next.epoch(),
        next.scheme(),
        next.state(),
        List.of(members),
        List.of(members),
        next.keyPublic(),
        next.sealed(),
        next.origin(),
        null);
  }

  private long count() {
    try {
      return rows("SELECT count(*) FROM key_share");
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void exclusion_from_a_share_that_is_gone_does_not_count() {
    active();
    refreshed(2, 2);
    activated(2, 2);
    get(store.shares().exclude(exclusion(7, 2)));
    assertThat(store.shares().excluded("keys/a")).isEmpty();
    get(store.shares().exclude(exclusion(7, 0)));
    assertThat(store.shares().excluded("keys/a")).as("a frozen key stays so").containsExactly(0);
    refreshed(3, 3);
    activated(3, 3);
    assertThat(store.shares().excluded("keys/a")).containsExactly(0);
    reopen();
    assertThat(store.shares().excluded("keys/a")).containsExactly(0);
  }

  @Test
  void freeze_beside_an_activation_counts_at_once_and_after_a_restart() {
    active();
    refreshed(2, 2);
    AtomicReference<CompletionStage<Boolean>> frozen = new AtomicReference<>();
    // Queued when the activation is on disk and about to read who is left excluded.
    afterCommit.set(() -> frozen.set(store.shares().exclude(exclusion(7, 0))));
    activated(2, 2);
    assertThat(store.shares().excluded("keys/a")).as("queued").containsExactly(0);
    assertThat(get(frozen.get())).isTrue();
    assertThat(store.shares().excluded("keys/a")).as("written").containsExactly(0);
    reopen();
    assertThat(store.shares().excluded("keys/a")).containsExactly(0);
  }

  @Test
  void freeze_beside_its_lifting_counts_at_once_and_after_a_restart() {
    active();
    get(store.shares().exclude(exclusion(7, 0)));
    AtomicReference<CompletionStage<Boolean>> frozen = new AtomicReference<>();
    afterCommit.set(() -> frozen.set(store.shares().exclude(exclusion(8, 0))));
    assertThat(get(store.shares().unfreeze("keys/a"))).isTrue();
    assertThat(store.shares().excluded("keys/a")).as("queued").containsExactly(0);
    assertThat(get(frozen.get())).isTrue();
    assertThat(store.shares().excluded("keys/a")).as("written").containsExactly(0);
    reopen();
    assertThat(store.shares().excluded("keys/a")).containsExactly(0);
  }

  private long rows(String sql) throws SQLException {
    try (Connection raw = raw();
        var statement = raw.createStatement();
        var row = statement.executeQuery(sql)) {
      return row.getLong(1);
    }
  }

  private static Exclusion exclusion(int session, Integer... parties) {
    return exclusion(session, Set.of(parties), 1, 1, ByteString.EMPTY);
  }

  /** A session showed it of party 2, with a share of that session and epoch, which is replaced. */
  private static Exclusion without2(int session, int share, int epoch, String sealed) {
    return exclusion(session, Set.of(2), share, epoch, ByteString.copyFromUtf8(sealed));
  }

  private static Exclusion exclusion(
      int session, Set<Integer> parties, int share, int epoch, ByteString sealed) {
    return new Exclusion(
        "keys/a",
        parties,
        new SessionId(bytes32(session)),
        new SessionId(bytes32(share)),
        epoch,
        sealed);
  }

  @Test
  void session_without_request_is_claimed_once() {
    SessionId session = new SessionId(bytes32(1));
    assertThat(get(store.claims().claimSession(session, MemoryLedger.COORDINATOR, null)))
        .isEqualTo(Outcome.CLAIMED);
    assertThat(get(store.claims().claimSession(session, MemoryLedger.COORDINATOR, null)))
        .isEqualTo(Outcome.SESSION_REPLAYED);
    reopen();
    assertThat(get(store.claims().claimSession(session, MemoryLedger.COORDINATOR, null)))
        .isEqualTo(Outcome.SESSION_REPLAYED);
    assertThat(claimed(claim(1, "r1", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
  }

  @Test
  void share_is_replaced_with_the_exclusion() {
    active();
    assertThat(store.shares().find("keys/a").orElseThrow().sealed())
        .isEqualTo(share("keys/a", 1).sealed());
    String sealed = "sealed without party 2";
    ByteString without = ByteString.copyFromUtf8(sealed);
    get(store.shares().exclude(without2(5, 1, 1, sealed)));
    assertThat(store.shares().find("keys/a").orElseThrow().sealed()).isEqualTo(without);
    reopen();
    assertThat(store.shares().find("keys/a").orElseThrow().sealed()).isEqualTo(without);
    assertThat(store.shares().excluded("keys/a")).containsExactly(2);
  }

  @Test
  void share_of_another_epoch_is_not_replaced() {
    active();
    get(store.shares().exclude(without2(5, 1, 2, "of a later epoch")));
    assertThat(store.shares().find("keys/a").orElseThrow().sealed())
        .isEqualTo(share("keys/a", 1).sealed());
  }

  @Test
  void exclusions_stay() {
    assertThat(store.shares().excluded("keys/a")).isEmpty();
    get(store.shares().exclude(exclusion(1, 2)));
    get(store.shares().exclude(exclusion(2, 2, 3)));
    assertThat(store.shares().excluded("keys/a")).containsExactlyInAnyOrder(2, 3);
    reopen();
    assertThat(store.shares().excluded("keys/a")).containsExactlyInAnyOrder(2, 3);
    assertThat(store.shares().excluded("keys/b")).isEmpty();
  }

  // ---- the rest --------------------------------------------------------------------------------

  @Test
  void secret_is_kept_and_replaced() {
    assertThat(store.secrets().find("identity")).isEmpty();
    store.secrets().save("identity", new PartySecrets.Secret(new byte[] {1}, new byte[] {2}));
    store.secrets().save("identity", new PartySecrets.Secret(new byte[] {3}, new byte[] {4}));
    reopen();
    assertThat(store.secrets().find("identity").orElseThrow().sealed()).containsExactly(3);
    assertThat(store.secrets().find("identity").orElseThrow().publicPart()).containsExactly(4);
  }

  @Test
  void audit_trail_is_one_chain_through_restarts() {
    store.audit().record(event("one"));
    claimed(claim(1, "r1", 1));
    reopen();
    store.audit().record(event("three"));
    reopen();
    assertThat(store.audit().read(1, 10))
        .extracting(r -> r.event().action())
        .containsExactly("one", "order.accept", "three");
    assertThat(store.audit().verify()).isInstanceOf(AuditTrail.Verification.Intact.class);
  }

  @Test
  void altered_audit_trail_is_noticed() throws Exception {
    store.audit().record(event("one"));
    store.audit().record(event("two"));
    store.audit().record(event("three"));
    close();
    try (Connection connection = raw()) {
      connection
          .createStatement()
          .executeUpdate("UPDATE audit_record SET outcome = 'other' WHERE sequence = 2");
    }
    open();
    assertThat(store.audit().verify())
        .isInstanceOfSatisfying(
            AuditTrail.Verification.Broken.class, b -> assertThat(b.sequence()).isEqualTo(2));
  }

  @Test
  void file_is_for_one_and_for_its_owner() throws Exception {
    assertThatThrownBy(() -> PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {}))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("open already");
    assertThat(
            PosixFilePermissions.toString(
                Files.getPosixFilePermissions(folder.resolve(PartyStore.FILE))))
        .isEqualTo("rw-------");
  }

  @Test
  void file_of_a_newer_program_is_refused() throws Exception {
    close();
    try (Connection connection = raw()) {
      connection.createStatement().executeUpdate("PRAGMA user_version = 99");
    }
    assertThatThrownBy(this::open).hasMessageContaining("version 99");
    try (Connection connection = raw()) {
      connection.createStatement().executeUpdate("PRAGMA user_version = 1");
    }
    open();
  }

  @Test
  void file_that_is_no_database_is_refused() throws Exception {
    Path other = folder.resolve("other");
    Files.createDirectories(other);
    Files.writeString(other.resolve(PartyStore.FILE), "this is not a database at all, is it?");
    assertThatThrownBy(() -> PartyStore.open(other, "alpha", Clock.systemUTC(), (_, _) -> {}))
        .isInstanceOf(StoreException.class);
    // And nothing is held of it.
    Files.delete(other.resolve(PartyStore.FILE));
    PartyStore.open(other, "alpha", Clock.systemUTC(), (_, _) -> {}).close();
  }
}
