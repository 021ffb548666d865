package io.coterie.signer.claim;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import org.junit.jupiter.api.Test;

class DiskSharesTest {
  private static final long MIB = 1 << 20;
  private static final long DISK = 8_000 * MIB;

  private final MemoryLedger ledger = new MemoryLedger();
  private DiskShares shares = new DiskShares(ledger);

  /** Bytes of sessions that a requester gets, each of so many, at most so many sessions. */
  private long take(String requester, long each, long most) {
    long got = 0;
    while (got < most && shares.take(requester, each)) {
      shares.giveBack(requester, each);
      ledger.kept.merge(requester, each, Long::sum);
      got++;
      disk(DISK);
    }
    return got * each;
  }

  /** A disk of a size, on which all that is kept is taken. */
  private void disk(long size) {
    ledger.diskBytes = size - ledger.kept.values().stream().mapToLong(Long::longValue).sum();
    // A write since the last look is known after the second one.
    shares.look();
    shares.look();
  }

  @Test
  void a_requester_alone_leaves_an_eighth_of_the_disk_and_another_finds_it() {
    disk(DISK);
    assertThat(take("greedy", MIB, DISK)).isBetween(DISK * 7 / 8 - 8 * MIB, DISK * 7 / 8 + 8 * MIB);
    assertThat(shares.mayTake("greedy")).isFalse();
    assertThat(take("modest", MIB, 500)).isEqualTo(500 * MIB);
    assertThat(shares.mayTake("modest")).isTrue();
  }

  /** Keys cannot be deleted, so they decide about further keys alone. */
  @Test
  void a_requester_with_many_keys_signs_on_beside_a_greedy_one_and_creates_none() {
    disk(DISK);
    ledger.kept.put(DiskShares.ofKeys("treasury"), DISK * 6 / 10);
    disk(DISK);
    assertThat(shares.mayCreateKey("treasury")).isTrue();
    take("greedy", MIB, DISK);
    assertThat(shares.mayTake("treasury")).isTrue();
    assertThat(shares.mayCreateKey("treasury")).isFalse();
    assertThat(shares.mayCreateKey("modest")).isTrue();
  }

  @Test
  void keys_and_records_of_a_requester_are_one_share_for_its_next_key() {
    disk(DISK);
    ledger.kept.put(DiskShares.ofKeys("wallet"), DISK * 5 / 10);
    ledger.kept.put("wallet", DISK * 3 / 10);
    disk(DISK);
    assertThat(shares.mayTake("wallet")).isTrue();
    assertThat(shares.mayCreateKey("wallet")).isTrue();
    ledger.kept.put("wallet", DISK * 4 / 10);
    disk(DISK);
    assertThat(shares.mayCreateKey("wallet")).isFalse();
  }

  @Test
  void a_requester_with_large_payloads_gets_as_many_bytes_as_one_with_small_ones() {
    disk(DISK);
    long large = take("large", 16 * MIB, DISK);
    ledger.kept.clear();
    disk(DISK);
    assertThat(take("small", MIB, DISK)).isBetween(large - 128 * MIB, large + 128 * MIB);
  }

  @Test
  void however_many_are_greedy_something_stays_free_for_others_and_for_what_may_not_be_forgotten() {
    ledger.minFreeBytes = 64 * MIB;
    disk(DISK);
    for (int requester = 0; requester < 4; requester++) {
      assertThat(take("greedy-" + requester, MIB, DISK)).as("%d", requester).isPositive();
    }
    assertThat(shares.mayTake("modest")).isTrue();
    for (int requester = 4; requester < 20; requester++) {
      take("greedy-" + requester, MIB, DISK);
    }
    assertThat(ledger.diskBytes).isBetween(ledger.minFreeBytes - MIB, ledger.minFreeBytes + MIB);
  }

  @Test
  void with_no_more_than_is_to_stay_free_nobody_gets_any() {
    ledger.minFreeBytes = 64 * MIB;
    ledger.diskBytes = 64 * MIB;
    shares.look();
    assertThat(shares.isOpen()).isFalse();
    assertThat(shares.mayTake("modest")).isFalse();
    ledger.diskBytes++;
    shares.look();
    assertThat(shares.isOpen()).isTrue();
  }

  @Test
  void free_bytes_of_the_file_are_free_if_the_disk_has_room_for_a_journal() {
    ledger.minFreeBytes = 64 * MIB;
    ledger.fileBytes = 1_000 * MIB;
    ledger.diskBytes = 16 * MIB;
    shares.look();
    assertThat(shares.isOpen()).isTrue();
    assertThat(shares.take("modest", 900 * MIB)).isTrue();
    ledger.diskBytes--;
    shares.look();
    assertThat(shares.isOpen()).isFalse();
  }

  @Test
  void a_requester_whose_sessions_were_forgotten_goes_on() {
    disk(DISK);
    take("greedy", MIB, DISK);
    assertThat(shares.mayTake("greedy")).isFalse();
    // A tenth is left; the pages of the others are free again, in a file that stays as it is.
    long freed = ledger.kept.get("greedy") * 9 / 10;
    ledger.kept.merge("greedy", -freed, Long::sum);
    ledger.fileBytes = freed;
    shares.look();
    assertThat(shares.mayTake("greedy")).isTrue();
  }

  @Test
  void a_larger_disk_lets_it_go_on() {
    disk(DISK);
    take("greedy", MIB, DISK);
    disk(2 * DISK);
    assertThat(shares.mayTake("greedy")).isTrue();
  }

  @Test
  void a_coordinator_answers_for_what_no_requester_does_and_has_a_share_like_one() {
    String coordinator = DiskShares.ofCoordinator("greedy");
    disk(DISK);
    take(coordinator, MIB, DISK);
    assertThat(shares.mayTake(coordinator)).isFalse();
    assertThat(shares.mayTake("greedy")).as("a requester of its name").isTrue();
  }

  @Test
  void what_is_kept_before_a_start_counts_after_it() {
    disk(DISK);
    take("greedy", MIB, DISK);
    shares = new DiskShares(ledger);
    assertThat(shares.mayTake("greedy")).isFalse();
    assertThat(shares.mayTake("modest")).isTrue();
  }

  @Test
  void sessions_on_their_way_to_the_disk_are_counted_once() {
    disk(DISK);
    assertThat(shares.take("greedy", DISK * 7 / 8)).isTrue();
    assertThat(shares.mayTake("greedy")).isFalse();
    shares.giveBack("greedy", DISK * 7 / 8);
    // Nothing of them was written.
    shares.look();
    shares.look();
    assertThat(shares.mayTake("greedy")).isTrue();
    assertThat(Set.copyOf(ledger.kept.keySet())).isEmpty();
  }

  @Test
  void what_was_let_in_since_the_last_look_is_free_for_nobody() {
    disk(DISK);
    for (int requester = 0; requester < 8; requester++) {
      shares.take("requester-" + requester, DISK / 8);
      shares.giveBack("requester-" + requester, DISK / 8);
    }
    assertThat(shares.isOpen()).isFalse();
    shares.look();
    assertThat(shares.isOpen()).as("it may have been written after the look").isFalse();
    shares.look();
    assertThat(shares.isOpen()).isTrue();
  }
}
