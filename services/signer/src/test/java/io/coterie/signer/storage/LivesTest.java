package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.Installation;
import io.coterie.signer.session.Certificate;
import io.coterie.signer.session.ClaimLedger.Multiplication;
import io.coterie.signer.session.KeyShare;
import io.coterie.signer.session.KeyShareStore;
import io.coterie.signer.session.KeyTrouble;
import io.coterie.signer.session.KeyTrouble.Kind;
import io.coterie.signer.session.SessionId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a party remembers of multiplications in the middle of which its process died. */
class LivesTest {
  private static final String KEY = "keys/a";
  private static final Certificate PROOF =
      new Certificate(
          List.of(ByteString.copyFrom(new byte[64]), ByteString.copyFrom(new byte[64])));

  @TempDir Path root;
  private Path folder;
  private PartyStore store;
  private int sessions;
  private int lives;

  @BeforeEach
  void start() {
    folder = root.resolve("0");
    open();
    KeyShare share = share(1);
    get(store.storeProvisional(share, event("stored")));
    get(store.activate(share, PROOF, event("active")));
  }

  @AfterEach
  void stop() {
    store.close();
  }

  private void open() {
    store = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {});
  }

  /** Goes on with the disk as it was at this moment: what was not on it is gone. */
  private void killAndStart() throws IOException {
    Path next = root.resolve(Integer.toString(++lives));
    PartyStore.createFolder(next);
    for (String file : List.of(PartyStore.FILE, PartyStore.FILE + "-wal")) {
      Files.copy(folder.resolve(file), next.resolve(file));
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
    return new KeyShare(
        KEY,
        epoch,
        Scheme.SCHEME_ECDSA_SECP256K1,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 3),
        List.of(1, 2, 3),
        KeyPublic.newBuilder().setKeyId(KEY).setThreshold(2).setEpoch(epoch).build(),
        ByteString.copyFromUtf8("sealed " + epoch),
        id(),
        "coordinator",
        "wallet",
        "request " + epoch,
        ByteString.copyFrom(new byte[32]),
        null);
  }

  private SessionId multiplyWith(Integer... peers) {
    SessionId session = id();
    get(store.claimSession(session, new Multiplication(KEY, 1, List.of(peers))));
    return session;
  }

  private void live(int times, Integer... peers) throws IOException {
    for (int i = 0; i < times; i++) {
      multiplyWith(peers);
      killAndStart();
    }
  }

  @Test
  void lives_and_not_sessions_are_counted_up_to_a_refresh_and_an_exclusion() throws Exception {
    for (int life = 1; life <= KeyTrouble.EXCLUDE_AT; life++) {
      for (int session = 0; session < 5; session++) {
        multiplyWith(2);
      }
      killAndStart();
      List<KeyTrouble> expected =
          life < KeyTrouble.REFRESH_AT
              ? List.of()
              : List.of(
                  new KeyTrouble(
                      KEY,
                      2,
                      life < KeyTrouble.EXCLUDE_AT ? Kind.REFRESH_ADVISED : Kind.EXCLUDED,
                      life));
      assertThat(store.troubles()).as("after %d lives", life).isEqualTo(expected);
      assertThat(store.excluded(KEY))
          .isEqualTo(life < KeyTrouble.EXCLUDE_AT ? Set.of() : Set.of(2));
    }
    assertThat(store.audit(0, 100)).anyMatch(r -> r.event().action().equals("party.exclude"));
    assertThat(store.verifyAudit()).isInstanceOf(AuditTrail.Verification.Intact.class);
  }

  @Test
  void a_clean_stop_and_a_session_that_has_ended_count_for_nothing() throws Exception {
    for (int i = 0; i < 10; i++) {
      store.multiplied(multiplyWith(2));
      store.close();
      open();
    }
    for (int i = 0; i < 4; i++) {
      store.multiplied(multiplyWith(2));
      multiplyWith(3); // what waited is on disk with it
      killAndStart();
    }
    assertThat(store.troubles()).containsExactly(new KeyTrouble(KEY, 3, Kind.REFRESH_ADVISED, 4));
  }

  @Test
  void each_peer_of_a_session_is_counted_by_itself() throws Exception {
    live(3, 2, 3);
    live(2, 3);
    assertThat(store.troubles()).containsExactly(new KeyTrouble(KEY, 3, Kind.REFRESH_ADVISED, 5));
    live(1, 2);
    assertThat(store.troubles())
        .containsExactly(
            new KeyTrouble(KEY, 2, Kind.REFRESH_ADVISED, 4),
            new KeyTrouble(KEY, 3, Kind.REFRESH_ADVISED, 5));
  }

  @Test
  void new_shares_begin_with_no_life() throws Exception {
    live(KeyTrouble.EXCLUDE_AT, 2);
    assertThat(store.excluded(KEY)).containsExactly(2);
    multiplyWith(2);
    KeyShare next = share(2);
    assertThat(get(store.storeNext(next, true, event("stored")))).isTrue();
    assertThat(get(store.activate(next, PROOF, event("active")))).isTrue();
    assertThat(store.troubles()).isEmpty();
    assertThat(store.excluded(KEY)).isEmpty();
    multiplyWith(2); // a session of the old epoch that was claimed a moment too late
    killAndStart();
    assertThat(store.troubles()).isEmpty();
    assertThat(store.excluded(KEY)).isEmpty();
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
    assertThatThrownBy(
            () ->
                get(
                    store.exclude(
                        new KeyShareStore.Exclusion(
                            KEY, Set.of(2), id(), id(), 1, ByteString.EMPTY))))
        .hasRootCauseInstanceOf(java.sql.SQLException.class);
    KeyTrouble frozen = new KeyTrouble(KEY, KeyShareStore.EVERY_PARTY, Kind.FROZEN, 0);
    assertThat(store.troubles()).contains(frozen);
    store.housekeep();
    get(store.claimSession(id(), null)); // what was submitted before has been tried
    assertThat(store.excluded(KEY)).as("the disk is still full").contains(0, 2);

    get(store.claimSession(id(), null));
    store.housekeep();
    get(store.claimSession(id(), null));
    killAndStart();
    assertThat(store.troubles()).contains(frozen);
    assertThat(store.excluded(KEY)).containsExactlyInAnyOrder(0, 2);

    KeyShare next = share(2);
    get(store.storeNext(next, true, event("stored")));
    get(store.activate(next, PROOF, event("active")));
    assertThat(store.troubles()).as("new shares do not lift it").containsExactly(frozen);

    new OperatorRequests(folder).unfreeze(KEY);
    store.housekeep();
    Installation.until("it is lifted", () -> store.troubles().isEmpty());
    killAndStart();
    assertThat(store.excluded(KEY)).isEmpty();
    assertThat(store.audit(0, 100).stream().map(r -> r.event().action()))
        .containsSubsequence("key.freeze", "key.unfreeze");
    assertThat(store.verifyAudit()).isInstanceOf(AuditTrail.Verification.Intact.class);
    try (var files = Files.list(folder)) {
      assertThat(files.map(f -> f.getFileName().toString())).noneMatch(f -> f.contains("unfreeze"));
    }
  }

  @Test
  void a_request_to_lift_what_is_not_frozen_changes_nothing() throws Exception {
    get(
        store.exclude(
            new KeyShareStore.Exclusion(KEY, Set.of(2), id(), id(), 1, ByteString.EMPTY)));
    new OperatorRequests(folder).unfreeze(KEY);
    new OperatorRequests(folder).unfreeze("keys/../../b");
    store.housekeep();
    get(store.claimSession(id(), null));
    assertThat(store.excluded(KEY)).containsExactly(2);
  }

  @Test
  void nothing_multiplies_with_a_share_out_of_a_backup() throws Exception {
    KeyShare pending = share(2);
    assertThat(get(store.storeNext(pending, true, event("stored")))).isTrue();
    Files.write(folder.resolve(Backup.DATA_KEY), new byte[] {1});
    var zip = new java.io.ByteArrayOutputStream();
    Backup.write(folder, zip);
    folder = root.resolve("restored");
    Backup.restore(new java.io.ByteArrayInputStream(zip.toByteArray()), folder);
    store.close();
    open();
    KeyTrouble wentBack = new KeyTrouble(KEY, KeyShareStore.ITSELF, Kind.WENT_BACK, 0);
    assertThat(store.troubles()).containsExactly(wentBack);
    killAndStart();
    assertThat(store.troubles()).containsExactly(wentBack);

    // What became of the share that is not active yet is forgotten, too.
    assertThat(get(store.activate(pending, PROOF, event("active")))).isTrue();
    assertThat(store.excluded(KEY)).containsExactly(KeyShareStore.ITSELF);
    killAndStart();
    assertThat(store.excluded(KEY)).containsExactly(KeyShareStore.ITSELF);

    KeyShare next = share(3);
    assertThat(get(store.storeNext(next, true, event("stored")))).isTrue();
    assertThat(get(store.activate(next, PROOF, event("active")))).isTrue();
    assertThat(store.troubles()).isEmpty();
    killAndStart();
    assertThat(store.troubles()).isEmpty();
  }

  @Test
  void claims_are_counted_for_ever_and_only_once_each() throws Exception {
    SessionId session = id();
    get(store.claimSession(session, null));
    get(store.claimSession(session, null));
    get(store.forsake(id()));
    assertThat(store.claimed()).isEqualTo(2);
    killAndStart();
    assertThat(store.claimed()).isEqualTo(2);
  }

  private void sql(String statement) throws Exception {
    try (Connection raw =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        var run = raw.createStatement()) {
      run.executeUpdate(statement);
    }
  }
}
