package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Multiplication;
import io.coterie.signer.claim.ClaimLedger.Never;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.claim.MemoryShownClaims;
import io.coterie.signer.claim.ShownClaims;
import io.coterie.signer.claim.ShownClaims.Shown;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyShareStore.Exclusion;
import io.coterie.signer.share.MemoryShares;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The contracts of the party's ledgers, for its SQLite file and for those in memory. */
class StoreContractTest {
  private static final String KEY = "keys/a";
  private static final String MULTIPLYING = "keys/b";
  private static final Instant NOW = Instant.now().truncatedTo(ChronoUnit.MILLIS);
  private static final Certificate PROOF =
      new Certificate(List.of(ByteString.copyFrom(new byte[Certificate.SIGNATURE_BYTES])));

  @Nested
  class OnDisk extends Contract {
    @TempDir Path folder;
    private @Nullable PartyStore store;

    @BeforeEach
    void open() {
      PartyStore opened = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {});
      store = opened;
      claims = opened.claims();
      shares = opened.shares();
      shown = opened.shownClaims();
    }

    @AfterEach
    void close() {
      if (store != null) {
        store.close();
      }
    }
  }

  @Nested
  class InMemory extends Contract {
    @BeforeEach
    void open() {
      MemoryLedger ledger = new MemoryLedger();
      MemoryShares memory = new MemoryShares();
      claims = ledger;
      shares = memory;
      shown = new MemoryShownClaims(ledger, memory);
    }
  }

  private static <T> T get(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private static AuditEvent event() {
    return AuditEvent.of("wallet", "act", "ok", Map.of());
  }

  private static SessionId session(int number) {
    return new SessionId(bytes32(number));
  }

  private static ByteString bytes32(int number) {
    return ByteString.copyFrom(ByteBuffer.allocate(32).putInt(number).rewind());
  }

  private static Claim claim(int session, String requester, String requestId, int digest) {
    return new Claim(
        session(session),
        requester,
        requestId,
        bytes32(digest),
        null,
        null,
        null,
        ByteString.EMPTY,
        MemoryLedger.COORDINATOR);
  }

  /** Bindings of one request have the end of its intent; a later request id ends later. */
  private static Binding binding(int session, String requestId) {
    return new Binding(
        "wallet",
        requestId,
        session(session),
        ByteString.copyFromUtf8("order " + session),
        ByteString.EMPTY,
        NOW.plusSeconds(60 + requestId.charAt(0)));
  }

  private static Claim claim(Binding binding, @Nullable Integer instead) {
    return new Claim(
        binding.session(),
        binding.requester(),
        binding.requestId(),
        bytes32(1),
        binding,
        instead == null ? null : session(instead),
        null,
        ByteString.EMPTY,
        MemoryLedger.COORDINATOR);
  }

  private static Never never(ClaimLedger claims, String requestId, @Nullable Integer over) {
    return get(
        claims.never(
            "wallet",
            requestId,
            over == null ? null : session(over),
            ByteString.EMPTY,
            bytes32(99),
            event()));
  }

  private static KeyShare share(int session, int epoch) {
    return share(KEY, Scheme.SCHEME_ED25519, session, epoch);
  }

  private static KeyShare share(String key, Scheme scheme, int session, int epoch) {
    return new KeyShare(
        key,
        epoch,
        scheme,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 3),
        List.of(1, 2, 3),
        KeyPublic.newBuilder().setKeyId(key).setThreshold(2).setEpoch(epoch).build(),
        ByteString.copyFromUtf8("sealed " + session),
        new KeyShare.Origin(
            session(session), "coordinator", "wallet", "request " + session, bytes32(9)),
        null);
  }

  private static Exclusion exclusion(int share, int epoch, String sealed, Integer... parties) {
    return new Exclusion(
        KEY, Set.of(parties), session(99), session(share), epoch, ByteString.copyFromUtf8(sealed));
  }

  /** Holds of every implementation of the ports. */
  abstract static class Contract {
    ClaimLedger claims = new MemoryLedger();
    KeyShareStore shares = new MemoryShares();
    ShownClaims shown = new MemoryShownClaims(new MemoryLedger(), new MemoryShares());

    private Outcome claimed(Claim claim) {
      return get(claims.claimOnce(claim, event()));
    }

    private boolean first(int session) {
      return get(shares.storeProvisional(share(session, 1), event()));
    }

    private boolean next(int session, int epoch) {
      return get(shares.storeNext(share(session, epoch), true, event()));
    }

    private boolean abandoned(int session, int epoch) {
      return get(shares.abandon(share(session, epoch), 2, event()));
    }

    private boolean activated(int session, int epoch) {
      return get(shares.activate(share(session, epoch), PROOF, event()));
    }

    /** A key whose first share is active. */
    private void active() {
      assertThat(first(1)).isTrue();
      assertThat(activated(1, 1)).isTrue();
    }

    @Test
    void session_is_claimed_once_and_a_request_id_belongs_to_one_intent_of_its_requester() {
      assertThat(claimed(claim(1, "wallet", "r", 1))).isEqualTo(Outcome.CLAIMED);
      assertThat(claimed(claim(1, "wallet", "r", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
      assertThat(claimed(claim(2, "wallet", "r", 1))).as("a retry").isEqualTo(Outcome.CLAIMED);
      assertThat(claimed(claim(3, "wallet", "r", 2))).isEqualTo(Outcome.REQUEST_ID_REUSED);
      assertThat(claimed(claim(3, "other", "r", 2))).isEqualTo(Outcome.CLAIMED);
    }

    private long kept(String account) {
      return claims.room().keptBytes().getOrDefault(account, 0L);
    }

    @Test
    void bytes_are_kept_for_a_requester_once_an_intent_and_after_that_for_its_coordinator() {
      assertThat(claimed(claim(1, "wallet", "r", 1))).isEqualTo(Outcome.CLAIMED);
      long once = kept("wallet");
      assertThat(once).isPositive();
      assertThat(kept(MemoryLedger.COORDINATOR)).isZero();
      for (int session = 2; session < 10; session++) {
        assertThat(claimed(claim(session, "wallet", "r", 1))).isEqualTo(Outcome.CLAIMED);
      }
      assertThat(kept("wallet")).isEqualTo(once);
      long again = kept(MemoryLedger.COORDINATOR);
      assertThat(again).isPositive();
      get(claims.claimSession(session(20), MemoryLedger.COORDINATOR, null));
      long asked = kept(MemoryLedger.COORDINATOR);
      assertThat(asked).isGreaterThan(again);
      get(claims.decline(session(21), MemoryLedger.COORDINATOR, null));
      assertThat(kept(MemoryLedger.COORDINATOR)).isGreaterThan(asked);
      assertThat(claimed(claim(22, "other", "r", 2))).isEqualTo(Outcome.CLAIMED);
      assertThat(kept("other")).isPositive();
      assertThat(kept("wallet")).isEqualTo(once);
      assertThat(claims.room().freeBytes()).isPositive();
    }

    @Test
    void a_contribution_that_was_withheld_is_not_on_disk() {
      Binding empty = binding(1, "r");
      Binding made =
          new Binding(
              empty.requester(),
              empty.requestId(),
              empty.session(),
              empty.order(),
              ByteString.copyFromUtf8("contribution"),
              empty.notAfter());
      assertThat(claimed(claim(made, null))).isEqualTo(Outcome.CLAIMED);
      get(claims.withhold("wallet", "r", session(2)));
      assertThat(claims.bindings(10)).as("of another session").containsExactly(made);
      get(claims.withhold("wallet", "r", session(1)));
      assertThat(claims.bindings(10)).containsExactly(empty);
    }

    @Test
    void a_request_is_claimed_or_never_signed() {
      assertThat(never(claims, "r", null)).isEqualTo(new Never.Said(true));
      assertThat(never(claims, "r", null)).isEqualTo(new Never.Said(false));
      assertThat(claimed(claim(1, "wallet", "r", 1))).isEqualTo(Outcome.NEVER);
      assertThat(claimed(claim(2, "other", "r", 1))).isEqualTo(Outcome.CLAIMED);
      assertThat(claimed(claim(3, "wallet", "s", 7))).isEqualTo(Outcome.CLAIMED);
      assertThat(never(claims, "s", null)).isEqualTo(new Never.Claimed(bytes32(7)));
      assertThat(never(claims, "s", 3)).isEqualTo(new Never.Claimed(bytes32(7)));
      assertThat(claimed(claim(binding(4, "t"), null))).isEqualTo(Outcome.CLAIMED);
      assertThat(claimed(claim(binding(5, "t"), 4))).isEqualTo(Outcome.CLAIMED);
      assertThat(never(claims, "t", 4)).isEqualTo(new Never.Claimed(bytes32(1)));
      assertThat(never(claims, "t", 5)).isEqualTo(new Never.Said(true));
      assertThat(claimed(claim(binding(6, "t"), 5))).isEqualTo(Outcome.NEVER);
      assertThat(claims.bindings(10)).isEmpty();
    }

    @Test
    void a_request_that_is_known_has_no_more_sessions_that_nobody_has_room_for() {
      Claim first = withoutRoom(claim(1, "wallet", "r", 1));
      assertThat(claimed(first)).as("the requester has").isEqualTo(Outcome.CLAIMED);
      Claim second = claim(2, "wallet", "r", 1);
      assertThat(claimed(withoutRoom(second))).isEqualTo(Outcome.ORDERED_TOO_OFTEN);
      assertThat(claimed(second)).as("nothing was claimed").isEqualTo(Outcome.CLAIMED);
    }

    private static Claim withoutRoom(Claim claim) {
      return new Claim(
          claim.session(),
          claim.requester(),
          claim.requestId(),
          claim.intentDigest(),
          claim.binding(),
          claim.instead(),
          claim.multiplication(),
          claim.signedIntent(),
          null);
    }

    @Test
    void session_that_serves_no_request_is_claimed_once() {
      assertThat(get(claims.claimSession(session(1), MemoryLedger.COORDINATOR, null)))
          .isEqualTo(Outcome.CLAIMED);
      assertThat(get(claims.claimSession(session(1), MemoryLedger.COORDINATOR, null)))
          .isEqualTo(Outcome.SESSION_REPLAYED);
      assertThat(claimed(claim(1, "wallet", "r", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
    }

    @Test
    void request_is_bound_to_one_session_until_the_claim_names_that_one() {
      Binding second = binding(3, "r");
      Binding elsewhere = binding(4, "s");
      assertThat(claimed(claim(binding(1, "r"), null))).isEqualTo(Outcome.CLAIMED);
      assertThat(claimed(claim(binding(2, "r"), null))).isEqualTo(Outcome.REQUEST_BOUND);
      assertThat(claimed(claim(second, 1))).isEqualTo(Outcome.CLAIMED);
      assertThat(claimed(claim(binding(5, "r"), 1))).isEqualTo(Outcome.REQUEST_BOUND);
      assertThat(claimed(claim(elsewhere, null))).isEqualTo(Outcome.CLAIMED);
      assertThat(claims.bindings(10)).containsExactly(second, elsewhere);
      assertThat(claims.bindings(1)).as("the newest").containsExactly(elsewhere);
      claims.forgetRequests(Duration.ofDays(2));
      get(
          claims.decline(
              session(90), MemoryLedger.COORDINATOR, null)); // the writes before it are done
      assertThat(claims.bindings(10)).as("none is so old").containsExactly(second, elsewhere);
    }

    @Test
    void declined_session_is_never_claimed_and_a_claimed_one_never_declined() {
      assertThat(get(claims.decline(session(1), MemoryLedger.COORDINATOR, null))).isTrue();
      assertThat(get(claims.decline(session(1), MemoryLedger.COORDINATOR, null)))
          .as("again")
          .isTrue();
      assertThat(claimed(claim(1, "wallet", "r", 1))).isEqualTo(Outcome.SESSION_REPLAYED);
      assertThat(claimed(claim(binding(2, "s"), null))).isEqualTo(Outcome.CLAIMED);
      assertThat(get(claims.decline(session(2), MemoryLedger.COORDINATOR, null))).isFalse();
      assertThat(claimed(claim(binding(3, "s"), null))).isEqualTo(Outcome.REQUEST_BOUND);
      assertThat(get(claims.decline(session(3), MemoryLedger.COORDINATOR, null)))
          .as("it never runs")
          .isTrue();
    }

    @Test
    void what_is_withheld_and_that_a_request_is_never_signed_moves_the_position_once() {
      Binding empty = binding(1, "r");
      Binding made =
          new Binding(
              empty.requester(),
              empty.requestId(),
              empty.session(),
              empty.order(),
              ByteString.copyFromUtf8("contribution"),
              empty.notAfter());
      assertThat(claimed(claim(made, null))).isEqualTo(Outcome.CLAIMED);
      LedgerPosition before = claims.position();
      get(claims.withhold("wallet", "r", session(2)));
      assertThat(claims.position()).as("of another session").isEqualTo(before);
      get(claims.withhold("wallet", "r", session(1)));
      get(claims.withhold("wallet", "r", session(1)));
      assertThat(claims.position().claims()).isEqualTo(before.claims() + 1);
      never(claims, "s", null);
      never(claims, "s", null);
      never(claims, "r", null);
      assertThat(claims.position().claims()).isEqualTo(before.claims() + 2);
      assertThat(claims.remembers(claims.position())).isTrue();
    }

    @Test
    void every_session_that_is_claimed_or_declined_moves_the_position_once() {
      LedgerPosition before = claims.position();
      Multiplication multiplication = new Multiplication(KEY, 1, List.of(2));
      get(claims.claimSession(session(1), MemoryLedger.COORDINATOR, multiplication));
      get(claims.claimSession(session(1), MemoryLedger.COORDINATOR, multiplication));
      get(claims.claimSession(session(2), MemoryLedger.COORDINATOR, null));
      get(claims.decline(session(3), MemoryLedger.COORDINATOR, null));
      get(claims.decline(session(3), MemoryLedger.COORDINATOR, null));
      claimed(claim(4, "wallet", "r", 1));
      claimed(claim(4, "wallet", "r", 1));
      LedgerPosition after = claims.position();
      assertThat(after.claims()).isEqualTo(before.claims() + 4);
      assertThat(after.mark()).isEqualTo(before.mark());
      assertThat(after.base()).isEqualTo(before.base());
      assertThat(after.hash()).isNotEqualTo(before.hash());
      assertThat(claims.remembers(before)).isTrue();
      assertThat(claims.remembers(after)).isTrue();
      assertThat(claims.remembers(after.claimed(bytes32(1)))).isFalse();
    }

    private static KeyShare multiplying(int session, int epoch) {
      return share(MULTIPLYING, Scheme.SCHEME_ECDSA_SECP256K1, session, epoch);
    }

    /** Two keys whose first shares are active; one of them multiplies. */
    private void bothActive() {
      active();
      assertThat(get(shares.storeProvisional(multiplying(11, 1), event()))).isTrue();
      assertThat(get(shares.activate(multiplying(11, 1), PROOF, event()))).isTrue();
    }

    private void nextMultiplying(int session, int epoch) {
      assertThat(get(shares.storeNext(multiplying(session, epoch), true, event()))).isTrue();
    }

    private static LedgerHead head(LedgerPosition position) {
      return new LedgerHead("test", 1, position, 0);
    }

    private static Shown shown(int party, LedgerPosition position, ByteString before) {
      ClaimCount count = new LedgerHead("test", party, position, 0).count(SIGNATURE);
      return new Shown(party, position, count.toByteString(), before);
    }

    private static final ByteString SIGNATURE =
        ByteString.copyFrom(new byte[StatementSignature.BYTES]);

    private static LedgerPosition start(LedgerPosition now, int number) {
      return now.next(bytes32(number).toByteArray());
    }

    @Test
    void position_of_a_peer_is_remembered_in_place_of_its_older_one() {
      LedgerPosition first = start(LedgerPosition.NONE, 1);
      ByteString nothing = ByteString.EMPTY;
      ByteString word = ByteString.copyFromUtf8("word");
      Shown other = shown(3, start(LedgerPosition.NONE, 2), nothing);
      Shown later = shown(2, start(first, 3), word);
      assertThat(shown.shown()).isEmpty();
      assertThat(get(shown.show(shown(2, first, nothing)))).isTrue();
      assertThat(get(shown.show(other))).isTrue();
      assertThat(get(shown.show(later))).isTrue();
      assertThat(shown.shown()).containsExactlyInAnyOrder(later, other);
    }

    @Test
    void a_peer_that_went_back_is_excluded_from_every_share_of_that_time_that_multiplies() {
      bothActive();
      nextMultiplying(12, 2);
      assertThat(get(shown.wentBack(9))).as("holds no share").isEmpty();
      assertThat(get(shown.wentBack(2))).containsExactly(MULTIPLYING);
      assertThat(shares.excluded(MULTIPLYING)).containsExactly(2);
      assertThat(shares.excluded(KEY)).isEmpty();
      assertThat(get(shares.activate(multiplying(12, 2), PROOF, event()))).isTrue();
      assertThat(shares.excluded(MULTIPLYING)).as("it was there already").containsExactly(2);
      nextMultiplying(13, 3);
      assertThat(get(shares.activate(multiplying(13, 3), PROOF, event()))).isTrue();
      assertThat(shares.excluded(MULTIPLYING)).as("made since").isEmpty();
    }

    @Test
    void a_ledger_that_was_put_back_goes_on_above_what_it_has_forgotten_and_learns_it_once() {
      bothActive();
      LedgerPosition forgotten = start(claims.position(), 4);
      assertThat(get(shown.wentBack(head(claims.position())))).as("not forgotten").isEmpty();
      assertThat(shares.excluded(MULTIPLYING)).isEmpty();
      assertThat(claims.remembers(forgotten)).isFalse();
      assertThat(get(shown.wentBack(head(forgotten)))).containsExactly(MULTIPLYING);
      assertThat(shares.excluded(MULTIPLYING)).containsExactly(KeyShareStore.ITSELF);
      assertThat(shares.excluded(KEY)).isEmpty();
      assertThat(claims.remembers(forgotten)).isTrue();
      LedgerPosition now = claims.position();
      assertThat(now.against(forgotten)).isEqualTo(LedgerPosition.Judgement.LATER);
      assertThat(get(shown.wentBack(head(forgotten)))).as("again").isEmpty();
      assertThat(claims.position()).isEqualTo(now);
      LedgerPosition below = start(forgotten, 5);
      assertThat(claims.remembers(below)).as("settled with it").isTrue();
    }

    @Test
    void newer_provisional_share_takes_the_place_of_an_older_one() {
      assertThat(shares.find(KEY)).isEmpty();
      assertThat(first(1)).isTrue();
      assertThat(first(2)).isTrue();
      assertThat(shares.find(KEY)).contains(share(2, 1));
      assertThat(shares.pending(KEY)).contains(share(2, 1));
      assertThat(shares.undecided()).containsExactly(share(2, 1));
      assertThat(activated(1, 1)).as("superseded").isFalse();
      assertThat(activated(2, 1)).isTrue();
      assertThat(shares.find(KEY)).contains(share(2, 1).activated(PROOF));
      assertThat(shares.pending(KEY)).isEmpty();
      assertThat(shares.undecided()).isEmpty();
    }

    @Test
    void active_share_is_never_replaced_by_one_of_a_new_key() {
      active();
      assertThat(first(2)).isFalse();
      assertThat(activated(1, 1)).as("once").isFalse();
      assertThat(activated(2, 1)).as("not stored").isFalse();
      assertThat(shares.find(KEY)).contains(share(1, 1).activated(PROOF));
    }

    @Test
    void share_of_another_key_of_the_name_takes_the_place_of_none_that_is_or_may_be_used() {
      active();
      for (KeyShare other : others(2, 2)) {
        assertThat(get(shares.storeNext(other, false, event()))).as(other.toString()).isFalse();
      }
      assertThat(shares.undecided()).isEmpty();
      assertThat(shares.find(KEY)).contains(share(1, 1).activated(PROOF));
      assertThat(next(3, 2)).isTrue();
      for (KeyShare other : others(3, 2)) {
        assertThat(get(shares.activate(other, PROOF, event()))).as(other.toString()).isFalse();
      }
      assertThat(activated(3, 2)).isTrue();
    }

    /** All there is of a key is with parties that do not know yet that all have stored theirs. */
    @Test
    void share_of_a_later_epoch_that_is_undecided_gives_way_to_no_other_key() {
      assertThat(get(shares.storeNext(share(1, 2), false, event()))).isTrue();
      for (boolean abandoned : new boolean[] {false, true}) {
        if (abandoned) {
          assertThat(abandoned(1, 2)).isTrue();
        }
        assertThat(first(2)).isFalse();
        for (KeyShare other : others(3, 3)) {
          assertThat(get(shares.storeNext(other, false, event()))).as(other.toString()).isFalse();
        }
        assertThat(shares.undecided()).hasSize(1);
      }
      assertThat(activated(1, 2)).isTrue();
    }

    /** A key that was created is not used before all its parties use it. */
    @Test
    void first_share_that_is_undecided_gives_way_to_another_key() {
      assertThat(first(1)).isTrue();
      KeyShare other = others(2, 2).getFirst();
      assertThat(get(shares.storeNext(other, false, event()))).isTrue();
      assertThat(shares.undecided()).containsExactly(other);
    }

    /** With another scheme, another public key, and another chain code. */
    private static List<KeyShare> others(int session, int epoch) {
      ByteString bytes = bytes32(1);
      return List.of(
          share(KEY, Scheme.SCHEME_BIP340_SECP256K1, session, epoch),
          ofKey(share(session, epoch), key -> key.setPublicKey(bytes)),
          ofKey(share(session, epoch), key -> key.setChainCode(bytes)));
    }

    private static KeyShare ofKey(KeyShare share, UnaryOperator<KeyPublic.Builder> change) {
      return new KeyShare(
          share.key(),
          share.epoch(),
          share.scheme(),
          share.state(),
          share.parties(),
          share.members(),
          change.apply(share.keyPublic().toBuilder()).build(),
          share.sealed(),
          share.origin(),
          null);
    }

    @Test
    void share_of_the_next_epoch_lies_beside_the_active_one_and_then_replaces_it() {
      active();
      assertThat(next(2, 2)).isTrue();
      assertThat(shares.find(KEY)).contains(share(1, 1).activated(PROOF));
      assertThat(shares.pending(KEY)).contains(share(2, 2));
      assertThat(next(3, 2)).as("the other one is not decided").isFalse();
      assertThat(activated(2, 2)).isTrue();
      assertThat(shares.find(KEY)).contains(share(2, 2).activated(PROOF));
      assertThat(shares.ofSession(session(1))).as("destroyed").isEmpty();
      assertThat(next(4, 2)).as("an epoch that was").isFalse();
    }

    @Test
    void share_is_dealt_only_from_the_active_one_of_the_epoch_before() {
      assertThat(next(2, 2)).as("no share to deal with").isFalse();
      assertThat(get(shares.storeNext(share(2, 2), false, event()))).as("received").isTrue();
      assertThat(get(shares.storeNext(share(3, 3), false, event()))).isTrue();
      assertThat(shares.ofSession(session(2)))
          .as("of an epoch whose end this party has missed")
          .contains(share(2, 2).abandoned());
      assertThat(shares.pending(KEY)).contains(share(3, 3));
    }

    @Test
    void share_of_a_declined_session_is_never_stored_and_a_stored_one_never_declined() {
      active();
      assertThat(get(shares.decline(KEY, session(2), 2))).isTrue();
      assertThat(get(shares.decline(KEY, session(2), 2))).as("again").isTrue();
      assertThat(next(2, 2)).isFalse();
      assertThat(next(3, 2)).isTrue();
      assertThat(get(shares.decline(KEY, session(3), 2))).isFalse();
    }

    @Test
    void abandoned_share_is_kept_and_a_certificate_brings_it_back() {
      active();
      assertThat(abandoned(1, 1)).as("it is active").isFalse();
      next(2, 2);
      assertThat(abandoned(2, 2)).isTrue();
      assertThat(abandoned(2, 2)).as("again").isFalse();
      assertThat(shares.pending(KEY)).isEmpty();
      assertThat(next(3, 2)).isTrue();
      assertThat(shares.undecided())
          .containsExactlyInAnyOrder(share(2, 2).abandoned(), share(3, 2));
      assertThat(activated(2, 2)).isTrue();
      assertThat(shares.find(KEY)).contains(share(2, 2).activated(PROOF));
      assertThat(shares.pending(KEY)).as("stored later").contains(share(3, 2));
      assertThat(activated(3, 2)).as("the later of the two counts").isTrue();
      assertThat(activated(2, 2)).isFalse();
      assertThat(shares.ofSession(session(2))).isEmpty();
    }

    @Test
    void exclusions_add_up_until_new_shares_and_a_frozen_key_stays_frozen() {
      active();
      get(shares.exclude(exclusion(1, 1, "", 2)));
      get(shares.exclude(exclusion(1, 1, "", 3)));
      assertThat(shares.excluded(KEY)).containsExactlyInAnyOrder(2, 3);
      assertThat(shares.excluded("keys/b")).isEmpty();
      assertThat(get(shares.unfreeze(KEY))).as("not frozen").isFalse();
      get(shares.exclude(exclusion(1, 1, "", KeyShareStore.EVERY_PARTY)));
      next(2, 2);
      activated(2, 2);
      assertThat(shares.excluded(KEY)).containsExactly(KeyShareStore.EVERY_PARTY);
      get(shares.exclude(exclusion(1, 1, "", 2)));
      assertThat(shares.excluded(KEY))
          .as("from a share that is gone")
          .containsExactly(KeyShareStore.EVERY_PARTY);
      assertThat(get(shares.unfreeze(KEY))).isTrue();
      assertThat(shares.excluded(KEY)).isEmpty();
    }

    @Test
    void exclusion_replaces_the_sealed_bytes_of_the_share_that_it_names() {
      active();
      get(shares.exclude(exclusion(7, 1, "of another session", 2)));
      assertThat(shares.find(KEY).orElseThrow().sealed()).isEqualTo(share(1, 1).sealed());
      get(shares.exclude(exclusion(1, 1, "without party 2", 2)));
      assertThat(shares.find(KEY).orElseThrow().sealed())
          .isEqualTo(ByteString.copyFromUtf8("without party 2"));
    }
  }
}
