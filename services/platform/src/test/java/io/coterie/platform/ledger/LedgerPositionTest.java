package io.coterie.platform.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerPosition.Judgement;
import io.coterie.proto.party.v1.ClaimCount;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The decisions about ledgers that are put back, without any input or output. */
class LedgerPositionTest {
  private int drawn;

  private byte[] random() {
    return ByteBuffer.allocate(LedgerPosition.HASH_BYTES).putInt(++drawn).array();
  }

  private LedgerPosition start(LedgerPosition before) {
    return before.next(random());
  }

  private LedgerPosition claim(LedgerPosition now, int times) {
    LedgerPosition position = now;
    for (int i = 0; i < times; i++) {
      position = position.claimed(ByteString.copyFrom(random()));
    }
    return position;
  }

  private LedgerPosition incarnations(LedgerPosition now, int starts, int claimsEach) {
    LedgerPosition position = now;
    for (int i = 0; i < starts; i++) {
      position = claim(start(position), claimsEach);
    }
    return position;
  }

  /** All positions of a ledger that was never put back, in any order in which they arrive. */
  @Test
  void an_honest_ledger_never_contradicts_itself() {
    List<LedgerPosition> all = new ArrayList<>();
    LedgerPosition now = LedgerPosition.NONE;
    for (int incarnation = 0; incarnation < 6; incarnation++) {
      now = start(now);
      all.add(now);
      for (int session = 0; session < incarnation % 3; session++) {
        now = claim(now, 1);
        all.add(now);
      }
    }
    for (int remembered = 0; remembered < all.size(); remembered++) {
      assertThat(all.get(remembered).against(null)).isEqualTo(Judgement.LATER);
      for (int stated = 0; stated < all.size(); stated++) {
        assertThat(all.get(stated).against(all.get(remembered)))
            .as("%s after %s", all.get(stated), all.get(remembered))
            .isEqualTo(stated > remembered ? Judgement.LATER : Judgement.KNOWN);
      }
    }
  }

  /**
   * Every fork of a small ledger. The remembered one is replaced only by a ledger that has started
   * more often and had claimed as much before that start, however much it claims afterwards.
   */
  @Test
  void a_ledger_that_was_put_back_catches_up_by_no_number_of_claims() {
    for (int forkStarts = 1; forkStarts <= 3; forkStarts++) {
      for (int startsSince = 0; startsSince <= 3; startsSince++) {
        for (int claimsSince = 1; claimsSince <= 3; claimsSince++) {
          LedgerPosition copy = incarnations(LedgerPosition.NONE, forkStarts, 2);
          LedgerPosition remembered = claim(incarnations(copy, startsSince, 0), claimsSince);
          LedgerPosition restored = claim(start(copy), 100);
          // With as few starts it is shown by the claims: the later start began with fewer.
          assertThat(restored.against(remembered)).isEqualTo(Judgement.CONTRADICTS);
        }
      }
    }
  }

  @Test
  void two_starts_of_one_copy_contradict_each_other_even_without_a_claim() {
    LedgerPosition copy = incarnations(LedgerPosition.NONE, 3, 1);
    assertThat(start(copy).against(start(copy))).isEqualTo(Judgement.CONTRADICTS);
  }

  /** Of an earlier start: it convicts if the later one has forgotten a claim of it. */
  @Test
  void a_late_statement_contradicts_only_if_the_later_start_began_with_less() {
    LedgerPosition first = start(LedgerPosition.NONE);
    LedgerPosition two = claim(first, 2);
    LedgerPosition second = claim(start(two), 5);
    assertThat(first.against(second)).isEqualTo(Judgement.KNOWN);
    assertThat(claim(first, 1).against(second)).isEqualTo(Judgement.KNOWN);
    assertThat(two.against(second)).as("where the second start began").isEqualTo(Judgement.KNOWN);
    assertThat(claim(first, 3).against(second)).isEqualTo(Judgement.CONTRADICTS);
  }

  /** A process that was cloned: the same start, as many claims, and others. */
  @Test
  void as_many_claims_of_one_start_that_are_not_the_same_contradict() {
    LedgerPosition start = start(LedgerPosition.NONE);
    assertThat(claim(start, 3).against(claim(start, 3))).isEqualTo(Judgement.CONTRADICTS);
    LedgerPosition three = claim(start, 3);
    assertThat(three.against(three)).isEqualTo(Judgement.KNOWN);
  }

  /** Heads of one log convict, and no others, in whatever order they are told. */
  @Test
  void a_restore_that_is_declared_contradicts_nothing() {
    LedgerPosition copy = incarnations(LedgerPosition.NONE, 2, 2);
    LedgerPosition forgotten = incarnations(copy, 3, 4);
    LedgerPosition restored = copy.reopened(copy.claims(), random());
    LedgerPosition again = copy.reopened(copy.claims(), random());
    LedgerPosition later = incarnations(restored, 2, 3);
    for (LedgerPosition old : List.of(copy, forgotten)) {
      for (LedgerPosition anew : List.of(restored, later, again)) {
        assertThat(anew.against(old)).isEqualTo(Judgement.LATER);
        assertThat(old.against(anew)).isEqualTo(Judgement.KNOWN);
      }
    }
    assertThat(again.against(later)).as("two restores of one copy").isEqualTo(Judgement.KNOWN);
    assertThat(later.against(again)).isEqualTo(Judgement.KNOWN);
    LedgerPosition learned = again.reopened(later, random());
    assertThat(learned.against(later)).isEqualTo(Judgement.LATER);
    assertThat(learned.log().number()).isEqualTo(3);
    assertThat(learned.claims()).isEqualTo(later.claims());
    assertThat(start(restored).against(start(restored)))
        .as("put back in silence, in the new log")
        .isEqualTo(Judgement.CONTRADICTS);
  }

  @Test
  void a_new_log_names_the_head_at_which_the_old_one_is_left() {
    LedgerPosition copy = incarnations(LedgerPosition.NONE, 2, 2);
    LedgerLog log = copy.reopened(0, random()).log();
    assertThat(log.previous()).isEqualTo(copy.log().id());
    assertThat(log.claims()).isEqualTo(copy.claims());
    assertThat(log.hash()).isEqualTo(copy.hash());
    LedgerPosition told = incarnations(copy, 1, 1);
    assertThat(copy.reopened(told, random()).log().hash()).isEqualTo(told.hash());
    LedgerLog first = copy.log();
    assertThat(first.number()).isEqualTo(1);
    assertThat(first.previous()).isEmpty();
    LedgerLog other = new LedgerLog(first.number(), first.id(), log.id(), 0, copy.hash());
    LedgerPosition forged =
        new LedgerPosition(
            other, copy.starts(), copy.mark(), copy.base(), copy.claims(), copy.hash());
    assertThat(forged.against(copy)).as("one log begins once").isEqualTo(Judgement.CONTRADICTS);
  }

  @Test
  void each_start_and_each_claim_has_its_own_hash() {
    Set<ByteString> hashes = new HashSet<>();
    LedgerPosition copy = incarnations(LedgerPosition.NONE, 2, 1);
    byte[] same = random();
    ByteString session = ByteString.copyFrom(same);
    hashes.add(copy.next(same).mark());
    hashes.add(start(copy).mark());
    hashes.add(start(copy).next(same).mark());
    hashes.add(LedgerPosition.NONE.next(same).mark());
    hashes.add(copy.hash());
    hashes.add(copy.claimed(session).hash());
    hashes.add(copy.claimed(session).claimed(session).hash());
    hashes.add(start(copy).claimed(session).hash());
    assertThat(hashes).hasSize(8).allMatch(h -> h.size() == LedgerPosition.HASH_BYTES);
  }

  private static ByteString statement(String installation, int party, LedgerPosition at, long ms) {
    return new LedgerHead(installation, party, at, ms).statement();
  }

  @Test
  void a_head_says_every_part_of_the_position_whose_it_is_where_and_when() {
    LedgerPosition p = claim(start(claim(start(LedgerPosition.NONE), 2)), 3);
    LedgerPosition q = p.reopened(p, random());
    LedgerLog log = q.log();
    Set<ByteString> statements = new HashSet<>();
    statements.add(statement("test", 1, q, 5));
    statements.add(statement("test", 2, q, 5));
    statements.add(statement("tes", 1, q, 5));
    statements.add(statement("test", 1, q, 6));
    List<LedgerLog> logs =
        List.of(
            new LedgerLog(9, log.id(), log.previous(), log.claims(), log.hash()),
            new LedgerLog(log.number(), p.mark(), log.previous(), log.claims(), log.hash()),
            new LedgerLog(log.number(), log.id(), p.mark(), log.claims(), log.hash()),
            new LedgerLog(log.number(), log.id(), log.previous(), 9, log.hash()),
            new LedgerLog(log.number(), log.id(), log.previous(), log.claims(), p.mark()));
    for (LedgerLog other : logs) {
      statements.add(
          statement(
              "test",
              1,
              new LedgerPosition(other, q.starts(), q.mark(), q.base(), q.claims(), q.hash()),
              5));
    }
    List<LedgerPosition> positions =
        List.of(
            new LedgerPosition(log, 9, q.mark(), q.base(), q.claims(), q.hash()),
            new LedgerPosition(log, q.starts(), p.mark(), q.base(), q.claims(), q.hash()),
            new LedgerPosition(log, q.starts(), q.mark(), 1, q.claims(), q.hash()),
            new LedgerPosition(log, q.starts(), q.mark(), q.base(), 9, q.hash()),
            new LedgerPosition(log, q.starts(), q.mark(), q.base(), q.claims(), p.hash()));
    positions.forEach(at -> statements.add(statement("test", 1, at, 5)));
    assertThat(statements).hasSize(4 + logs.size() + positions.size());
  }

  @Test
  void a_message_is_the_head_that_it_states_or_none() {
    LedgerPosition first = claim(start(LedgerPosition.NONE), 2);
    ByteString signature = ByteString.copyFrom(new byte[StatementSignature.BYTES]);
    for (LedgerPosition at : List.of(first, claim(first.reopened(first, random()), 1))) {
      LedgerHead head = new LedgerHead("test", 7, at, 11);
      ClaimCount count = head.count(signature);
      assertThat(LedgerHead.of("test", count)).contains(head);
      List<ClaimCount> bad =
          List.of(
              count.toBuilder().clearSignature().build(),
              count.toBuilder().setLog(0).build(),
              count.toBuilder().setLog(-1).build(),
              count.toBuilder().clearLogId().build(),
              count.toBuilder().setPreviousLogId(ByteString.copyFrom(new byte[5])).build(),
              count.toBuilder().setPreviousHash(ByteString.copyFrom(new byte[5])).build(),
              count.toBuilder().setPreviousCount(-1).build(),
              count.toBuilder().setStarts(0).build(),
              count.toBuilder().clearMark().build(),
              count.toBuilder().setBase(-1).build(),
              count.toBuilder().setBase(count.getCount() + 1).build(),
              count.toBuilder().clearHash().build());
      assertThat(bad).allMatch(message -> LedgerHead.of("test", message).isEmpty());
    }
  }
}
