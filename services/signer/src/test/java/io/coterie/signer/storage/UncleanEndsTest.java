package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.Installation;
import io.coterie.signer.claim.ClaimLedger.Multiplication;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.order.Hold;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import io.coterie.signer.share.KeyTrouble.Kind;
import io.coterie.signer.storage.OperatorRequests.Request;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory of a party of multiplications in the middle of which its process died. */
class UncleanEndsTest {
  private static final String KEY = "keys/a";
  private static final Certificate PROOF =
      new Certificate(
          List.of(ByteString.copyFrom(new byte[64]), ByteString.copyFrom(new byte[64])));

  @TempDir Path root;
  private Path folder;
  private PartyStore store;
  private int sessions;
  private int starts;

  @BeforeEach
  void start() {
    folder = root.resolve("0");
    open();
    KeyShare share = share(1);
    get(store.shares().storeProvisional(share, event("stored")));
    get(store.shares().activate(share, PROOF, event("active")));
  }

  @AfterEach
  void stop() {
    store.close();
  }

  private void open() {
    store = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {});
  }

  /** Goes on with the disk as it was at this moment, and nothing else. */
  private void killAndStart() throws IOException {
    Path next = root.resolve(Integer.toString(++starts));
    PartyStore.createFolder(next);
    try (var files = Files.list(folder)) {
      for (Path file : files.filter(f -> !f.toString().matches(".*-shm|.*[.]lock")).toList()) {
        Files.copy(file, next.resolve(file.getFileName()));
      }
    }
    store.close();
    folder = next;
    open();
  }

  private static <T> T get(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private static AuditEvent event(String what) {
    return AuditEvent.of("wallet", what, "ok", Map.of());
  }

  private SessionId id() {
    return new SessionId(ByteString.copyFrom(ByteBuffer.allocate(32).putInt(++sessions).rewind()));
  }

  private KeyShare share(int epoch) {
    return share(KEY, epoch, Scheme.SCHEME_ECDSA_SECP256K1);
  }

  private KeyShare share(String key, int epoch, Scheme scheme) {
    return new KeyShare(
        key,
        epoch,
        scheme,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 3),
        List.of(1, 2, 3),
        KeyPublic.newBuilder().setKeyId(key).setThreshold(2).setEpoch(epoch).build(),
        ByteString.copyFromUtf8("sealed " + epoch),
        new KeyShare.Origin(
            id(),
            "coordinator",
            "wallet",
            "request " + key + epoch,
            ByteString.copyFrom(new byte[32])),
        null);
  }

  private CompletionStage<Boolean> exclude(int party) {
    return store
        .shares()
        .exclude(new KeyShareStore.Exclusion(KEY, Set.of(party), id(), id(), 1, ByteString.EMPTY));
  }

  /** Party 2 is to be excluded, and the database refuses to write it. */
  private void excludeFails() {
    assertThatThrownBy(() -> get(exclude(2))).hasRootCauseInstanceOf(java.sql.SQLException.class);
  }

  private SessionId multiplyWith(Integer... peers) {
    SessionId session = id();
    get(
        store
            .claims()
            .claimSession(
                session, MemoryLedger.COORDINATOR, new Multiplication(KEY, 1, List.of(peers))));
    return session;
  }

  private void endUncleanly(int times, Integer... peers) throws IOException {
    for (int i = 0; i < times; i++) {
      multiplyWith(peers);
      killAndStart();
    }
  }

  @Test
  void incarnations_and_not_sessions_are_counted_up_to_a_refresh_and_an_exclusion()
      throws Exception {
    for (int end = 1; end <= KeyTrouble.EXCLUDE_AT; end++) {
      for (int session = 0; session < 5; session++) {
        multiplyWith(2);
      }
      killAndStart();
      List<KeyTrouble> expected =
          end < KeyTrouble.WARN_AT ? List.of() : List.of(new KeyTrouble(KEY, 2, kind(end), end));
      assertThat(store.shares().troubles()).as("after %d ends", end).isEqualTo(expected);
      assertThat(store.shares().excluded(KEY))
          .isEqualTo(end < KeyTrouble.EXCLUDE_AT ? Set.of() : Set.of(2));
    }
    assertThat(store.audit().read(0, 100))
        .anyMatch(r -> r.event().action().equals("party.exclude"));
    assertThat(store.audit().verify()).isInstanceOf(AuditTrail.Verification.Intact.class);
  }

  private static Kind kind(int ends) {
    if (ends < KeyTrouble.REFRESH_AT) {
      return Kind.ENDED_UNCLEANLY;
    }
    return ends < KeyTrouble.EXCLUDE_AT ? Kind.REFRESH_ADVISED : Kind.EXCLUDED;
  }

  @Test
  void a_clean_stop_and_a_session_that_has_ended_count_for_nothing() throws Exception {
    for (int i = 0; i < 10; i++) {
      store.claims().multiplied(multiplyWith(2));
      store.close();
      open();
    }
    for (int i = 0; i < 4; i++) {
      store.claims().multiplied(multiplyWith(2));
      multiplyWith(3); // what waited is on disk with it
      killAndStart();
    }
    assertThat(store.shares().troubles())
        .containsExactly(new KeyTrouble(KEY, 3, Kind.REFRESH_ADVISED, 4));
  }

  @Test
  void each_peer_of_a_session_is_counted_by_itself() throws Exception {
    endUncleanly(3, 2, 3);
    endUncleanly(2, 3);
    assertThat(store.shares().troubles())
        .containsExactly(
            new KeyTrouble(KEY, 2, Kind.ENDED_UNCLEANLY, 3),
            new KeyTrouble(KEY, 3, Kind.REFRESH_ADVISED, 5));
    endUncleanly(1, 2);
    assertThat(store.shares().troubles())
        .containsExactly(
            new KeyTrouble(KEY, 2, Kind.REFRESH_ADVISED, 4),
            new KeyTrouble(KEY, 3, Kind.REFRESH_ADVISED, 5));
  }

  @Test
  void new_shares_begin_with_no_unclean_end() throws Exception {
    endUncleanly(KeyTrouble.EXCLUDE_AT, 2);
    assertThat(store.shares().excluded(KEY)).containsExactly(2);
    multiplyWith(2);
    KeyShare next = share(2);
    assertThat(get(store.shares().storeNext(next, true, event("stored")))).isTrue();
    assertThat(get(store.shares().activate(next, PROOF, event("active")))).isTrue();
    assertThat(store.shares().troubles()).isEmpty();
    assertThat(store.shares().excluded(KEY)).isEmpty();
    multiplyWith(2); // a session of the old epoch that was claimed a moment too late
    killAndStart();
    assertThat(store.shares().troubles()).isEmpty();
    assertThat(store.shares().excluded(KEY)).isEmpty();
  }

  @Test
  void an_exclusion_that_cannot_be_written_freezes_the_key_until_its_operator_lifts_it()
      throws Exception {
    // The disk has no room for exclusions until two sessions have been claimed.
    store.close();
    sql(
        "CREATE TRIGGER full BEFORE INSERT ON exclusion WHEN (SELECT count(*) FROM claimed_session)"
            + " < 2 BEGIN SELECT RAISE(ABORT, 'full'); END");
    open();
    excludeFails();
    KeyTrouble frozen = new KeyTrouble(KEY, KeyShareStore.EVERY_PARTY, Kind.FROZEN, 0);
    assertThat(store.shares().troubles()).contains(frozen);
    store.shares().housekeep();
    get(
        store
            .claims()
            .claimSession(
                id(), MemoryLedger.COORDINATOR, null)); // what was submitted before has been tried
    assertThat(store.shares().excluded(KEY)).as("the disk is still full").contains(0, 2);

    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    store.shares().housekeep();
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    killAndStart();
    assertThat(store.shares().troubles()).contains(frozen);
    assertThat(store.shares().excluded(KEY)).containsExactlyInAnyOrder(0, 2);

    KeyShare next = share(2);
    get(store.shares().storeNext(next, true, event("stored")));
    get(store.shares().activate(next, PROOF, event("active")));
    assertThat(store.shares().troubles()).as("new shares do not lift it").containsExactly(frozen);
    assertThat(store.holds().all()).isEqualTo(PartyStore.holds(folder));
    assertThat(store.holds().all())
        .singleElement()
        .satisfies(
            hold -> {
              assertThat(hold.scope().text()).isEqualTo(KEY);
              assertThat(hold.cause()).isEqualTo(Hold.Cause.FREEZE);
              assertThat(hold.text())
                  .contains("an exclusion from it could not be stored", "with 'unfreeze'");
            });
    new OperatorRequests(folder).ask(new Request(OperatorRequests.Kind.LIFT, KEY, "a mistake"));
    store.doAsAsked();
    Installation.until("it is asked no more", () -> !isAsked("lift"));
    assertThat(store.holds().all()).as("'lift' is for the operator's own").hasSize(1);

    askToUnfreeze(KEY);
    store.shares().housekeep();
    Installation.until("it is lifted", () -> store.shares().troubles().isEmpty());
    killAndStart();
    assertThat(store.shares().excluded(KEY)).isEmpty();
    assertThat(store.holds().all()).isEmpty();
    assertThat(PartyStore.holds(folder)).isEmpty();
    assertThat(store.audit().read(0, 100).stream().map(r -> r.event().action()))
        .containsSubsequence("key.freeze", "key.unfreeze");
    assertThat(store.audit().verify()).isInstanceOf(AuditTrail.Verification.Intact.class);
    // A kill between the write and the removal of the request leaves it to the next start.
    store.shares().housekeep();
    Installation.until("the request is removed", () -> !isAskedToUnfreeze());
  }

  @Test
  void an_exclusion_and_that_a_store_went_back_count_when_the_share_cannot_be_read()
      throws Exception {
    store.close();
    sql("UPDATE key_share SET key_public = x'ff'");
    open();
    assertThatThrownBy(() -> store.shares().find(KEY)).isInstanceOf(StoreException.class);
    assertThat(get(exclude(2))).isTrue();
    assertThat(store.shares().excluded(KEY)).containsExactly(2);
    CompletionStage<List<String>> marked = store.shownClaims().wentBack(3);
    assertThat(store.shares().excluded(KEY)).containsExactlyInAnyOrder(2, 3);
    assertThat(get(marked)).containsExactly(KEY);
    assertThat(store.shares().excluded(KEY)).containsExactlyInAnyOrder(2, 3);
  }

  private void askToUnfreeze(String key) throws IOException {
    new OperatorRequests(folder).ask(new Request(OperatorRequests.Kind.UNFREEZE, key, ""));
  }

  private boolean isAskedToUnfreeze() {
    return isAsked("unfreeze");
  }

  private boolean isAsked(String kind) {
    try (var files = Files.list(folder)) {
      return files.anyMatch(f -> f.getFileName().toString().startsWith(kind + "-"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void a_request_to_lift_what_is_not_frozen_changes_nothing() throws Exception {
    get(exclude(2));
    askToUnfreeze(KEY);
    askToUnfreeze("keys/../../b");
    store.shares().housekeep();
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    assertThat(store.shares().excluded(KEY)).containsExactly(2);
  }

  @Test
  void nothing_multiplies_with_a_share_out_of_a_backup() throws Exception {
    KeyShare pending = share(2);
    assertThat(get(store.shares().storeNext(pending, true, event("stored")))).isTrue();
    Files.write(folder.resolve(Backup.DATA_KEY), new byte[] {1});
    var zip = new java.io.ByteArrayOutputStream();
    Backup.write(folder, zip);
    folder = root.resolve("restored");
    Backup.restore(new java.io.ByteArrayInputStream(zip.toByteArray()), folder);
    store.close();
    open();
    KeyTrouble wentBack = new KeyTrouble(KEY, KeyShareStore.ITSELF, Kind.WENT_BACK, 0);
    assertThat(store.shares().troubles()).containsExactly(wentBack);
    killAndStart();
    assertThat(store.shares().troubles()).containsExactly(wentBack);

    // The fate of the share that is not active yet is forgotten, too.
    assertThat(get(store.shares().activate(pending, PROOF, event("active")))).isTrue();
    assertThat(store.shares().excluded(KEY)).containsExactly(KeyShareStore.ITSELF);
    killAndStart();
    assertThat(store.shares().excluded(KEY)).containsExactly(KeyShareStore.ITSELF);

    KeyShare next = share(3);
    assertThat(get(store.shares().storeNext(next, true, event("stored")))).isTrue();
    assertThat(get(store.shares().activate(next, PROOF, event("active")))).isTrue();
    assertThat(store.shares().troubles()).isEmpty();
    killAndStart();
    assertThat(store.shares().troubles()).isEmpty();
  }

  @Test
  void all_claims_are_counted_for_ever() throws Exception {
    LedgerPosition first = store.claims().position();
    SessionId session = id();
    get(
        store
            .claims()
            .claimSession(
                session, MemoryLedger.COORDINATOR, new Multiplication(KEY, 1, List.of(2))));
    get(
        store
            .claims()
            .claimSession(
                session, MemoryLedger.COORDINATOR, new Multiplication(KEY, 1, List.of(2))));
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    get(store.claims().decline(id(), MemoryLedger.COORDINATOR, null));
    LedgerPosition claimed = store.claims().position();
    assertThat(claimed.claims()).isEqualTo(3);
    assertThat(claimed.mark()).isEqualTo(first.mark());
    killAndStart();
    LedgerPosition second = store.claims().position();
    assertThat(second.log()).isEqualTo(first.log());
    assertThat(List.of(second.starts(), second.base(), second.claims()))
        .containsExactly(2L, 3L, 3L);
    assertThat(second.mark()).isNotEqualTo(first.mark());
    assertThat(store.claims().remembers(claimed)).isTrue();
    assertThat(store.claims().remembers(claimed.claimed(ByteString.EMPTY))).isFalse();
    LedgerPosition other =
        new LedgerPosition(
            claimed.log(), 1, first.mark(), 0, claimed.claims(), store.claims().position().hash());
    assertThat(store.claims().remembers(other)).as("as many, and others").isFalse();
  }

  private static LedgerHead told(LedgerPosition position) {
    return new LedgerHead("test", 1, position, 0);
  }

  /** A ledger that goes on from a position in so many starts, one claim each. */
  private static LedgerPosition later(LedgerPosition from, int starts, int seed) {
    LedgerPosition position = from;
    for (int start = 0; start < starts; start++) {
      byte[] random = ByteBuffer.allocate(32).putInt(seed).putInt(start).array();
      position = position.next(random).claimed(ByteString.copyFrom(random));
    }
    return position;
  }

  /** Somebody tells the party of claims that it has forgotten. */
  @Test
  void what_was_forgotten_is_taken_up_once_and_means_nothing_for_new_shares() throws Exception {
    LedgerPosition forgotten = store.claims().position().claimed(ByteString.EMPTY);
    LedgerPosition forked = later(forgotten, 4, 1);
    assertThat(store.claims().remembers(forgotten)).isFalse();
    assertThat(store.claims().remembers(forked)).isFalse();
    assertThat(get(store.shownClaims().wentBack(told(forgotten)))).containsExactly(KEY);
    assertThat(get(store.shownClaims().wentBack(told(forked))))
        .as("settled with the first one")
        .isEmpty();
    assertThat(store.shares().excluded(KEY)).containsExactly(KeyShareStore.ITSELF);
    for (int start = 0; start < 2; start++) {
      assertThat(store.claims().remembers(forgotten)).isTrue();
      assertThat(store.claims().remembers(forked)).isTrue();
      assertThat(store.claims().position().against(forked))
          .isEqualTo(LedgerPosition.Judgement.LATER);
      killAndStart();
    }
    activate(share(2));
    assertThat(store.shares().excluded(KEY)).isEmpty();
    assertThat(store.claims().remembers(forked)).as("nobody has anything new to say").isTrue();
  }

  /** A corrupt peer kept many statements of the ledger that was put back, and shows them singly. */
  @Test
  void statements_that_one_rollback_made_the_party_forget_mark_no_new_shares() throws Exception {
    List<LedgerPosition> kept = new ArrayList<>();
    for (int starts = 1; starts <= 10; starts++) {
      kept.add(later(store.claims().position(), starts, 1));
    }
    assertThat(get(store.shownClaims().wentBack(told(kept.getFirst())))).containsExactly(KEY);
    assertThat(store.shares().excluded(KEY)).containsExactly(KeyShareStore.ITSELF);
    int epoch = 1;
    for (LedgerPosition told : kept) {
      activate(share(++epoch));
      LedgerPosition before = store.claims().position();
      assertThat(store.claims().remembers(told)).as("%s is of no new shares", told).isTrue();
      assertThat(get(store.shownClaims().wentBack(told(told)))).isEmpty();
      assertThat(store.shares().excluded(KEY)).as("marked by %s", told).isEmpty();
      assertThat(store.claims().position()).as("a start hears everybody anew").isEqualTo(before);
      assertThat(before.against(told)).isEqualTo(LedgerPosition.Judgement.LATER);
      killAndStart();
    }
    // The same store is put back once more.
    LedgerPosition next = later(store.claims().position(), 1, 2);
    assertThat(store.claims().remembers(next)).isFalse();
    assertThat(get(store.shownClaims().wentBack(told(next)))).containsExactly(KEY);
    assertThat(store.shares().excluded(KEY)).containsExactly(KeyShareStore.ITSELF);
  }

  /**
   * Put back twice to one copy, so that a log was forgotten too. A peer that remembers a position
   * either takes this party's own for a later one, or what it tells is news; else the two would
   * talk at cross purposes for ever.
   */
  @Test
  void every_forgotten_position_is_news_or_lies_before_this_one() throws Exception {
    LedgerPosition first = later(store.claims().position(), 1, 1);
    // In the incarnation that is forgotten as well, the party had learnt of more claims than this
    // time, and begun a log of its own.
    LedgerPosition learnt = later(first, 8, 1);
    LedgerPosition another = first.reopened(learnt, new byte[32]);
    for (int restart = 0; restart < 5; restart++) {
      killAndStart();
    }
    assertThat(get(store.shownClaims().wentBack(told(first)))).containsExactly(KEY);
    assertThat(store.claims().position().log().number()).isEqualTo(another.log().number());
    assertThat(store.claims().position().against(another))
        .as("two logs that were begun at one copy convict nobody")
        .isEqualTo(LedgerPosition.Judgement.KNOWN);
    assertThat(store.claims().remembers(another)).as("the peer that tells it is heard").isFalse();
    assertThat(get(store.shownClaims().wentBack(told(another)))).containsExactly(KEY);
    for (LedgerPosition told : List.of(first, learnt, another)) {
      assertThat(store.claims().remembers(told)).isTrue();
      assertThat(store.claims().position().against(told)).isEqualTo(LedgerPosition.Judgement.LATER);
    }
  }

  @Test
  void statements_from_before_a_restore_mark_no_new_shares() throws Exception {
    Files.write(folder.resolve(Backup.DATA_KEY), new byte[] {1});
    var zip = new java.io.ByteArrayOutputStream();
    Backup.write(folder, zip);
    folder = root.resolve("restored");
    Backup.restore(new java.io.ByteArrayInputStream(zip.toByteArray()), folder);
    LedgerPosition copy = store.claims().position();
    LedgerPosition forgotten = later(copy, 9, 1);
    store.close();
    open();
    assertThat(store.shares().excluded(KEY)).containsExactly(KeyShareStore.ITSELF);
    LedgerPosition restored = store.claims().position();
    assertThat(restored.against(forgotten)).isEqualTo(LedgerPosition.Judgement.LATER);
    assertThat(restored.log().previous()).isEqualTo(copy.log().id());
    assertThat(restored.log().hash())
        .as("it says where it left the old log")
        .isEqualTo(copy.hash());
    activate(share(2));
    assertThat(store.claims().remembers(forgotten)).isTrue();
    assertThat(get(store.shownClaims().wentBack(told(forgotten)))).isEmpty();
    assertThat(store.shares().excluded(KEY)).isEmpty();
  }

  private void activate(KeyShare next) {
    assertThat(get(store.shares().storeNext(next, true, event("stored")))).isTrue();
    assertThat(get(store.shares().activate(next, PROOF, event("active")))).isTrue();
  }

  /** Until two sessions have been claimed, the disk has no room for exclusions. */
  private void fillDisk() throws Exception {
    store.close();
    sql(
        "CREATE TRIGGER full BEFORE INSERT ON exclusion WHEN (SELECT count(*) FROM claimed_session)"
            + " < 2 BEGIN SELECT RAISE(ABORT, 'full'); END");
    open();
  }

  private void makeRoom() {
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
  }

  @Test
  void that_a_store_went_back_counts_at_once_and_is_written_as_soon_as_it_can_be()
      throws Exception {
    KeyShare ed25519 = share("keys/ed25519", 1, Scheme.SCHEME_ED25519);
    get(store.shares().storeProvisional(ed25519, event("stored")));
    get(store.shares().activate(ed25519, PROOF, event("active")));
    fillDisk();
    LedgerPosition forgotten = later(store.claims().position(), 8, 1);
    for (CompletionStage<List<String>> write :
        List.of(store.shownClaims().wentBack(2), store.shownClaims().wentBack(told(forgotten)))) {
      assertThatThrownBy(() -> get(write)).hasRootCauseInstanceOf(java.sql.SQLException.class);
    }
    assertThat(store.shares().excluded(KEY)).containsExactlyInAnyOrder(2, KeyShareStore.ITSELF);
    assertThat(store.shares().excluded("keys/other"))
        .as("what is not known is not risked")
        .isNotEmpty();
    assertThat(store.shares().excluded(ed25519.key())).as("does not multiply").isEmpty();
    store.shares().housekeep();
    get(
        store
            .claims()
            .claimSession(
                id(), MemoryLedger.COORDINATOR, null)); // what was submitted before has been tried
    assertThat(store.shares().excluded(KEY)).containsExactlyInAnyOrder(2, KeyShareStore.ITSELF);
    makeRoom();
    store.shares().housekeep();
    Installation.until("it is written", () -> store.claims().remembers(forgotten));
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    killAndStart();
    assertThat(store.shares().excluded(KEY)).containsExactlyInAnyOrder(2, KeyShareStore.ITSELF);
    assertThat(store.shares().excluded("keys/other")).isEmpty();
  }

  /**
   * The disk takes what it is told, and the reading fails by which memory follows it: that of a
   * share in use, and that of one which is used only later.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void that_a_store_went_back_counts_if_the_disk_cannot_be_read_after_the_write(boolean later) {
    KeyShare late = share("keys/b", 1, Scheme.SCHEME_ECDSA_SECP256K1);
    get(store.shares().storeProvisional(late, event("stored")));
    store.close();
    AtomicBoolean fails = new AtomicBoolean();
    Semaphore followed = new Semaphore(0);
    store =
        PartyStore.open(
            folder,
            "alpha",
            Clock.systemUTC(),
            (_, _) -> {
              if (fails.compareAndSet(true, false)) {
                followed.acquireUninterruptibly();
                Thread.currentThread().interrupt(); // until the end of the write
              }
            });
    LedgerPosition forgotten = later(store.claims().position(), 8, 1);
    fails.set(!later);
    CompletionStage<?> written = store.shownClaims().wentBack(told(forgotten));
    if (later) {
      get(written);
      fails.set(true);
      written = store.shares().activate(late, PROOF, event("active"));
    }
    CompletionStage<Boolean> interrupted = written.handle((_, _) -> Thread.interrupted());
    followed.release();
    assertThat(get(interrupted)).isTrue();

    String key = later ? late.key() : KEY;
    for (int time = 0; time < 2; time++) {
      assertThat(store.shares().excluded(key)).containsExactly(KeyShareStore.ITSELF);
      store.shares().housekeep();
      get(
          store
              .claims()
              .claimSession(
                  id(), MemoryLedger.COORDINATOR, null)); // what was submitted before has been done
    }
    assertThat(store.claims().position().against(forgotten))
        .isEqualTo(LedgerPosition.Judgement.LATER);
    activate(share(2));
    assertThat(store.shares().excluded(KEY)).isEmpty();
  }

  @Test
  void a_freeze_that_the_file_does_not_take_is_listed_and_survives_a_kill() throws Exception {
    fillDisk();
    excludeFails();
    List<KeyTrouble> troubles =
        List.of(
            new KeyTrouble(KEY, KeyShareStore.EVERY_PARTY, Kind.FROZEN, 0),
            new KeyTrouble(KEY, 2, Kind.EXCLUDED, 0));
    assertThat(PartyStore.troubles(folder)).isEqualTo(troubles);
    assertThat(store.holds().all()).extracting(Hold::cause).containsExactly(Hold.Cause.FREEZE);
    killAndStart();
    assertThat(store.shares().troubles()).isEqualTo(troubles);
    assertThat(PartyStore.troubles(folder)).isEqualTo(troubles);
    assertThat(store.holds().all())
        .isEqualTo(PartyStore.holds(folder))
        .extracting(Hold::cause)
        .containsExactly(Hold.Cause.FREEZE);

    assertThat(get(store.shares().unfreeze(KEY))).isTrue();
    killAndStart();
    assertThat(store.shares().excluded(KEY)).as("the culprit stays excluded").containsExactly(2);
    makeRoom();
    store.shares().housekeep();
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    try (var files = Files.list(folder)) {
      assertThat(files.map(f -> f.getFileName().toString()))
          .noneMatch(f -> f.contains("unwritten"));
    }
    killAndStart();
    assertThat(store.shares().excluded(KEY)).containsExactly(2);
    assertThat(store.audit().read(0, 100).stream().map(r -> r.event().action()))
        .contains("key.unfreeze");
  }

  @Test
  void a_freeze_that_is_not_on_disk_yet_is_lifted_too() throws Exception {
    fillDisk();
    excludeFails();
    assertThat(store.shares().excluded(KEY)).containsExactlyInAnyOrder(0, 2);
    assertThat(get(store.shares().unfreeze(KEY))).isTrue();
    assertThat(store.shares().excluded(KEY)).containsExactly(2);
    makeRoom();
    store.shares().housekeep();
    get(store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null));
    killAndStart();
    assertThat(store.shares().excluded(KEY))
        .as("the exclusion was written all the same")
        .containsExactly(2);
  }

  @Test
  void a_request_that_names_no_key_is_in_nobodys_way() throws Exception {
    get(exclude(KeyShareStore.EVERY_PARTY));
    for (String bad : List.of("", "0", "zz", "ffff ")) {
      Files.createFile(folder.resolve("unfreeze-" + bad));
    }
    askToUnfreeze(KEY);
    store.shares().housekeep();
    Installation.until("it is lifted", () -> store.shares().troubles().isEmpty());
    Installation.until("no request is left", () -> requests().isEmpty());
  }

  private List<Path> requests() {
    try (var files = Files.list(folder)) {
      return files
          .filter(f -> f.getFileName().toString().matches("unfreeze-.*(?<!\\.refused)"))
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void an_exclusion_from_old_shares_does_not_reach_the_new_ones() {
    KeyShare next = share(2);
    get(store.shares().storeNext(next, true, event("stored")));
    CompletionStage<Boolean> activated = store.shares().activate(next, PROOF, event("active"));
    CompletionStage<Boolean> excluded = exclude(2);
    assertThat(get(activated)).isTrue();
    assertThat(get(excluded)).isFalse();
    assertThat(store.shares().excluded(KEY)).isEmpty();
  }

  @Test
  void a_peer_that_shows_the_same_again_and_again_fills_no_audit_trail() {
    long before = store.audit().read(0, 1000).size();
    for (int time = 0; time < 100; time++) {
      get(store.shownClaims().wentBack(2));
    }
    assertThat(store.audit().read(0, 1000)).hasSize((int) before + 1);
  }

  /** The peer's store went back while new shares were on their way. */
  @Test
  void a_share_that_is_not_active_yet_is_not_multiplied_with_a_peer_that_went_back()
      throws Exception {
    KeyShare pending = share(2);
    assertThat(get(store.shares().storeNext(pending, true, event("stored")))).isTrue();
    get(store.shownClaims().wentBack(4));
    for (int time = 0; time < 3; time++) {
      get(store.shownClaims().wentBack(2));
    }
    assertThat(
            store.audit().read(0, 100).stream()
                .filter(r -> r.event().action().contains("went_back")))
        .hasSize(1);
    killAndStart();
    assertThat(get(store.shares().activate(pending, PROOF, event("active")))).isTrue();
    assertThat(store.shares().excluded(KEY)).containsExactly(2);
    killAndStart();
    assertThat(store.shares().excluded(KEY)).containsExactly(2);
    activate(share(3));
    assertThat(store.shares().excluded(KEY)).isEmpty();
  }

  /** Of each peer one write at a time, the first one included; all in one transaction here. */
  @Test
  void what_is_being_written_is_not_written_again_beside() throws Exception {
    store.close();
    AtomicInteger written = new AtomicInteger();
    Semaphore commits = new Semaphore(1);
    store =
        PartyStore.open(
            folder,
            "alpha",
            Clock.systemUTC(),
            (writes, _) -> {
              written.addAndGet(writes);
              commits.acquireUninterruptibly();
            });
    Installation.until("the start is written", () -> written.get() == 1);
    CompletionStage<?> claim = store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null);
    Installation.until("no other commit can begin", () -> written.get() == 2);
    CompletionStage<List<String>> first = store.shownClaims().wentBack(2);
    for (int time = 0; time < 3; time++) {
      store.shares().housekeep();
    }
    CompletionStage<?> last = store.claims().claimSession(id(), MemoryLedger.COORDINATOR, null);
    commits.release(100);
    get(claim);
    get(first);
    get(last);
    assertThat(written.get()).as("start, claim, mark, claim").isEqualTo(4);
  }

  @Test
  void a_request_of_the_operator_is_not_taken_up_while_it_is_being_done() throws Exception {
    OperatorRequests requests = new OperatorRequests(folder);
    askToUnfreeze(KEY);
    List<CompletableFuture<String>> asked = new ArrayList<>();
    Runnable look =
        () ->
            requests.perform(
                request -> {
                  assertThat(request.argument()).isEqualTo(KEY);
                  asked.add(new CompletableFuture<>());
                  return asked.getLast();
                });
    for (int time = 0; time < 3; time++) {
      look.run();
    }
    assertThat(asked).hasSize(1);
    asked.getLast().completeExceptionally(new IOException("full"));
    look.run();
    assertThat(asked).as("after a failure").hasSize(2);
    asked.getLast().complete("done");
    look.run();
    assertThat(asked).hasSize(2);
    assertThat(requests()).isEmpty();
  }

  private void sql(String statement) throws Exception {
    try (Connection raw =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        var run = raw.createStatement()) {
      run.executeUpdate(statement);
    }
  }
}
