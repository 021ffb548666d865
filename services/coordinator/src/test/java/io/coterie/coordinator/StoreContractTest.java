package io.coterie.coordinator;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyRecord.Holder;
import io.coterie.coordinator.custody.key.KeyStore.Creation;
import io.coterie.coordinator.custody.key.KeyStore.Quorums;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.key.RenewalStore.Start;
import io.coterie.coordinator.custody.ledger.LedgerStore.Remembered;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.storage.JdbcKeyStore;
import io.coterie.coordinator.storage.JdbcLedgerStore;
import io.coterie.coordinator.storage.JdbcRenewalStore;
import io.coterie.coordinator.storage.JdbcReplicaStore;
import io.coterie.coordinator.storage.JdbcSigningStore;
import io.coterie.coordinator.storage.Worker;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerLog;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.ledger.LedgerPosition.Judgement;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.DecodedPayload;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.ClaimCount;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * The contracts of the stores, for PostgreSQL and for those in memory, as two replicas see them.
 */
class StoreContractTest {
  static final Instant NOW = Instant.parse("2030-01-01T00:00:00.000001Z");
  static final Status WHY = Status.newBuilder().setCode(9).setMessage("why").build();
  static final List<Holder> PARTIES =
      List.of(new Holder(1, "p1"), new Holder(2, "p2"), new Holder(4, "p4"));
  private static final SignedIntent INTENT =
      SignedIntent.newBuilder().setPayload(ByteString.copyFromUtf8("intent")).build();

  /** Longer than a few statements take, also on a busy machine. */
  private static final Duration SOON = Duration.ofSeconds(3);

  /** Makes the stores of a replica, by its name. */
  interface Database extends Function<String, Replica> {}

  static Stream<Named<Database>> databases() {
    MemoryStores memory = new MemoryStores();
    PGSimpleDataSource postgres = postgres();
    return Stream.of(
        Named.of("memory", memory::replica),
        Named.of("PostgreSQL", name -> replica(postgres, name)));
  }

  static PGSimpleDataSource postgres() {
    PGSimpleDataSource postgres = new PGSimpleDataSource();
    postgres.setUrl(TestInstallation.createDatabase());
    postgres.setUser("postgres");
    Flyway.configure().dataSource(postgres).locations("db/coordinator").load().migrate();
    return postgres;
  }

  /** Databases for which a replica is gone soon after it was seen. */
  static Stream<Named<Database>> forgetful() {
    MemoryStores memory = new MemoryStores(SOON);
    PGSimpleDataSource postgres = postgres();
    return Stream.of(
        Named.of("memory", memory::replica),
        Named.of("PostgreSQL", name -> replica(postgres, name, SOON)));
  }

  static Replica replica(PGSimpleDataSource postgres, String name) {
    return replica(postgres, name, Duration.ofMinutes(10));
  }

  static Replica replica(PGSimpleDataSource postgres, String name, Duration goneAfter) {
    Worker worker = new Worker(name, goneAfter);
    return new Replica(
        new JdbcKeyStore(postgres, worker),
        new JdbcRenewalStore(postgres, worker),
        new JdbcSigningStore(postgres, postgres, worker),
        new JdbcReplicaStore(postgres, worker),
        new JdbcLedgerStore(postgres));
  }

  static ByteString digest(int number) {
    return ByteString.copyFrom(new byte[31])
        .concat(ByteString.copyFrom(new byte[] {(byte) number}));
  }

  private static String uuid() {
    return RequestId.next();
  }

  static KeyRecord creation(String name) {
    return creation(name, Scheme.SCHEME_ED25519);
  }

  private static KeyRecord creation(String name, Scheme scheme) {
    return KeyRecord.creating(
        new RequestHeader("wallet", uuid(), digest(1), INTENT, NOW.plusSeconds(60), NOW),
        "keys/" + name,
        scheme,
        2,
        PARTIES);
  }

  static MadeKey made(int epoch) {
    return TestEvidence.unattested(KeyPublic.newBuilder().setEpoch(epoch).setThreshold(2).build());
  }

  static KeyRecord stored(Replica replica, KeyRecord attempt) {
    return ((Creation.Stored) replica.keys().create(attempt)).record();
  }

  private static KeyRecord active(Replica replica, String name) {
    KeyRecord key = stored(replica, creation(name));
    assertThat(replica.keys().finish(key.id(), made(1), null, 3)).isTrue();
    return key.active(made(1), 3);
  }

  private static KeyRecord ecdsa(String name) {
    return creation(name, Scheme.SCHEME_ECDSA_SECP256K1);
  }

  private static void activeEcdsa(Replica replica, String name) {
    KeyRecord key = stored(replica, ecdsa(name));
    assertThat(replica.keys().finish(key.id(), made(1), null, 3)).isTrue();
  }

  static Renewal renewal(String name, int fromEpoch) {
    return Renewal.running(
        new RequestHeader("wallet", uuid(), digest(2), INTENT, NOW.plusSeconds(60), NOW),
        "keys/" + name,
        fromEpoch,
        1,
        List.of(new Holder(2, "p2"), new Holder(3, "p3")));
  }

  static Renewal started(Replica replica, Renewal attempt) {
    return ((Start.Stored) replica.renewals().start(attempt)).record();
  }

  static SigningRecord signing() {
    return signing("keys/hot", NOW);
  }

  private static SigningRecord signing(String key, Instant created) {
    return SigningRecord.pending(
        new RequestHeader("wallet", uuid(), digest(3), INTENT, NOW.plusSeconds(60), created),
        key,
        Scheme.SCHEME_ECDSA_SECP256K1,
        digest(4),
        DecodedPayload.getDefaultInstance());
  }

  static SigningRecord signed(SigningRecord pending, int recoveryId) {
    return pending.signed(
        new SigningRecord.Result(
            digest(5), OptionalInt.of(recoveryId), ByteString.copyFrom(new byte[33]), true),
        List.of("p1", "p4"),
        2,
        NOW.plusSeconds(1));
  }

  // Keys

  @ParameterizedTest
  @MethodSource("databases")
  void a_creation_is_stored_once_and_its_name_is_free_after_a_failure(Database database) {
    Replica here = database.apply("here");
    KeyRecord first = creation("once");
    KeyRecord stored = stored(here, first);
    assertThat(stored).isEqualTo(first.withId(stored.id()));
    assertThat(here.keys().create(first)).isEqualTo(new Creation.Known(stored));
    assertThat(here.keys().create(creation("once"))).isEqualTo(new Creation.NameTaken());
    assertThat(here.keys().finish(stored.id(), null, WHY, 2)).isTrue();
    assertThat(here.keys().find("keys/once")).contains(stored.failed(WHY, 2));
    KeyRecord second = stored(here, creation("once"));
    assertThat(here.keys().find("keys/once")).contains(second);
    assertThat(here.keys().findRequest("wallet", first.requestId()))
        .contains(stored.failed(WHY, 2));
    assertThat(here.keys().findRequest("treasury", first.requestId())).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_creation_ends_once(Database database) {
    Replica here = database.apply("here");
    KeyRecord key = active(here, "ends");
    assertThat(here.keys().finish(key.id(), null, WHY, 9)).isFalse();
    assertThat(here.keys().find("keys/ends")).contains(key);
    assertThat(here.keys().take(key.id())).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("databases")
  void keys_are_listed_by_name_and_glob_where_only_the_asterisk_means_more(Database database) {
    Replica here = database.apply("here");
    for (String name : List.of("list-b", "list-a", "listxa", "other-list")) {
      active(here, name);
    }
    assertThat(here.keys().list("", Set.of("keys/list-*", "keys/none"), 9))
        .extracting(KeyRecord::name)
        .containsExactly("keys/list-a", "keys/list-b");
    assertThat(here.keys().list("keys/list-a", Set.of("keys/*list*"), 2))
        .extracting(KeyRecord::name)
        .containsExactly("keys/list-b", "keys/listxa");
    assertThat(here.keys().list("", Set.of("keys/list_a", "keys/list%"), 9)).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("databases")
  void an_excluded_party_counts_for_no_quorum_until_the_shares_are_new(Database database) {
    Replica here = database.apply("here");
    active(here, "quorum");
    here.keys().exclude("keys/quorum", 4, "CAUSE", new byte[32], NOW);
    here.keys().exclude("keys/quorum", 4, "ANOTHER", new byte[32], NOW);
    assertThat(here.keys().excluded("keys/quorum")).containsExactly(4);
    assertThat(here.keys().quorums()).contains(new Quorums(2, Set.of(1, 2)));
    Renewal renewal = started(here, renewal("quorum", 1));
    assertThat(here.renewals().switchEpoch(renewal.id(), made(2), 1)).isTrue();
    assertThat(here.keys().excluded("keys/quorum")).isEmpty();
    assertThat(here.keys().quorums()).contains(new Quorums(1, Set.of(2, 3)));
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_party_that_went_back_is_left_out_of_its_ecdsa_keys_until_the_shares_are_new(
      Database database) {
    Replica here = database.apply("here");
    activeEcdsa(here, "back-a");
    activeEcdsa(here, "back-b");
    stored(here, ecdsa("back-creating"));
    active(here, "back-ed25519");
    here.keys().exclude("keys/back-b", 2, "CAUSE", new byte[32], NOW);
    assertThat(here.keys().excludeWentBack(2, NOW)).contains("keys/back-a");
    assertThat(here.keys().excludeWentBack(2, NOW)).isEmpty();
    assertThat(here.keys().excludeWentBack(9, NOW)).isEmpty();
    Replica other = database.apply("other");
    assertThat(other.keys().excluded("keys/back-a")).containsExactly(2);
    assertThat(other.keys().wentBack("keys/back-a")).containsExactly(2);
    assertThat(other.keys().wentBack("keys/back-b")).as("for another cause before").isEmpty();
    assertThat(other.keys().excluded("keys/back-creating")).isEmpty();
    assertThat(other.keys().excluded("keys/back-ed25519")).isEmpty();
    Renewal renewal = started(here, renewal("back-a", 1));
    assertThat(here.renewals().switchEpoch(renewal.id(), made(2), 1)).isTrue();
    assertThat(other.keys().wentBack("keys/back-a")).isEmpty();
    assertThat(other.keys().excluded("keys/back-a")).isEmpty();
  }

  // Ledgers

  private static ByteString head(int number) {
    return ByteString.copyFrom(new byte[31])
        .concat(ByteString.copyFrom(new byte[] {(byte) number}));
  }

  private static ClaimCount statement(int party, LedgerPosition position) {
    return new LedgerHead("test", party, position, 0).count(ByteString.copyFrom(new byte[64]));
  }

  /** Of the first log. */
  private static LedgerPosition at(int starts, int mark, int base, int claims) {
    LedgerLog log = new LedgerLog(1, head(77), ByteString.EMPTY, 0, ByteString.EMPTY);
    return new LedgerPosition(log, starts, head(mark), base, claims, head(claims));
  }

  private static Remembered remember(Replica at, int party, LedgerPosition position) {
    return at.ledgers().remember(position, statement(party, position), head(party));
  }

  /** Every pair of positions of a small ledger and its forks, in either order, at two replicas. */
  @ParameterizedTest
  @MethodSource("databases")
  void a_ledger_is_remembered_as_far_as_it_has_come_and_never_less(Database database) {
    Replica here = database.apply("here");
    Replica other = database.apply("other");
    List<LedgerPosition> positions = new ArrayList<>();
    for (int starts = 1; starts <= 3; starts++) {
      for (int base = 0; base <= 1; base++) {
        for (int claims = base; claims <= 2; claims++) {
          positions.add(at(starts, 10 * starts + base, base, claims));
        }
      }
    }
    LedgerPosition last = positions.getLast();
    positions.add(last.reopened(last, head(1).toByteArray()));
    positions.add(last.reopened(last, head(2).toByteArray()));
    int party = 100;
    for (LedgerPosition first : positions) {
      for (LedgerPosition second : positions) {
        party++;
        assertThat(remember(here, party, first))
            .isEqualTo(
                new Remembered(first, statement(party, first).toByteString(), ByteString.EMPTY));
        boolean later = second.against(first) == Judgement.LATER;
        boolean another = !second.mark().equals(first.mark());
        LedgerPosition latest = later ? second : first;
        Remembered expected =
            new Remembered(
                latest,
                statement(party, latest).toByteString(),
                later && another ? statement(party, first).toByteString() : ByteString.EMPTY);
        assertThat(remember(other, party, second)).as("%s, %s", first, second).isEqualTo(expected);
        assertThat(remember(here, party, first)).as("told again").isEqualTo(expected);
        assertThat(remember(database.apply("new process"), party, first)).isEqualTo(expected);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("databases")
  void the_statement_of_the_start_before_is_kept_and_a_new_evidence_key_has_its_own_ledger(
      Database database) {
    Replica here = database.apply("here");
    LedgerPosition last = at(1, 1, 0, 3);
    LedgerPosition start = at(2, 2, 3, 3);
    LedgerPosition claimed = at(2, 2, 3, 5);
    remember(here, 7, last);
    remember(here, 7, start);
    Remembered remembered = remember(here, 7, claimed);
    assertThat(remembered.position()).isEqualTo(claimed);
    assertThat(remembered.before()).isEqualTo(statement(7, last).toByteString());
    LedgerPosition anew = at(1, 9, 0, 0);
    assertThat(here.ledgers().remember(anew, statement(7, anew), head(8)).position())
        .isEqualTo(anew);
    assertThat(remember(here, 8, anew).position()).as("of another party").isEqualTo(anew);
    assertThat(remember(here, 7, anew).position()).isEqualTo(claimed);
  }

  /** Two replicas are told of two starts of one copy: one of them is remembered, by both. */
  @ParameterizedTest
  @MethodSource("databases")
  void of_contradicting_statements_at_two_replicas_one_is_remembered(Database database) {
    Replica here = database.apply("here");
    Replica other = database.apply("other");
    for (int party = 50; party < 80; party++) {
      int id = party;
      LedgerPosition one = at(2, 1, 0, 4);
      LedgerPosition two = at(2, 2, 0, 9);
      CompletableFuture<Remembered> atOther =
          CompletableFuture.supplyAsync(() -> remember(other, id, two));
      Remembered atHere = remember(here, id, one);
      assertThat(atOther.join()).isEqualTo(atHere);
    }
  }

  // Renewals

  @ParameterizedTest
  @MethodSource("databases")
  void one_renewal_of_a_key_runs_and_only_from_the_epoch_of_the_key(Database database) {
    Replica here = database.apply("here");
    stored(here, creation("creating"));
    assertThat(here.renewals().start(renewal("creating", 1))).isEqualTo(new Start.Refused());
    active(here, "renewed");
    assertThat(here.renewals().start(renewal("renewed", 2))).isEqualTo(new Start.Refused());
    Renewal first = renewal("renewed", 1);
    Renewal stored = started(here, first);
    assertThat(stored).isEqualTo(first.withId(stored.id()));
    assertThat(here.renewals().start(first)).isEqualTo(new Start.Known(stored));
    assertThat(here.renewals().start(renewal("renewed", 1))).isEqualTo(new Start.Refused());
    assertThat(here.renewals().isRunning("keys/renewed")).isTrue();
    assertThat(here.renewals().findOfKey("keys/renewed", first.requestId())).contains(stored);
    assertThat(here.renewals().findOfKey("keys/other", first.requestId())).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_switch_gives_the_key_epoch_threshold_and_parties_at_once_and_once(Database database) {
    Replica here = database.apply("here");
    active(here, "switch");
    Renewal renewal = started(here, renewal("switch", 1));
    assertThat(here.renewals().switchEpoch(renewal.id(), made(2), 4)).isTrue();
    KeyRecord key = here.keys().find("keys/switch").orElseThrow();
    assertThat(key.epoch()).isEqualTo(2);
    assertThat(key.threshold()).isEqualTo(renewal.threshold());
    assertThat(key.parties()).isEqualTo(renewal.parties());
    Renewal done = here.renewals().findRequest("wallet", renewal.requestId()).orElseThrow();
    assertThat(done.state()).isEqualTo(Renewal.State.DONE);
    assertThat(done.sessions()).isEqualTo(4);
    assertThat(here.renewals().switchEpoch(renewal.id(), made(3), 5)).isFalse();
    assertThat(here.renewals().fail(renewal.id(), WHY, 5)).isFalse();
    assertThat(here.keys().find("keys/switch")).contains(key);
    assertThat(here.renewals().start(renewal("switch", 1))).isEqualTo(new Start.Refused());
  }

  @ParameterizedTest
  @MethodSource("databases")
  void of_several_failed_renewals_the_one_asked_about_least_is_opened_again(Database database) {
    Replica here = database.apply("here");
    Replica other = database.apply("other");
    here.presence().seen();
    other.presence().seen();
    active(here, "reopen");
    Renewal often = started(here, renewal("reopen", 1));
    here.renewals().fail(often.id(), WHY, 3);
    Renewal seldom = started(here, renewal("reopen", 1));
    here.renewals().ordering(seldom.id());
    assertThat(other.renewals().reopen("keys/reopen", 1)).isEmpty();
    here.renewals().fail(seldom.id(), WHY, 0);
    assertThat(other.renewals().reopen("keys/reopen", 2)).isEmpty();
    Renewal opened = other.renewals().reopen("keys/reopen", 1).orElseThrow();
    assertThat(opened.id()).isEqualTo(seldom.id());
    assertThat(opened.state()).isEqualTo(Renewal.State.RUNNING);
    assertThat(opened.error()).isNull();
    assertThat(opened.reopened()).isTrue();
    assertThat(opened.sessions()).as("sessions are never forgotten").isEqualTo(1);
    assertThat(here.renewals().take(opened.id())).as("now the other's work").isEmpty();
    assertThat(other.renewals().take(opened.id())).contains(opened);
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_failed_renewal_from_an_epoch_that_is_over_is_not_opened_again(Database database) {
    Replica here = database.apply("here");
    active(here, "over");
    Renewal failed = started(here, renewal("over", 1));
    here.renewals().fail(failed.id(), WHY, 1);
    Renewal successful = started(here, renewal("over", 1));
    here.renewals().switchEpoch(successful.id(), made(2), 1);
    assertThat(here.renewals().reopen("keys/over", 1)).isEmpty();
    assertThat(here.renewals().isRunning("keys/over")).isFalse();
  }

  /** The result of a call that waits for a transaction with these statements, then committed. */
  private static <T> T beside(PGSimpleDataSource postgres, Supplier<T> call, String... statements)
      throws Exception {
    CompletableFuture<T> result;
    try (Connection transaction = postgres.getConnection();
        Statement statement = transaction.createStatement();
        Connection watching = postgres.getConnection();
        Statement locks = watching.createStatement()) {
      transaction.setAutoCommit(false);
      for (String sql : statements) {
        statement.execute(sql);
      }
      result = CompletableFuture.supplyAsync(call);
      boolean waits = false;
      while (!waits && !result.isDone()) {
        try (ResultSet row = locks.executeQuery("select 1 from pg_locks where not granted")) {
          waits = row.next();
        }
      }
      transaction.commit();
    }
    return result.get();
  }

  @Test
  void a_renewal_is_not_opened_again_beside_one_that_starts() throws Exception {
    PGSimpleDataSource postgres = postgres();
    Replica here = replica(postgres, "here");
    active(here, "beside");
    Renewal failed = started(here, renewal("beside", 1));
    here.renewals().fail(failed.id(), WHY, 1);
    Renewal starting = started(here, renewal("beside", 1));
    here.renewals().fail(starting.id(), WHY, 2);
    Optional<Renewal> opened =
        beside(
            postgres,
            () -> here.renewals().reopen("keys/beside", 1),
            "update key_renewals set state = 1, error = null where id = " + starting.id());
    assertThat(opened).isEmpty();
    assertThat(here.renewals().isRunning("keys/beside")).isTrue();
  }

  @Test
  void a_renewal_that_starts_beside_one_that_is_opened_again_is_refused() throws Exception {
    PGSimpleDataSource postgres = postgres();
    Replica here = replica(postgres, "here");
    active(here, "beside");
    Renewal failed = started(here, renewal("beside", 1));
    here.renewals().fail(failed.id(), WHY, 1);
    Start start =
        beside(
            postgres,
            () -> here.renewals().start(renewal("beside", 1)),
            "update key_renewals set state = 1, error = null where id = " + failed.id());
    assertThat(start).isInstanceOf(Start.Refused.class);
  }

  @Test
  void a_renewal_that_starts_while_another_switches_the_epoch_is_refused() throws Exception {
    PGSimpleDataSource postgres = postgres();
    Replica here = replica(postgres, "here");
    active(here, "beside");
    started(here, renewal("beside", 1));
    Start start =
        beside(
            postgres,
            () -> here.renewals().start(renewal("beside", 1)),
            "update keys set epoch = 2 where name = 'keys/beside'",
            "update key_renewals set state = 2 where key_name = 'keys/beside'");
    assertThat(start).isInstanceOf(Start.Refused.class);
    assertThat(here.renewals().isRunning("keys/beside")).isFalse();
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_cancellation_is_seen_by_the_replica_that_works_on_the_renewal(Database database) {
    Replica here = database.apply("here");
    Replica other = database.apply("other");
    active(here, "cancel");
    Renewal renewal = started(here, renewal("cancel", 1));
    assertThat(here.renewals().cancelled()).isEmpty();
    assertThat(other.renewals().cancel(renewal.id())).isTrue();
    assertThat(here.renewals().cancelled()).extracting(Renewal::id).containsExactly(renewal.id());
    assertThat(other.renewals().cancelled()).isEmpty();
    here.renewals().fail(renewal.id(), WHY, 1);
    assertThat(other.renewals().cancel(renewal.id())).isFalse();
    assertThat(here.renewals().cancelled()).isEmpty();
    assertThat(here.renewals().findRequest("wallet", renewal.requestId()))
        .hasValueSatisfying(r -> assertThat(r.cancelled()).isTrue());
  }

  // Signings

  @ParameterizedTest
  @MethodSource("databases")
  void a_signing_is_claimed_once_and_keeps_its_first_end(Database database) {
    Replica here = database.apply("here");
    SigningRecord pending = signing();
    assertThat(here.signings().claimOnce(pending)).isEmpty();
    assertThat(here.signings().claimOnce(pending.trying(7))).contains(pending);
    SigningRecord signed = signed(pending, 1);
    assertThat(here.signings().finish(signed)).isEqualTo(signed);
    assertThat(here.signings().finish(pending.unknown(WHY, 9, NOW))).isEqualTo(signed);
    assertThat(here.signings().find(pending.id())).contains(signed);
    assertThat(here.signings().claimOnce(pending)).contains(signed);
    SigningRecord other = signing();
    here.signings().claimOnce(other);
    SigningRecord failed = other.unknown(WHY, 9, NOW);
    assertThat(here.signings().finish(failed)).isEqualTo(failed);
    assertThat(here.signings().find(other.id())).contains(failed);
  }

  @ParameterizedTest
  @MethodSource("databases")
  void the_end_of_a_signing_that_the_database_lost_is_stored_all_the_same(Database database) {
    Replica here = database.apply("here");
    SigningRecord signed = signed(signing(), 0);
    assertThat(here.signings().find(signed.id())).isEmpty();
    assertThat(here.signings().finish(signed)).isEqualTo(signed);
    assertThat(here.signings().find(signed.id())).contains(signed);
  }

  /** A replica that was suspended, say, and comes back while another one works on the request. */
  @ParameterizedTest
  @MethodSource("databases")
  void a_signing_fails_by_its_worker_alone_and_has_the_signature_that_anyone_found(
      Database database) {
    Replica late = database.apply("late-" + uuid());
    Replica here = database.apply("here-" + uuid());
    here.presence().seen();
    SigningRecord pending = signing();
    late.signings().claimOnce(pending);
    assertThat(here.signings().take(pending.id())).contains(pending);
    assertThat(late.signings().finish(pending.unknown(WHY, 9, NOW))).isEqualTo(pending);
    assertThat(here.signings().find(pending.id())).contains(pending);
    SigningRecord signed = signed(pending, 1);
    assertThat(late.signings().finish(signed)).isEqualTo(signed);
    assertThat(here.signings().finish(pending.unknown(WHY, 2, NOW))).isEqualTo(signed);
  }

  /** The database lost a request, and its requester has used the id for another one since. */
  @ParameterizedTest
  @MethodSource("databases")
  void a_signing_of_another_intent_under_the_same_id_is_not_ended(Database database) {
    Replica here = database.apply("here");
    SigningRecord lost = signing();
    SigningRecord other = withDigest(lost, ByteString.copyFrom(new byte[32]));
    here.signings().claimOnce(other);
    for (SigningRecord end : List.of(signed(lost, 1), lost.unknown(WHY, 1, NOW))) {
      assertThat(here.signings().finish(end)).isEqualTo(other);
    }
    assertThat(here.signings().settle(signed(lost, 1))).isEmpty();
    assertThat(here.signings().find(lost.id())).contains(other);
  }

  private static SigningRecord withDigest(SigningRecord signing, ByteString digest) {
    RequestHeader header = signing.header();
    return SigningRecord.pending(
        new RequestHeader(
            header.requester(),
            header.requestId(),
            digest,
            header.intent(),
            header.notAfter(),
            header.createdAt()),
        signing.key(),
        signing.scheme(),
        signing.payloadDigest(),
        signing.decoded());
  }

  @ParameterizedTest
  @MethodSource("databases")
  void signings_of_a_key_are_listed_from_the_newest_page_by_page(Database database) {
    Replica here = database.apply("here");
    String key = "keys/listed-" + uuid().substring(0, 8);
    List<SigningRecord> stored = new ArrayList<>();
    for (int i = 0; i < 7; i++) {
      // Two begin at every moment: then the id decides.
      stored.add(signing(key, NOW.plusSeconds(i / 2)));
      here.signings().claimOnce(stored.getLast());
    }
    here.signings().claimOnce(signing("keys/listed", NOW));
    SigningRecord ended = signed(stored.get(3), 1);
    here.signings().finish(ended);
    stored.set(3, ended);
    List<SigningRecord> all = new ArrayList<>();
    List<SigningRecord> page = here.signings().list(key, null, null, 3);
    while (!page.isEmpty()) {
      all.addAll(page);
      assertThat(page).hasSizeLessThanOrEqualTo(3);
      page = here.signings().list(key, null, place(page.getLast()), 3);
    }
    assertThat(all.stream().map(SigningRecord::id))
        .containsExactlyInAnyOrderElementsOf(stored.stream().map(SigningRecord::id).toList());
    assertThat(all)
        .isSortedAccordingTo(
            Comparator.comparing((SigningRecord signing) -> signing.header().createdAt())
                .reversed())
        .allMatch(signing -> signing.header().intent().equals(SignedIntent.getDefaultInstance()))
        .anyMatch(signing -> ended.result().equals(signing.result()));
    String requester = stored.getFirst().requester();
    assertThat(here.signings().list(key, Set.of("another", requester), null, 9)).hasSize(7);
    assertThat(here.signings().list(key, Set.of("another"), null, 9)).isEmpty();
    assertThat(here.signings().list(key, Set.of(), null, 9)).isEmpty();
    // A place is one whether or not its signing is there.
    SigningStore.Place between = new SigningStore.Place(NOW.plusSeconds(1), new UUID(0, 0));
    assertThat(here.signings().list(key, null, between, 9))
        .hasSize(2)
        .allMatch(signing -> signing.header().createdAt().equals(NOW));
  }

  private static SigningStore.Place place(SigningRecord signing) {
    return new SigningStore.Place(signing.header().createdAt(), signing.id());
  }

  // Work

  @ParameterizedTest
  @MethodSource("databases")
  void work_of_a_replica_that_is_there_is_nobody_elses(Database database) {
    Replica here = database.apply("here");
    Replica other = database.apply("other");
    here.presence().seen();
    other.presence().seen();
    KeyRecord key = stored(here, creation("work"));
    active(here, "work-renewed");
    Renewal renewal = started(here, renewal("work-renewed", 1));
    SigningRecord signing = signing();
    here.signings().claimOnce(signing);

    assertThat(other.keys().take(key.id())).isEmpty();
    assertThat(other.renewals().take(renewal.id())).isEmpty();
    assertThat(other.signings().take(signing.id())).isEmpty();
    assertThat(other.keys().takeAll(true)).doesNotContain(key);
    assertThat(other.renewals().takeAll(true)).doesNotContain(renewal);
    assertThat(other.signings().takeAll(true)).doesNotContain(signing.id());

    assertThat(here.keys().take(key.id())).contains(key);
    assertThat(here.renewals().take(renewal.id())).contains(renewal);
    assertThat(here.signings().take(signing.id())).contains(signing);
    assertThat(here.keys().takeAll(false)).doesNotContain(key);
    assertThat(here.renewals().takeAll(false)).doesNotContain(renewal);
    assertThat(here.signings().takeAll(false)).doesNotContain(signing.id());
    assertThat(here.keys().takeAll(true)).as("left by an earlier process").contains(key);
    assertThat(here.renewals().takeAll(true)).contains(renewal);
    assertThat(here.signings().takeAll(true)).contains(signing.id());
  }

  @ParameterizedTest
  @MethodSource("databases")
  void work_of_a_replica_that_has_left_goes_to_the_first_that_takes_it(Database database) {
    Replica leaving = database.apply("leaving");
    Replica here = database.apply("here");
    Replica other = database.apply("other");
    here.presence().seen();
    other.presence().seen();
    leaving.presence().seen();
    KeyRecord key = stored(leaving, creation("left"));
    SigningRecord signing = signing();
    leaving.signings().claimOnce(signing);
    SigningRecord ended = signing();
    leaving.signings().claimOnce(ended);
    leaving.signings().finish(signed(ended, 0));
    leaving.presence().leave();

    assertThat(here.keys().takeAll(false)).contains(key);
    assertThat(here.signings().takeAll(false)).contains(signing.id()).doesNotContain(ended.id());
    assertThat(other.keys().take(key.id())).isEmpty();
    assertThat(other.signings().take(signing.id())).isEmpty();
    assertThat(other.signings().take(ended.id())).isEmpty();
    assertThat(other.signings().take(UUID.randomUUID())).isEmpty();
  }

  /** It was suspended, say, and does not know how long. */
  @ParameterizedTest
  @MethodSource("forgetful")
  void work_of_a_replica_that_was_not_seen_for_long_is_free_and_stays_with_whoever_took_it(
      Database database) {
    Replica late = database.apply("late");
    Replica here = database.apply("here");
    late.presence().seen();
    SigningRecord signing = signing();
    late.signings().claimOnce(signing);
    assertThat(here.signings().take(signing.id())).as("it was seen just now").isEmpty();
    assertThat(here.signings().takeAll(false)).isEmpty();
    Awaitility.await()
        .atMost(SOON.multipliedBy(10))
        .until(() -> here.presence().seen() > 0 && here.signings().take(signing.id()).isPresent());
    assertThat(late.presence().seen()).as("it is there again, and so is the other").isEqualTo(2);
    assertThat(late.signings().take(signing.id())).isEmpty();
    assertThat(late.signings().takeAll(true)).isEmpty();
    assertThat(late.signings().finish(signing.unknown(WHY, 1, NOW))).isEqualTo(signing);
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_replica_counts_those_that_are_there(Database database) {
    Replica one = database.apply("count-one");
    Replica two = database.apply("count-two");
    int before = one.presence().seen();
    assertThat(two.presence().seen()).isEqualTo(before + 1);
    assertThat(one.presence().seen()).isEqualTo(before + 1);
    two.presence().leave();
    assertThat(one.presence().seen()).isEqualTo(before);
  }
}
