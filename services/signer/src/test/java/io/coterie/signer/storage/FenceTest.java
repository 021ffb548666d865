package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.claim.OutsideCounter;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A store that went back claims no request of before. */
class FenceTest {
  private static final Instant BEGIN = Instant.parse("2026-11-26T08:00:00Z");

  @TempDir Path folder;

  private PartyStore store;
  private int sessions;

  @AfterEach
  void close() {
    store.close();
  }

  private PartyStore open(Path data, Instant time) {
    return PartyStore.open(data, "alpha", Clock.fixed(time, ZoneOffset.UTC), (_, _) -> {});
  }

  private PartyStore open(Path data, Instant time, OutsideCounter counter) {
    return PartyStore.open(
        data,
        "alpha",
        Clock.fixed(time, ZoneOffset.UTC),
        (_, _) -> {},
        SqliteRecords.RETENTION,
        0,
        counter);
  }

  private static ByteString bytes32(int seed) {
    byte[] bytes = new byte[32];
    bytes[0] = (byte) seed;
    return ByteString.copyFrom(bytes);
  }

  private Outcome claim(String requestId, int digest) {
    sessions++;
    Claim claim =
        new Claim(
            new SessionId(bytes32(sessions)),
            "wallet",
            requestId,
            bytes32(digest),
            null,
            null,
            null,
            ByteString.EMPTY,
            MemoryLedger.COORDINATOR);
    return store
        .claims()
        .claimOnce(claim, AuditEvent.of("wallet", "order.accept", "ok", Map.of()))
        .toCompletableFuture()
        .join();
  }

  private static LedgerHead head(LedgerPosition position, Instant signed) {
    return new LedgerHead("test", 1, position, signed.toEpochMilli());
  }

  private boolean declined(int session, @Nullable String requestId) {
    return store
        .claims()
        .decline(new SessionId(bytes32(session)), MemoryLedger.COORDINATOR, requestId)
        .toCompletableFuture()
        .join();
  }

  @Test
  void a_restored_store_claims_no_request_of_before_it_was_opened() throws IOException {
    Path data = folder.resolve("alpha");
    store = open(data, BEGIN);
    String known = RequestId.at(BEGIN);
    assertThat(claim(known, 1)).isEqualTo(Outcome.CLAIMED);
    Files.write(data.resolve(Backup.DATA_KEY), new byte[] {1});
    ByteArrayOutputStream backup = new ByteArrayOutputStream();
    Backup.write(data, backup);
    String forgotten = RequestId.at(BEGIN.plusSeconds(1));
    assertThat(claim(forgotten, 1)).isEqualTo(Outcome.CLAIMED);
    store.close();

    Path restored = folder.resolve("restored");
    Backup.restore(new ByteArrayInputStream(backup.toByteArray()), restored);
    Instant opened = BEGIN.plus(Duration.ofHours(1));
    store = open(restored, opened);
    assertThat(claim(forgotten, 2)).isEqualTo(Outcome.FENCED);
    assertThat(claim(known, 1)).as("its session may be forgotten").isEqualTo(Outcome.FENCED);
    assertThat(claim(RequestId.at(opened.minusMillis(1)), 1)).isEqualTo(Outcome.FENCED);
    assertThat(claim(RequestId.at(opened), 1)).isEqualTo(Outcome.CLAIMED);

    // Its contribution to a session of before would count as one that never was.
    assertThat(declined(100, forgotten)).isFalse();
    assertThat(declined(100, null)).as("again, and nobody knows of what").isFalse();
    assertThat(declined(101, RequestId.at(opened))).isTrue();

    store.close();
    store = open(restored, opened.plusSeconds(60));
    assertThat(claim(forgotten, 2)).as("after another start").isEqualTo(Outcome.FENCED);
    assertThat(claim(RequestId.at(opened.plusSeconds(1)), 1)).isEqualTo(Outcome.CLAIMED);
  }

  @Test
  void a_store_that_is_shown_that_it_went_back_claims_no_request_of_before() {
    Path data = folder.resolve("alpha");
    store = open(data, BEGIN);
    String before = RequestId.at(BEGIN.minusSeconds(1));
    assertThat(claim(before, 1)).isEqualTo(Outcome.CLAIMED);
    LedgerPosition now = store.claims().position();
    store.shownClaims().wentBack(head(now, BEGIN)).toCompletableFuture().join();
    assertThat(claim(before, 1)).as("it knows of that").isEqualTo(Outcome.CLAIMED);

    LedgerPosition later = now.next(bytes32(9).toByteArray()).claimed(bytes32(8));
    store.shownClaims().wentBack(head(later, BEGIN)).toCompletableFuture().join();
    assertThat(claim(before, 1)).isEqualTo(Outcome.FENCED);
    String after = RequestId.at(BEGIN);
    assertThat(claim(after, 1)).isEqualTo(Outcome.CLAIMED);

    store.close();
    store = open(data, BEGIN.plusSeconds(60));
    assertThat(claim(before, 1)).as("after a start").isEqualTo(Outcome.FENCED);
    assertThat(claim(after, 2)).isEqualTo(Outcome.REQUEST_ID_REUSED);
  }

  /** The clock was set back since: the ids of what was forgotten lie after this start. */
  @Test
  void the_fence_lies_where_the_forgotten_head_was_signed_if_that_is_later() {
    store = open(folder.resolve("alpha"), BEGIN);
    LedgerPosition later = store.claims().position().next(bytes32(9).toByteArray());
    Instant signed = BEGIN.plusSeconds(600);
    store.shownClaims().wentBack(head(later, signed)).toCompletableFuture().join();
    assertThat(claim(RequestId.at(signed.minusMillis(1)), 1)).isEqualTo(Outcome.FENCED);
    assertThat(claim(RequestId.at(signed), 1)).isEqualTo(Outcome.CLAIMED);
  }

  /**
   * One that was restored on a machine whose clock is behind, or that heard an early head first.
   */
  @Test
  void a_later_head_of_an_earlier_log_moves_the_fence_forward() {
    Path data = folder.resolve("alpha");
    store = open(data, BEGIN);
    LedgerPosition early = store.claims().position().next(bytes32(9).toByteArray());
    LedgerPosition late = early.claimed(bytes32(8));
    store.shownClaims().wentBack(head(early, BEGIN)).toCompletableFuture().join();
    assertThat(store.claims().position().log().number()).isEqualTo(2);
    assertThat(store.claims().remembers(late)).as("it starts no other log").isTrue();
    assertThat(store.claims().recalls(late)).isFalse();
    Instant signed = BEGIN.plusSeconds(3600);
    store.shownClaims().forgotten(head(late, signed)).toCompletableFuture().join();
    assertThat(store.claims().position().log().number()).isEqualTo(2);
    assertThat(claim(RequestId.at(signed.minusMillis(1)), 1)).isEqualTo(Outcome.FENCED);
    assertThat(claim(RequestId.at(signed), 1)).isEqualTo(Outcome.CLAIMED);
    store.shownClaims().forgotten(head(early, BEGIN)).toCompletableFuture().join();
    assertThat(claim(RequestId.at(signed.minusMillis(1)), 1)).isEqualTo(Outcome.FENCED);
  }

  /** All parties were put back together, say, and nobody has anything to tell. */
  @Test
  void a_store_with_fewer_claims_than_the_counter_outside_is_fenced() throws IOException {
    Path data = folder.resolve("alpha");
    Path volume = Files.createDirectory(folder.resolve("elsewhere"));
    OutsideCounter counter = new FileCounter(volume.resolve("alpha"));
    store = open(data, BEGIN, counter);
    String known = RequestId.at(BEGIN);
    assertThat(claim(known, 1)).isEqualTo(Outcome.CLAIMED);
    store.close();
    assertThat(counter.read()).isEqualTo(1);
    store = open(data, BEGIN.plusSeconds(1), counter);
    assertThat(claim(known, 1)).as("nothing is missing").isEqualTo(Outcome.CLAIMED);
    store.close();

    Path copy = folder.resolve("copy");
    PartyStore.createFolder(copy);
    try (Stream<Path> files = Files.list(data)) {
      for (Path file : files.filter(f -> !f.toString().matches(".*-shm|.*[.]lock")).toList()) {
        Files.copy(file, copy.resolve(file.getFileName()));
      }
    }
    store = open(data, BEGIN.plusSeconds(2), counter);
    String forgotten = RequestId.at(BEGIN.plusSeconds(2));
    assertThat(claim(forgotten, 1)).isEqualTo(Outcome.CLAIMED);
    store.claims().noteOutside();
    long noted = counter.read();
    store.close();

    Instant opened = BEGIN.plusSeconds(60);
    store = open(copy, opened, counter);
    assertThat(claim(forgotten, 2)).isEqualTo(Outcome.FENCED);
    assertThat(claim(RequestId.at(opened), 1)).isEqualTo(Outcome.CLAIMED);
    LedgerPosition anew = store.claims().position();
    assertThat(anew.log().number()).isEqualTo(2);
    assertThat(anew.base()).as("the counter never stands above it").isEqualTo(noted);
    store.close();
    store = open(copy, opened.plusSeconds(60), counter);
    assertThat(store.claims().position().log()).as("noticed once").isEqualTo(anew.log());
    assertThat(claim(RequestId.at(opened), 1)).isEqualTo(Outcome.CLAIMED);
  }

  @Test
  void without_the_counter_that_it_is_to_have_a_store_is_not_opened() throws IOException {
    Path volume = folder.resolve("elsewhere");
    OutsideCounter counter = new FileCounter(volume.resolve("alpha"));
    store = open(folder.resolve("bravo"), BEGIN);
    assertThatThrownBy(() -> open(folder.resolve("alpha"), BEGIN, counter))
        .isInstanceOf(StoreException.class)
        .hasRootCauseMessage(volume + " is no folder");
    Files.createDirectory(volume);
    for (String bad :
        List.of("", "x", "-1", "9".repeat(30), "" + Long.MAX_VALUE, "9007199254740993")) {
      Files.writeString(volume.resolve("alpha"), bad);
      assertThatThrownBy(() -> open(folder.resolve("alpha"), BEGIN, counter))
          .as(bad)
          .isInstanceOf(StoreException.class);
    }
  }

  /** It tries again with the next look, and says so meanwhile. */
  @Test
  void a_counter_that_does_not_follow_is_reported_until_it_does() throws IOException {
    Path volume = Files.createDirectory(folder.resolve("elsewhere"));
    OutsideCounter counter = new FileCounter(volume.resolve("alpha"));
    store = open(folder.resolve("alpha"), BEGIN, counter);
    assertThat(claim(RequestId.at(BEGIN), 1)).isEqualTo(Outcome.CLAIMED);
    Files.delete(volume);
    store.claims().noteOutside();
    assertThat(store.counterProblem()).hasValueSatisfying(p -> assertThat(p).contains("no folder"));
    Files.createDirectory(volume);
    store.claims().noteOutside();
    assertThat(store.counterProblem()).isEmpty();
    assertThat(counter.read()).isEqualTo(1);
  }

  @Test
  void an_ordinary_start_fences_nothing() {
    Path data = folder.resolve("alpha");
    store = open(data, BEGIN);
    String before = RequestId.at(BEGIN.minusSeconds(1));
    assertThat(claim(before, 1)).isEqualTo(Outcome.CLAIMED);
    for (int start = 1; start <= 20; start++) {
      store.close();
      store = open(data, BEGIN.plusSeconds(start));
      assertThat(claim(before, 1)).isEqualTo(Outcome.CLAIMED);
    }
  }
}
