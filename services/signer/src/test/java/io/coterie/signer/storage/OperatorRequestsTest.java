package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.Installation;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.order.Hold;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.storage.OperatorRequests.Kind;
import io.coterie.signer.storage.OperatorRequests.Request;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The operator of a party asks its running process for something. */
class OperatorRequestsTest {
  private static final Instant BEGIN = Instant.parse("2026-11-26T08:00:00Z");

  private static final Pattern REQUEST =
      Pattern.compile("(hold|lift|fence|permit-trust|unfreeze|forget-key)-.*(?<!\\.refused)");

  @TempDir Path folder;
  private PartyStore store;
  private int sessions;

  @BeforeEach
  void open() {
    store = PartyStore.open(folder, "alpha", Clock.fixed(BEGIN, ZoneOffset.UTC), (_, _) -> {});
  }

  @AfterEach
  void close() {
    store.close();
  }

  private void restart() {
    store.close();
    open();
  }

  private void ask(Kind kind, String argument, String reason) throws IOException {
    new OperatorRequests(folder).ask(new Request(kind, argument, reason));
    store.shares().housekeep();
    Installation.until("it is done", this::isDone);
  }

  private boolean isDone() {
    try (var files = Files.list(folder)) {
      return files.noneMatch(file -> REQUEST.matcher(file.getFileName().toString()).matches());
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private List<AuditEvent> recorded(String action) {
    return store.audit().read(1, 100).stream()
        .map(AuditRecord::event)
        .filter(event -> event.action().equals(action))
        .toList();
  }

  private Outcome claim(Instant drawn) {
    byte[] session = new byte[32];
    session[0] = (byte) ++sessions;
    return store
        .claims()
        .claimOnce(
            new Claim(
                new SessionId(ByteString.copyFrom(session)),
                "wallet",
                RequestId.at(drawn),
                ByteString.copyFrom(new byte[32]),
                null,
                null,
                null,
                ByteString.EMPTY,
                MemoryLedger.COORDINATOR),
            AuditEvent.of("wallet", "order.accept", "ok", Map.of()))
        .toCompletableFuture()
        .join();
  }

  @Test
  void a_fence_is_moved_both_ways_and_not_to_what_is_forgotten() throws Exception {
    Instant later = BEGIN.plus(Duration.ofHours(1));
    store.claims().forgetRequests(Duration.ZERO);
    assertThat(claim(BEGIN)).isEqualTo(Outcome.CLAIMED);
    ask(Kind.FENCE, later.toString(), "the clock was behind");
    assertThat(claim(BEGIN.plusSeconds(60))).isEqualTo(Outcome.FENCED);
    assertThat(claim(later)).isEqualTo(Outcome.CLAIMED);
    restart();
    assertThat(claim(BEGIN.plusSeconds(60))).as("after a start").isEqualTo(Outcome.FENCED);

    ask(Kind.FENCE, BEGIN.toString(), "no, it was right");
    assertThat(claim(BEGIN.plusSeconds(60))).isEqualTo(Outcome.CLAIMED);
    assertThat(claim(BEGIN.minusMillis(1))).isEqualTo(Outcome.FENCED);

    String forgotten = BEGIN.minus(Duration.ofDays(2)).minusMillis(1).toString();
    ask(Kind.FENCE, forgotten, "let all in");
    assertThat(claim(BEGIN.minusMillis(1))).isEqualTo(Outcome.FENCED);

    assertThat(recorded("fence.move"))
        .containsExactly(
            moved(
                "ok",
                BEGIN.minus(Duration.ofDays(2)).toString(),
                later.toString(),
                "the clock was behind"),
            moved("ok", later.toString(), BEGIN.toString(), "no, it was right"),
            moved("refused", BEGIN.toString(), forgotten, "let all in"));
  }

  private static AuditEvent moved(String outcome, String from, String to, String reason) {
    return AuditEvent.of(
        "operator", "fence.move", outcome, Map.of("from", from, "to", to, "reason", reason));
  }

  @Test
  void holds_are_kept_with_their_reasons_until_they_are_lifted() throws Exception {
    ask(Kind.HOLD, "keys/hot", "an odd withdrawal");
    ask(Kind.HOLD, "requesters/wallet", "its key was stolen");
    ask(Kind.HOLD, "keys/hot", "two odd withdrawals");
    Hold hot =
        new Hold(new Hold.Scope("keys/hot"), Hold.Cause.OPERATOR, "two odd withdrawals", BEGIN);
    Hold wallet =
        new Hold(
            new Hold.Scope("requesters/wallet"), Hold.Cause.OPERATOR, "its key was stolen", BEGIN);
    assertThat(store.holds().all()).containsExactly(hot, wallet);
    assertThat(PartyStore.holds(folder)).containsExactly(hot, wallet);
    restart();
    assertThat(store.holds().all()).containsExactly(hot, wallet);

    ask(Kind.LIFT, "keys/hot", "explained");
    ask(Kind.LIFT, "installation", "was none");
    assertThat(store.holds().all()).containsExactly(wallet);
    restart();
    assertThat(store.holds().all()).containsExactly(wallet);
    assertThat(recorded("hold.set"))
        .extracting(event -> event.fields().get("scope") + ": " + event.fields().get("reason"))
        .containsExactly(
            "keys/hot: an odd withdrawal",
            "requesters/wallet: its key was stolen",
            "keys/hot: two odd withdrawals");
    assertThat(recorded("hold.lift"))
        .containsExactly(
            AuditEvent.of(
                "operator", "hold.lift", "ok", Map.of("scope", "keys/hot", "reason", "explained")));
  }

  @Test
  void a_hold_that_cannot_be_written_is_in_force_and_written_when_the_disk_takes_it()
      throws Exception {
    store.close();
    sql("CREATE TRIGGER full BEFORE INSERT ON hold BEGIN SELECT RAISE(FAIL, 'full'); END");
    open();
    new OperatorRequests(folder).ask(new Request(Kind.HOLD, "keys/hot", "odd"));
    store.shares().housekeep();
    Installation.until("it is held", () -> !store.holds().all().isEmpty());
    Installation.until("it failed", () -> claim(BEGIN) == Outcome.CLAIMED);
    assertThat(PartyStore.holds(folder)).isEmpty();
    assertThat(isDone()).as("the request stays").isFalse();

    store.close();
    sql("DROP TRIGGER full");
    open();
    assertThat(store.holds().all()).isEmpty();
    store.shares().housekeep();
    Installation.until("it is written", this::isDone);
    restart();
    assertThat(store.holds().all()).hasSize(1);
  }

  /**
   * Nobody knows which holds were set after the backup: so all is held until that was looked at.
   */
  @Test
  void
      a_restored_store_has_the_holds_of_its_backup_and_holds_everything_until_its_operator_lifts_that()
          throws Exception {
    ask(Kind.HOLD, "keys/hot", "odd");
    Path restored = restored();
    assertThat(PartyStore.holds(restored))
        .extracting(Hold::text)
        .containsExactly(
            "installation is on hold since 2026-11-26T08:00:00Z: restored from a backup: holds that"
                + " were set or lifted since are unknown; lifted by the operator of this party,"
                + " with 'lift'",
            "keys/hot is on hold since 2026-11-26T08:00:00Z: odd; lifted by the operator of this"
                + " party, with 'lift'");
  }

  @Test
  void a_hold_of_everything_in_the_backup_is_told_with_its_reason() throws Exception {
    ask(Kind.HOLD, "installation", "x".repeat(250));
    String reason = PartyStore.holds(restored()).getFirst().reason();
    assertThat(reason).hasSize(256).contains("unknown; held before: xxx");
  }

  private Path restored() throws IOException {
    Files.write(folder.resolve(Backup.DATA_KEY), new byte[] {1});
    ByteArrayOutputStream backup = new ByteArrayOutputStream();
    Backup.write(folder, backup);
    Path empty = folder.resolve("empty");
    Backup.restore(new ByteArrayInputStream(backup.toByteArray()), empty);
    return empty;
  }

  /** A trust file that was permitted may have come and gone since the backup. */
  @Test
  void a_restored_store_has_no_permissions() throws Exception {
    ask(Kind.PERMIT_TRUST, "ab".repeat(32), "the root keys were lost");
    assertThat(permissions(folder)).isOne();
    assertThat(permissions(restored())).isZero();
  }

  private static long permissions(Path folder) throws SQLException {
    try (Database file = Database.reader(folder.resolve(PartyStore.FILE))) {
      return file.count("SELECT count(*) FROM permitted_trust");
    }
  }

  private static KeyShare share(int session, String publicKey) {
    return new KeyShare(
        "keys/hot",
        1,
        Scheme.SCHEME_ED25519,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2),
        List.of(1, 2),
        KeyPublic.newBuilder()
            .setKeyId("keys/hot")
            .setEpoch(1)
            .setPublicKey(ByteString.copyFromUtf8(publicKey))
            .build(),
        ByteString.copyFromUtf8("sealed of " + publicKey),
        new KeyShare.Origin(id(session), "coordinator", "wallet", "request", id(session).bytes()),
        null);
  }

  private static SessionId id(int session) {
    byte[] bytes = new byte[32];
    bytes[0] = (byte) session;
    return new SessionId(ByteString.copyFrom(bytes));
  }

  private static String named(KeyShare share) {
    return share.key() + " " + KeyFingerprint.text(KeyFingerprint.of(share.keyPublic()));
  }

  private boolean isInFile(KeyShare share) throws IOException {
    boolean found = false;
    for (String file : List.of(PartyStore.FILE, PartyStore.FILE + "-wal")) {
      Path path = folder.resolve(file);
      found |=
          Files.exists(path)
              && new String(Files.readAllBytes(path), StandardCharsets.ISO_8859_1)
                  .contains(share.sealed().toStringUtf8());
    }
    return found;
  }

  /** Nothing that was signed or refused before comes back by it. */
  @Test
  void shares_of_the_named_key_are_destroyed_and_nothing_else_of_the_name() throws Exception {
    assertThat(claim(BEGIN)).isEqualTo(Outcome.CLAIMED);
    KeyShare older = share(1, "one key");
    KeyShare newer = share(2, "another key");
    AuditEvent made = AuditEvent.of("wallet", "session.complete", "ok", Map.of());
    for (KeyShare share : List.of(older, newer)) {
      assertThat(store.shares().storeProvisional(share, made).toCompletableFuture().join())
          .isTrue();
    }
    store
        .shares()
        .exclude(
            new KeyShareStore.Exclusion(
                "keys/hot", Set.of(0, 2), id(9), id(2), 1, ByteString.EMPTY))
        .toCompletableFuture()
        .join();

    ask(Kind.FORGET_KEY, named(share(3, "a third key")), "a mistake");
    assertThat(store.shares().find("keys/hot")).contains(newer);
    ask(Kind.FORGET_KEY, named(newer), "never used");
    assertThat(store.shares().find("keys/hot")).isEmpty();
    assertThat(isInFile(newer)).isFalse();
    assertThat(isInFile(older)).as("the one before it").isTrue();
    ask(Kind.FORGET_KEY, named(older), "nor was this");
    assertThat(isInFile(older)).isFalse();
    restart();
    assertThat(store.shares().undecided()).isEmpty();
    assertThat(store.shares().excluded("keys/hot")).containsExactlyInAnyOrder(0, 2);
    sessions = 0;
    assertThat(claim(BEGIN)).isEqualTo(Outcome.SESSION_REPLAYED);
    assertThat(recorded("key.forget"))
        .extracting(event -> event.outcome() + " " + event.fields().get("shares"))
        .containsExactly("refused ", "ok 1 provisional", "ok 1 superseded");
  }

  private void sql(String statement) throws Exception {
    try (Connection raw =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        var run = raw.createStatement()) {
      run.executeUpdate(statement);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "FENCE,now,why,is no time such as",
    "PERMIT_TRUST,abc,why,is no digest",
    "HOLD,keys/*,why,is not installation",
    "HOLD,everything,why,is not installation",
    "LIFT,requesters/,why,is not installation",
    "FORGET_KEY,keys/hot,why,is no whole fingerprint",
    "FORGET_KEY,keys/hot 0123456789abcdef,why,is no whole fingerprint",
    "FORGET_KEY,hot 0123456789abcdef0123456789abcdef,why,is not keys/KEY",
    "FORGET_KEY,keys/hot 0123456789abcdef0123456789abcdef,'',the reason is not one line",
    "HOLD,keys/hot,'',the reason is not one line",
    "HOLD,keys/hot,'a\nb',the reason is not one line",
  })
  void a_request_that_means_nothing_is_refused_before_it_is_sent(
      Kind kind, String argument, String reason, String problem) {
    assertThatThrownBy(() -> new Request(kind, argument, reason))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(problem);
  }

  @Test
  void a_file_that_is_no_request_or_cannot_be_read_is_set_aside_and_in_nobodys_way()
      throws Exception {
    String hot = "6b6579732f686f74";
    Files.writeString(folder.resolve("fence-zz-0000000000000001"), "no hexadecimal");
    Files.writeString(folder.resolve("hold-" + hot), "without a number");
    Files.writeString(folder.resolve("hold-" + hot + "2a-0000000000000001"), "a pattern");
    Files.writeString(folder.resolve("lift-" + hot + "-0000000000000001"), "x".repeat(2000));
    Path unreadable = folder.resolve("hold-" + hot + "-0000000000000002");
    Files.createSymbolicLink(unreadable, Path.of("missing"));
    ask(Kind.HOLD, "keys/cold", "why");
    assertThat(store.holds().all()).extracting(h -> h.scope().text()).containsExactly("keys/cold");
    assertThat(Files.isSymbolicLink(unreadable)).isFalse();
    try (var files = Files.list(folder)) {
      assertThat(files.filter(file -> file.toString().endsWith(".refused"))).hasSize(5);
    }
  }

  @Test
  void requests_are_done_in_the_order_in_which_they_were_made() throws Exception {
    OperatorRequests requests = new OperatorRequests(folder);
    for (int time = 1; time <= 20; time++) {
      requests.ask(new Request(Kind.HOLD, "keys/hot", "time " + time));
      requests.ask(new Request(Kind.LIFT, "keys/hot", "time " + time));
    }
    requests.ask(new Request(Kind.HOLD, "keys/hot", "the last"));
    requests.ask(new Request(Kind.HOLD, "keys/cold", "another"));
    Installation.until(
        "all is done",
        () -> {
          store.shares().housekeep();
          return isDone();
        });
    assertThat(store.holds().all())
        .extracting(Hold::reason)
        .containsExactlyInAnyOrder("the last", "another");
    restart();
    assertThat(store.holds().all()).hasSize(2);
    List<String> reasons =
        store.audit().read(1, 100).stream()
            .map(AuditRecord::event)
            .filter(event -> "keys/hot".equals(event.fields().get("scope")))
            .map(event -> event.action() + " " + event.fields().get("reason"))
            .toList();
    List<String> made = new ArrayList<>();
    for (int time = 1; time <= 20; time++) {
      made.add("hold.set time " + time);
      made.add("hold.lift time " + time);
    }
    made.add("hold.set the last");
    assertThat(reasons).isEqualTo(made);
  }

  @Test
  void a_request_that_is_not_done_keeps_back_later_ones_about_the_same_and_no_others()
      throws Exception {
    OperatorRequests requests = new OperatorRequests(folder);
    requests.ask(new Request(Kind.HOLD, "keys/hot", "first"));
    requests.ask(new Request(Kind.LIFT, "keys/hot", "second"));
    requests.ask(new Request(Kind.HOLD, "keys/cold", "another"));
    List<String> asked = new ArrayList<>();
    CompletableFuture<String> failing = new CompletableFuture<>();
    requests.perform(
        request -> {
          asked.add(request.reason());
          return request.reason().equals("first")
              ? failing
              : CompletableFuture.completedFuture("done");
        });
    requests.perform(request -> failedNow(asked, request));
    assertThat(asked).containsExactly("first", "another");
    failing.completeExceptionally(new IllegalStateException("full"));
    requests.perform(
        request -> {
          asked.add(request.reason());
          return CompletableFuture.completedFuture("done");
        });
    requests.perform(
        request -> {
          asked.add(request.reason());
          return CompletableFuture.completedFuture("done");
        });
    assertThat(asked).containsExactly("first", "another", "first", "second");
    assertThat(isDone()).isTrue();
  }

  /** Each looks through the folder while requests that it has read are being done by the other. */
  @Test
  void a_request_is_done_once_however_many_look_at_once() throws Exception {
    OperatorRequests requests = new OperatorRequests(folder);
    List<String> made = new ArrayList<>();
    for (int number = 1; number <= 200; number++) {
      made.add("time " + number);
      requests.ask(new Request(Kind.HOLD, "keys/k" + number, "time " + number));
    }
    List<String> done = new CopyOnWriteArrayList<>();
    AtomicInteger failures = new AtomicInteger();
    Runnable looking =
        () -> {
          while (done.size() < made.size()) {
            requests.perform(
                request -> {
                  done.add(request.reason());
                  return CompletableFuture.completedFuture("done");
                });
          }
        };
    List<Thread> lookers = new ArrayList<>();
    for (int thread = 0; thread < 4; thread++) {
      Thread looker = Thread.ofPlatform().unstarted(looking);
      looker.setUncaughtExceptionHandler((_, _) -> failures.incrementAndGet());
      looker.start();
      lookers.add(looker);
    }
    for (Thread looker : lookers) {
      looker.join();
    }
    assertThat(failures).hasValue(0);
    assertThat(done).containsExactlyInAnyOrderElementsOf(made);
    assertThat(isDone()).isTrue();
  }

  private static CompletableFuture<String> failedNow(List<String> asked, Request request) {
    asked.add("too early: " + request.reason());
    return new CompletableFuture<>();
  }
}
