package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Map;
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
    store.shownClaims().wentBack(now).toCompletableFuture().join();
    assertThat(claim(before, 1)).as("it knows of that").isEqualTo(Outcome.CLAIMED);

    LedgerPosition later =
        new LedgerPosition(now.starts() + 1, bytes32(9), now.base() + 5, now.claims() + 7);
    store.shownClaims().wentBack(later).toCompletableFuture().join();
    assertThat(claim(before, 1)).isEqualTo(Outcome.FENCED);
    String after = RequestId.at(BEGIN);
    assertThat(claim(after, 1)).isEqualTo(Outcome.CLAIMED);

    store.close();
    store = open(data, BEGIN.plusSeconds(60));
    assertThat(claim(before, 1)).as("after a start").isEqualTo(Outcome.FENCED);
    assertThat(claim(after, 2)).isEqualTo(Outcome.REQUEST_ID_REUSED);
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
