package io.coterie.platform.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerPosition.Judgement;
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
    return ByteBuffer.allocate(LedgerPosition.HEAD_BYTES).putInt(++drawn).array();
  }

  private LedgerPosition start(LedgerPosition before) {
    return before.next(random());
  }

  private static LedgerPosition claim(LedgerPosition now, int times) {
    return new LedgerPosition(now.starts(), now.head(), now.base(), now.claims() + times);
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
          assertThat(restored.against(remembered))
              .isEqualTo(startsSince < 2 ? Judgement.CONTRADICTS : Judgement.KNOWN);
        }
      }
    }
  }

  @Test
  void two_starts_of_one_copy_contradict_each_other_even_without_a_claim() {
    LedgerPosition copy = incarnations(LedgerPosition.NONE, 3, 1);
    assertThat(start(copy).against(start(copy))).isEqualTo(Judgement.CONTRADICTS);
  }

  @Test
  void each_start_has_its_own_head() {
    Set<ByteString> heads = new HashSet<>();
    LedgerPosition copy = incarnations(LedgerPosition.NONE, 2, 1);
    byte[] same = random();
    heads.add(copy.next(same).head());
    heads.add(start(copy).head());
    heads.add(start(copy).next(same).head());
    heads.add(LedgerPosition.NONE.next(same).head());
    assertThat(heads).hasSize(4).allMatch(h -> h.size() == LedgerPosition.HEAD_BYTES);
  }

  @Test
  void a_statement_says_every_part_of_the_position_and_whose_it_is() {
    LedgerPosition p = claim(start(LedgerPosition.NONE), 3);
    Set<ByteString> statements = new HashSet<>();
    statements.add(p.statement(1));
    statements.add(p.statement(2));
    statements.add(new LedgerPosition(2, p.head(), p.base(), p.claims()).statement(1));
    statements.add(new LedgerPosition(p.starts(), p.head(), 1, p.claims()).statement(1));
    statements.add(new LedgerPosition(p.starts(), p.head(), p.base(), 4).statement(1));
    statements.add(claim(start(LedgerPosition.NONE), 3).statement(1));
    assertThat(statements).hasSize(6);
  }
}
