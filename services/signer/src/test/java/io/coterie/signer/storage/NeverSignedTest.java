package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Never;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** That a request is never signed and that it is claimed exclude each other, on disk. */
class NeverSignedTest {
  private static final Instant NOW = Instant.parse("2026-11-26T08:00:00Z");
  private static final String ID = RequestId.at(NOW);
  private static final ByteString CANCEL = ByteString.copyFromUtf8("the signed cancel intent");

  @TempDir Path folder;
  private PartyStore store;
  private int sessions;

  @BeforeEach
  void open() {
    open(NOW);
  }

  private void open(Instant time) {
    store = PartyStore.open(folder, "alpha", Clock.fixed(time, ZoneOffset.UTC), (_, _) -> {});
  }

  @AfterEach
  void close() {
    store.close();
  }

  private static ByteString bytes32(int number) {
    return ByteString.copyFrom(ByteBuffer.allocate(32).putInt(number).rewind());
  }

  private static <T> T get(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private CompletionStage<Outcome> claiming(String requester, String id, int digest) {
    sessions++;
    return store
        .claims()
        .claimOnce(
            new Claim(
                new SessionId(bytes32(sessions)),
                requester,
                id,
                bytes32(digest),
                null,
                null,
                null,
                ByteString.EMPTY,
                "coordinators/c"),
            AuditEvent.of("wallet", "order.accept", "ok", Map.of()));
  }

  private Outcome claim(int digest) {
    return get(claiming("wallet", ID, digest));
  }

  private Outcome bind(int session, @Nullable Integer instead) {
    SessionId id = new SessionId(bytes32(session));
    return get(
        store
            .claims()
            .claimOnce(
                new Claim(
                    id,
                    "wallet",
                    ID,
                    bytes32(1),
                    new Binding(
                        "wallet",
                        ID,
                        id,
                        ByteString.copyFromUtf8("order"),
                        ByteString.EMPTY,
                        NOW.plusSeconds(60)),
                    instead == null ? null : new SessionId(bytes32(instead)),
                    null,
                    ByteString.EMPTY,
                    "coordinators/c"),
                AuditEvent.of("wallet", "order.accept", "ok", Map.of())));
  }

  private CompletionStage<Never> saying(String requester, String id, @Nullable Integer over) {
    return store
        .claims()
        .never(
            requester,
            id,
            over == null ? null : new SessionId(bytes32(over)),
            CANCEL,
            bytes32(99),
            AuditEvent.of(requester, "receipt.give", "never", Map.of("request_id", id)));
  }

  private Never never(@Nullable Integer over) {
    return get(saying("wallet", ID, over));
  }

  private long audited() {
    return store.audit().read(1, 1000).stream()
        .filter(record -> record.event().action().equals("receipt.give"))
        .count();
  }

  @Test
  void a_request_that_is_never_signed_is_claimed_for_no_intent() {
    assertThat(never(null)).isEqualTo(new Never.Said(true));
    assertThat(never(null)).as("said again").isEqualTo(new Never.Said(false));
    for (int digest : new int[] {1, 2, 99}) {
      assertThat(claim(digest)).isEqualTo(Outcome.NEVER);
    }
    close();
    open(NOW.plusSeconds(60));
    assertThat(claim(1)).as("after a start").isEqualTo(Outcome.NEVER);
    assertThat(never(null)).isEqualTo(new Never.Said(false));
    assertThat(get(claiming("keeper", ID, 1))).as("another requester").isEqualTo(Outcome.CLAIMED);
    assertThat(get(claiming("wallet", RequestId.at(NOW), 1))).isEqualTo(Outcome.CLAIMED);
  }

  @Test
  void a_session_that_was_declined_and_comes_again_claims_no_request() {
    assertThat(get(store.claims().decline(new SessionId(bytes32(1)), "coordinators/c", ID)))
        .isTrue();
    assertThat(claim(1)).isEqualTo(Outcome.SESSION_REPLAYED);
    assertThat(never(null)).isEqualTo(new Never.Said(true));
  }

  @Test
  void a_request_that_was_claimed_gets_no_such_word() {
    assertThat(claim(1)).isEqualTo(Outcome.CLAIMED);
    assertThat(never(null)).isEqualTo(new Never.Claimed(bytes32(1)));
    assertThat(never(1)).as("it is bound to no session").isEqualTo(new Never.Claimed(bytes32(1)));
    close();
    open(NOW.plusSeconds(60));
    assertThat(never(null)).as("after a start").isEqualTo(new Never.Claimed(bytes32(1)));
    assertThat(claim(1)).as("it can be signed as before").isEqualTo(Outcome.CLAIMED);
    assertThat(audited()).isZero();
  }

  @Test
  void a_claim_whose_last_session_is_known_to_be_over_gives_way() {
    assertThat(bind(11, null)).isEqualTo(Outcome.CLAIMED);
    assertThat(never(12)).as("another session").isEqualTo(new Never.Claimed(bytes32(1)));
    assertThat(bind(12, 11)).isEqualTo(Outcome.CLAIMED);
    assertThat(never(11)).as("a newer one runs").isEqualTo(new Never.Claimed(bytes32(1)));
    assertThat(never(12)).isEqualTo(new Never.Said(true));
    assertThat(store.claims().bindings(10)).isEmpty();
    assertThat(bind(13, 12)).isEqualTo(Outcome.NEVER);
    assertThat(bind(14, null)).isEqualTo(Outcome.NEVER);
  }

  @Test
  void of_a_claim_and_the_word_at_the_same_time_one_is_true() {
    List<CompletionStage<Outcome>> claims = new ArrayList<>();
    List<CompletionStage<Never>> words = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      String id = RequestId.at(NOW);
      if (i % 2 == 0) {
        words.add(saying("wallet", id, null));
        claims.add(claiming("wallet", id, i));
      } else {
        claims.add(claiming("wallet", id, i));
        words.add(saying("wallet", id, null));
      }
    }
    for (int i = 0; i < claims.size(); i++) {
      boolean claimed = get(claims.get(i)) == Outcome.CLAIMED;
      boolean said = get(words.get(i)) instanceof Never.Said;
      assertThat(claimed).as("request %d", i).isNotEqualTo(said);
    }
  }

  @Test
  void a_store_that_may_have_forgotten_the_claim_says_nothing() {
    assertThat(claim(1)).isEqualTo(Outcome.CLAIMED);
    close();
    open(NOW.plus(Duration.ofDays(3)));
    for (int day = 0; day < 3; day++) {
      store.claims().forgetRequests(Duration.ofDays(1));
    }
    assertThat(never(null)).isEqualTo(new Never.Forgotten());
    assertThat(claim(1)).isEqualTo(Outcome.FENCED);
  }

  @Test
  void a_store_that_is_younger_than_the_request_says_nothing_about_it() {
    String before = RequestId.at(NOW.minusMillis(1));
    assertThat(get(saying("wallet", before, null))).isEqualTo(new Never.Forgotten());
    close();
    open(NOW.plusSeconds(60));
    assertThat(get(saying("wallet", before, null))).isEqualTo(new Never.Forgotten());
    assertThat(get(saying("wallet", RequestId.at(NOW.plusMillis(1)), null)))
        .isEqualTo(new Never.Said(true));
    assertThat(get(claiming("wallet", before, 1))).as("it signs").isEqualTo(Outcome.CLAIMED);
  }

  @Test
  void the_word_is_audited_once_and_counts_as_disk_of_its_requester() {
    long nobody = store.claims().room().keptBytes().getOrDefault(ClaimLedger.NOBODY, 0L);
    never(null);
    never(null);
    get(saying("keeper", ID, null));
    assertThat(audited()).isEqualTo(2);
    Map<String, Long> kept = store.claims().room().keptBytes();
    assertThat(kept.get("keeper")).as("request and audit record").isGreaterThan(400);
    assertThat(kept.getOrDefault(ClaimLedger.NOBODY, 0L)).isEqualTo(nobody);
  }
}
