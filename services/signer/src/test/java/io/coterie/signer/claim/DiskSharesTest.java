package io.coterie.signer.claim;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.signer.claim.ClaimLedger.Room;
import org.junit.jupiter.api.Test;

class DiskSharesTest {
  /** Bytes that a claim leaves, of a disk that has room for so many claims. */
  private static final long ROW = 2_000;

  private static final int CLAIMS = 8_000;

  private final MemoryLedger ledger = new MemoryLedger();
  private DiskShares shares = new DiskShares(ledger);
  private int taken;

  /** As many claims as the requester gets, at most so many. */
  private int claim(String requester, int most) {
    int got = 0;
    while (got < most && shares.mayClaim(requester)) {
      shares.claimed(requester);
      got++;
      taken++;
      disk(CLAIMS);
    }
    return got;
  }

  private void disk(int size) {
    ledger.room = new Room(taken * ROW, (size - taken) * ROW);
    shares.look();
  }

  @Test
  void a_requester_alone_leaves_an_eighth_of_the_disk_and_another_finds_it() {
    disk(CLAIMS);
    assertThat(claim("greedy", CLAIMS)).isEqualTo(CLAIMS * 7 / 8);
    assertThat(shares.mayClaim("greedy")).isFalse();
    assertThat(claim("modest", CLAIMS / 16)).isEqualTo(CLAIMS / 16);
    assertThat(shares.mayClaim("modest")).isTrue();
  }

  @Test
  void however_many_are_greedy_something_stays_free() {
    disk(CLAIMS);
    for (int requester = 0; requester < 3; requester++) {
      assertThat(claim("greedy-" + requester, CLAIMS)).isPositive();
    }
    assertThat(taken).isLessThan(CLAIMS);
    assertThat(shares.mayClaim("modest")).isTrue();
  }

  @Test
  void a_requester_whose_sessions_were_forgotten_goes_on() {
    disk(CLAIMS);
    int got = claim("greedy", CLAIMS);
    assertThat(shares.mayClaim("greedy")).isFalse();
    // A tenth is left; the pages of the others are free again, in a file that stays as it is.
    taken = got / 10;
    ledger.claimed.put("greedy", (long) taken);
    disk(CLAIMS);
    shares.recount();
    assertThat(shares.mayClaim("greedy")).isTrue();
  }

  @Test
  void a_requester_does_not_answer_for_those_of_its_sessions_that_were_forgotten() {
    disk(CLAIMS);
    claim("old", CLAIMS / 4);
    claim("new", CLAIMS / 2);
    ledger.claimed.put("new", (long) taken);
    ledger.claimed.put("old", 0L);
    shares.recount();
    taken = CLAIMS - 1;
    disk(CLAIMS);
    assertThat(shares.mayClaim("old")).isTrue();
    assertThat(shares.mayClaim("new")).isFalse();
  }

  @Test
  void a_larger_disk_lets_it_go_on() {
    disk(CLAIMS);
    claim("greedy", CLAIMS);
    disk(2 * CLAIMS);
    assertThat(shares.mayClaim("greedy")).isTrue();
  }

  @Test
  void sessions_that_nobody_asked_for_are_no_requesters() {
    disk(CLAIMS);
    taken = CLAIMS / 2;
    for (int i = 0; i < taken; i++) {
      shares.claimed(ClaimLedger.NOBODY);
    }
    disk(CLAIMS);
    assertThat(claim("greedy", CLAIMS)).isEqualTo(CLAIMS / 2 * 7 / 8);
  }

  @Test
  void what_was_claimed_before_a_start_counts_after_it() {
    disk(CLAIMS);
    ledger.claimed.put("greedy", (long) claim("greedy", CLAIMS));
    shares = new DiskShares(ledger);
    assertThat(shares.mayClaim("greedy")).isFalse();
    assertThat(shares.mayClaim("modest")).isTrue();
  }

  @Test
  void nobody_claims_on_a_full_disk() {
    ledger.room = new Room(ROW, 0);
    shares.claimed("modest");
    shares.look();
    assertThat(shares.mayClaim("modest")).isFalse();
  }
}
