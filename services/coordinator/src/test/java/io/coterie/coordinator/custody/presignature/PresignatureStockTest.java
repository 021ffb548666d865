package io.coterie.coordinator.custody.presignature;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Combination;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Place;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Presignature;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Purpose;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.SessionId;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Presignatures are wanted, made, used at most once, and abandoned. */
class PresignatureStockTest {
  private static final Duration AGE = Duration.ofMinutes(10);
  private static final Duration IDLE = Duration.ofMinutes(5);

  /** Wanted for messages of one length. */
  private static final int BLOCKS = 6;

  /** Signings being worked on, as many as keep the parties busy. */
  private static final int BUSY = 4;

  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private final List<Presignature> abandoned = new ArrayList<>();
  private long now = 1;
  private int made;

  /** Most that one session makes. */
  private int batch = 1;

  private PresignatureStock stock = stock(16, 4, 40, 5);

  private PresignatureStock stock(int target, int lowMark, int maxTotal, int maxCombinations) {
    PresignatureStock result =
        new PresignatureStock(
            new PresignatureStock.Limits(
                target, BLOCKS, lowMark, maxTotal, maxCombinations, AGE, IDLE, 4),
            new CoordinatorMetrics(registry),
            () -> now);
    result.listen(() -> {}, abandoned::addAll);
    return result;
  }

  private static Combination combination(
      String key, int epoch, List<Integer> set, Integer... path) {
    return new Combination(key, epoch, set, KeyTarget.at(List.of(path)), 0);
  }

  private static final Combination A = combination("keys/a", 1, List.of(1, 2));
  private static final Combination A13 = combination("keys/a", 1, List.of(1, 3));
  private static final Combination B = combination("keys/b", 1, List.of(1, 2));

  private static Combination ofBlocks(int blocks) {
    return new Combination("keys/a", 1, List.of(1, 2), KeyTarget.SELF, blocks);
  }

  private void want(Combination combination) {
    stock.want(combination, batch);
  }

  private ByteString nextId() {
    made++;
    byte[] id = new byte[32];
    id[0] = (byte) made;
    id[1] = (byte) (made >> 8);
    return ByteString.copyFrom(id);
  }

  private void make(Place place) {
    List<ByteString> ids = Stream.generate(this::nextId).limit(place.count()).toList();
    stock.made(place, ids, new SessionId(ids.getFirst()));
  }

  /** Makes all that is wanted; how many. */
  private int fill() {
    int count = 0;
    for (Optional<Place> next = stock.next(0, (set, _) -> true);
        next.isPresent();
        next = stock.next(0, (set, _) -> true)) {
      make(next.get());
      count += next.get().count();
    }
    return count;
  }

  private Optional<Integer> nextCount(boolean busy) {
    return stock.next(busy ? BUSY : 0, (set, _) -> true).map(Place::count);
  }

  private Optional<Combination> next(boolean busy) {
    return stock.next(busy ? BUSY : 0, (set, _) -> true).map(Place::combination);
  }

  private Optional<Presignature> take(Combination c) {
    return stock.take(Purpose.of(c), set -> true);
  }

  private double dropped(String reason) {
    var counter =
        registry.find(CoordinatorMetrics.PRESIGNATURES_DROPPED).tags("reason", reason).counter();
    return counter == null ? 0 : counter.count();
  }

  @Test
  void what_is_wanted_grows_with_its_use_and_doubles_when_there_was_none() {
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
    assertThat(take(A)).isEmpty();
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
    want(A);
    assertThat(fill()).isEqualTo(4);
    assertThat(take(A)).isPresent();
    assertThat(fill()).isEqualTo(2);
    assertThat(take(A)).isPresent();
    assertThat(fill()).isEqualTo(2);
    assertThat(stock.ready()).isEqualTo(6);
    want(A);
    assertThat(fill()).isEqualTo(6);
    want(A);
    assertThat(fill()).as("no more than the target").isEqualTo(4);
    assertThat(stock.ready()).isEqualTo(16);
    assertThat(registry.get(CoordinatorMetrics.PRESIGNATURES_MADE).counter().count()).isEqualTo(18);
    assertThat(registry.get(CoordinatorMetrics.PRESIGNATURES_USED).counter().count()).isEqualTo(2);
    assertThat(registry.get(CoordinatorMetrics.PRESIGNATURES_MISSED).counter().count())
        .isEqualTo(1);
    assertThat(registry.get(CoordinatorMetrics.PRESIGNATURES_READY).gauge().value()).isEqualTo(16);
  }

  @Test
  void what_takes_long_waits_while_one_signs_unless_none_is_left() {
    AtomicInteger demands = new AtomicInteger();
    stock.listen(demands::incrementAndGet, abandoned::addAll);
    want(ofBlocks(1));
    assertThat(fill()).isPositive();
    int before = demands.get();
    assertThat(take(ofBlocks(1))).isPresent();
    assertThat(demands).as("the signature that takes it has not begun").hasValue(before);
    assertThat(stock.next(1, (set, _) -> true)).isEmpty();
    make(stock.next(0, (set, _) -> true).orElseThrow());
    while (take(ofBlocks(1)).isPresent()) {
      assertThat(abandoned).isEmpty();
    }
    assertThat(demands).hasValueGreaterThan(before);
    assertThat(stock.next(BUSY, (set, _) -> true)).isPresent();
  }

  @Test
  void those_for_messages_of_one_length_are_counted_in_blocks_and_made_one_at_a_time() {
    for (int blocks : new int[] {1, 2, 11}) {
      for (int signing = 0; signing < 3; signing++) {
        want(ofBlocks(blocks));
      }
    }
    List<Place> places = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      places.add(stock.next(0, (set, _) -> true).orElseThrow());
    }
    assertThat(places.stream().map(place -> place.combination().messageBlocks()))
        .containsExactlyInAnyOrder(1, 2, 11);
    assertThat(next(false)).as("each is being made").isEmpty();
    places.forEach(this::make);
    assertThat(fill()).isEqualTo(5 + 2);
    assertThat(stock.ready()).isEqualTo(6 + 3 + 1);
    assertThat(take(ofBlocks(3))).as("of another length").isEmpty();
    assertThat(take(A)).isEmpty();
    assertThat(take(ofBlocks(11))).isPresent();
    assertThat(take(ofBlocks(11))).isEmpty();
    assertThat(take(ofBlocks(1))).isPresent();
  }

  private Optional<Promise> promise(Combination c) {
    return stock.promise(Purpose.of(c), set -> true);
  }

  @Test
  void a_request_is_promised_one_in_the_making_and_nobody_else_gets_it() {
    batch = 4;
    assertThat(promise(A)).as("nothing is being made").isEmpty();
    want(A);
    assertThat(promise(A)).as("nothing is being made yet").isEmpty();
    Place place = stock.next(BUSY, (set, _) -> true).orElseThrow();
    List<Promise> promises = Stream.generate(() -> promise(A).orElseThrow()).limit(3).toList();
    assertThat(promises).allMatch(p -> !p.made().isDone());
    assertThat(stock.next(BUSY, (set, _) -> true)).as("others find fewer").isPresent();
    make(place);
    Set<ByteString> ids = new HashSet<>();
    promises.forEach(p -> ids.add(p.made().getNow(Optional.empty()).orElseThrow().id()));
    take(A).ifPresent(p -> ids.add(p.id()));
    assertThat(ids).as("each got another one").hasSize(4);
    assertThat(take(A)).isEmpty();
    assertThat(registry.get(CoordinatorMetrics.PRESIGNATURES_USED).counter().count()).isEqualTo(4);
  }

  @Test
  void no_more_are_promised_than_are_being_made() {
    batch = 4;
    want(A);
    Place place = stock.next(BUSY, (set, _) -> true).orElseThrow();
    for (int i = 0; i < place.count(); i++) {
      assertThat(promise(A)).isPresent();
    }
    assertThat(promise(A)).isEmpty();
    assertThat(promise(B)).as("of another key").isEmpty();
    assertThat(stock.promise(Purpose.of(A), set -> false)).as("not usable").isEmpty();
  }

  @Test
  void a_promise_that_cannot_be_kept_is_broken_at_once() {
    batch = 4;
    want(A);
    Promise failed = promised();
    stock.failed(failing);
    assertThat(failed.made().getNow(null)).isEmpty();
    now += Duration.ofMinutes(1).toNanos();
    Promise lost = promised();
    stock.unknown(1, A);
    assertThat(lost.made().getNow(null)).isEmpty();
    stock.failed(failing);
    now += Duration.ofMinutes(1).toNanos();
    Promise renewed = promised();
    stock.renewed("keys/a");
    assertThat(renewed.made().getNow(null)).isEmpty();
    make(failing);
    assertThat(abandoned).as("made too late").hasSize(failing.count());
    want(A);
    Promise closed = promised();
    stock.close();
    assertThat(closed.made().getNow(null)).isEmpty();
  }

  private Place failing;

  private Promise promised() {
    failing = stock.next(BUSY, (set, _) -> true).orElseThrow();
    Promise promise = promise(A).orElseThrow();
    assertThat(promise.made()).isNotDone();
    return promise;
  }

  @Test
  void one_that_nobody_waits_for_any_more_is_for_the_next() {
    batch = 4;
    want(A);
    Place place = stock.next(BUSY, (set, _) -> true).orElseThrow();
    Promise early = promise(A).orElseThrow();
    Promise late = promise(A).orElseThrow();
    assertThat(stock.abandon(early)).isEmpty();
    make(place);
    assertThat(stock.abandon(late)).as("it came at that moment").isPresent();
    assertThat(early.made()).isNotDone();
    assertThat(stock.ready()).isEqualTo(place.count() - 1);
  }

  @Test
  void parties_that_are_busy_make_what_is_nearly_used_up() {
    batch = 4;
    want(A);
    assertThat(stock.next(BUSY, (set, soonUsed) -> soonUsed)).isPresent();
    want(A);
    want(A);
    assertThat(fill()).isPositive();
    assertThat(take(A)).isPresent();
    assertThat(stock.next(0, (set, soonUsed) -> soonUsed)).as("above the mark").isEmpty();
  }

  @Test
  void of_what_was_lost_a_little_is_made_again() {
    want(A);
    want(A);
    want(A);
    assertThat(fill()).isEqualTo(16);
    stock.unknown(2, A);
    assertThat(dropped("unknown")).isEqualTo(16);
    assertThat(fill()).isEqualTo(4);
    assertThat(take(A)).isPresent();
    assertThat(fill()).isEqualTo(2);
  }

  /** A corrupt party can have that come about with its own pair, and with no other. */
  @Test
  void a_pair_that_sets_up_anew_loses_what_it_has_prepared_and_nothing_else() {
    Combination pair = exact(1, 1, 2);
    Combination longer = exact(3, 1, 2);
    Combination otherPair = exact(1, 1, 3);
    for (Combination each : List.of(A, pair, longer, otherPair)) {
      want(each);
    }
    fill();
    stock.unknown(1, pair);
    assertThat(abandoned).extracting(Presignature::combination).containsOnly(pair, longer);
    assertThat(take(A)).isPresent();
    assertThat(take(longer)).isEmpty();
    assertThat(take(pair).orElseThrow().combination()).isEqualTo(otherPair);
  }

  private static Combination exact(int blocks, Integer... pair) {
    return new Combination("keys/exact", 1, List.of(pair), KeyTarget.SELF, blocks);
  }

  @Test
  void one_is_good_for_its_key_epoch_path_and_set_only() {
    want(A);
    fill();
    assertThat(take(B)).isEmpty();
    assertThat(take(combination("keys/a", 2, List.of(1, 2)))).isEmpty();
    assertThat(take(combination("keys/a", 1, List.of(1, 2), 0))).isEmpty();
    assertThat(stock.take(Purpose.of(A), set -> set.contains(3))).isEmpty();
    assertThat(take(A).orElseThrow().combination()).isEqualTo(A);
  }

  @Test
  void of_several_signing_sets_the_one_with_most_is_used() {
    want(A);
    fill();
    want(A13);
    want(A13);
    fill();
    assertThat(take(A).orElseThrow().combination()).isEqualTo(A13);
    assertThat(stock.take(Purpose.of(A), Set.of(1, 2)::containsAll).orElseThrow())
        .extracting(Presignature::combination)
        .isEqualTo(A);
  }

  @Test
  void the_emptiest_is_filled_first_and_while_signings_wait_only_to_the_low_mark() {
    want(A);
    want(A);
    fill();
    want(B);
    assertThat(next(true)).contains(B);
    assertThat(stock.making()).isEqualTo(1);
    for (int i = 0; i < 3; i++) {
      assertThat(next(true)).contains(B);
    }
    assertThat(stock.next(BUSY, (set, _) -> true)).isEmpty();
    want(A);
    assertThat(stock.next(BUSY, (set, _) -> true)).isEmpty();
    assertThat(next(false)).contains(A);
  }

  @Test
  void a_session_makes_what_lacks_and_no_more_than_it_can() {
    batch = 6;
    want(A);
    Place few = stock.next(0, (set, _) -> true).orElseThrow();
    assertThat(few.count()).isEqualTo(4);
    assertThat(stock.making()).isEqualTo(4);
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
    make(few);
    assertThat(stock.ready()).isEqualTo(4);
    want(A);
    want(A);
    Place failing = stock.next(0, (set, _) -> true).orElseThrow();
    Place succeeding = stock.next(0, (set, _) -> true).orElseThrow();
    assertThat(List.of(failing.count(), succeeding.count())).containsExactly(6, 6);
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
    assertThat(stock.making()).isEqualTo(12);
    stock.failed(failing);
    assertThat(stock.making()).isEqualTo(6);
    make(succeeding);
    assertThat(stock.making()).isZero();
    assertThat(stock.ready()).isEqualTo(10);
    assertThat(registry.get(CoordinatorMetrics.PRESIGNATURES_MADE).counter().count()).isEqualTo(10);
    List<ByteString> ids = Stream.generate(() -> take(A).orElseThrow().id()).limit(10).toList();
    assertThat(ids).doesNotHaveDuplicates();
  }

  @Test
  void below_the_low_mark_whole_sessions_are_made_although_signings_wait() {
    batch = 6;
    want(A);
    want(A);
    want(A);
    assertThat(nextCount(true)).contains(6);
    assertThat(stock.next(BUSY, (set, _) -> true)).isEmpty();
    // Also for all together there is a bound.
    stock = stock(16, 4, 8, 5);
    want(A);
    want(A);
    want(A);
    assertThat(nextCount(false)).contains(6);
    assertThat(nextCount(false)).contains(2);
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
  }

  @Test
  void above_the_low_mark_no_session_is_run_for_less_than_it_can_make() {
    batch = 6;
    want(A);
    want(A);
    want(A);
    assertThat(fill()).isEqualTo(12);
    assertThat(take(A)).isPresent();
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
    assertThat(take(A)).isPresent();
    assertThat(fill()).isEqualTo(6);
    assertThat(stock.ready()).isEqualTo(16);
    // Also without a low mark what is wanted is made in the end.
    stock = stock(16, 0, 40, 5);
    want(A);
    assertThat(nextCount(true)).isEmpty();
    assertThat(nextCount(false)).contains(4);
  }

  @Test
  void parties_that_have_enough_to_do_make_none() {
    want(A);
    want(A13);
    assertThat(stock.next(0, (set, _) -> false)).isEmpty();
    Optional<Place> next = stock.next(0, (c, _) -> !c.signingSet().contains(2));
    assertThat(next.map(Place::combination)).contains(A13);
    assertThat(stock.next(0, (c, _) -> c.signingSet().contains(2)).map(Place::combination))
        .contains(A);
  }

  @Test
  void what_has_failed_comes_after_what_is_as_empty() {
    for (Combination failing : List.of(A, B)) {
      stock = stock(16, 4, 40, 5);
      want(failing);
      stock.failed(stock.next(0, (_, _) -> true).orElseThrow());
      now += Duration.ofMinutes(1).toNanos();
      Combination other = failing == A ? B : A;
      want(other);
      assertThat(next(false)).contains(other);
      assertThat(next(false)).contains(failing);
    }
  }

  /** The parties are told the session, so nothing else of it may be in use any more. */
  @Test
  void what_is_left_of_a_session_is_dropped_as_a_whole() {
    batch = 4;
    want(A);
    assertThat(fill()).isEqualTo(4);
    SessionId first = take(A).orElseThrow().session();
    now += AGE.toNanos() - 1;
    assertThat(take(A).map(Presignature::session)).contains(first);
    now++;
    assertThat(take(A)).isEmpty();
    assertThat(abandoned).hasSize(2).extracting(Presignature::session).containsOnly(first);
    assertThat(dropped("expired")).isEqualTo(2);
    abandoned.clear();
    want(A);
    assertThat(fill()).isEqualTo(12);
    for (int i = 0; i < 4; i++) {
      assertThat(take(A)).isPresent();
    }
    Place late = stock.next(0, (set, _) -> true).orElseThrow();
    stock.renewed("keys/a");
    assertThat(abandoned).hasSize(8);
    make(late);
    assertThat(abandoned).hasSize(12).extracting(Presignature::id).doesNotHaveDuplicates();
    assertThat(dropped("late")).isEqualTo(4);
  }

  @Test
  void there_is_a_bound_for_all_and_for_combinations() {
    List<Combination> all = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Combination c = combination("keys/a", 1, List.of(1, 2), i);
      all.add(c);
      for (int j = 0; j < 4; j++) {
        want(c);
      }
      now++;
    }
    assertThat(fill()).isEqualTo(40);
    want(A13);
    assertThat(dropped("crowded")).isZero();
    now++;
    want(B);
    assertThat(dropped("crowded")).isEqualTo(10);
    assertThat(abandoned).allMatch(p -> p.combination().equals(all.getFirst()));
    assertThat(take(all.getFirst())).isEmpty();
    assertThat(stock.ready()).isEqualTo(30);
    stock = stock(0, 0, 0, 1);
    want(A);
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
  }

  @Test
  void what_was_not_made_is_tried_again_after_a_pause_that_grows_and_one_at_a_time() {
    want(A);
    stock.failed(stock.next(0, (set, _) -> true).orElseThrow());
    assertThat(stock.making()).isZero();
    long[] pauses = {250, 500, 1_000};
    for (long pause : pauses) {
      now += Duration.ofMillis(pause).toNanos() - 1;
      assertThat(stock.next(0, (set, _) -> true)).isEmpty();
      now += 1;
      Place place = stock.next(0, (set, _) -> true).orElseThrow();
      assertThat(stock.next(0, (set, _) -> true)).isEmpty();
      stock.failed(place);
    }
    now += Duration.ofMillis(2_000).toNanos();
    make(stock.next(0, (set, _) -> true).orElseThrow());
    assertThat(fill()).isEqualTo(3);
  }

  @Test
  void what_cannot_be_used_any_more_is_dropped_and_given_back() {
    want(A);
    want(A13);
    want(B);
    fill();
    assertThat(stock.ready()).isEqualTo(12);
    stock.unknown(3, A13);
    assertThat(dropped("unknown")).isEqualTo(4);
    assertThat(abandoned).hasSize(4).allMatch(p -> p.combination().equals(A13));
    stock.reachable(Set.of(1, 2));
    assertThat(stock.ready()).isEqualTo(8);
    assertThat(fill()).isZero();
    stock.reachable(Set.of(1, 2, 3));
    assertThat(fill()).isEqualTo(4);
    stock.reachable(Set.of(1, 2));
    assertThat(dropped("unreachable")).isEqualTo(4);
    stock.excluded("keys/a", 3);
    assertThat(fill()).isZero();
    stock.renewed("keys/b");
    assertThat(dropped("epoch")).isEqualTo(4);
    assertThat(take(B)).isEmpty();
    assertThat(fill()).isZero();
    stock.refused(A);
    assertThat(dropped("excluded")).isEqualTo(4);
    assertThat(stock.ready()).isZero();
    want(A);
    assertThat(fill()).isEqualTo(4);
    stock.close();
    assertThat(dropped("stopped")).isEqualTo(4);
    assertThat(abandoned).hasSize(20).doesNotHaveDuplicates();
  }

  @Test
  void what_was_dropped_while_it_was_made_is_not_kept() {
    want(A);
    Place making = stock.next(0, (set, _) -> true).orElseThrow();
    stock.renewed("keys/a");
    make(making);
    assertThat(stock.ready()).isZero();
    assertThat(stock.making()).isZero();
    assertThat(dropped("late")).isEqualTo(1);
    assertThat(abandoned).hasSize(1);
    want(A);
    making = stock.next(0, (set, _) -> true).orElseThrow();
    stock.refused(A);
    // Wanted again meanwhile: the session that began before is of no use for it.
    want(A);
    Place other = stock.next(0, (set, _) -> true).orElseThrow();
    make(making);
    assertThat(stock.ready()).isZero();
    make(other);
    assertThat(stock.ready()).isEqualTo(1);
    assertThat(stock.making()).isZero();
    assertThat(fill()).isEqualTo(3);
  }

  @Test
  void old_ones_are_not_used_and_unused_combinations_not_filled() {
    want(A);
    assertThat(fill()).isEqualTo(4);
    now += IDLE.toNanos();
    assertThat(take(A)).isPresent();
    now += IDLE.toNanos() - 1;
    assertThat(take(A)).isPresent();
    now += 1;
    assertThat(take(A)).isEmpty();
    assertThat(dropped("expired")).isEqualTo(2);
    now += IDLE.toNanos();
    assertThat(stock.next(0, (set, _) -> true)).isEmpty();
    want(A);
    // Forgotten: it starts small again.
    assertThat(fill()).isEqualTo(4);
  }

  private static ByteString randomId() {
    byte[] id = new byte[32];
    ThreadLocalRandom.current().nextBytes(id);
    return ByteString.copyFrom(id);
  }

  @Test
  void none_is_given_twice_whatever_happens_at_once() throws Exception {
    Set<ByteString> seen = new HashSet<>();
    batch = 3;
    want(A);
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      List<java.util.concurrent.Future<List<ByteString>>> takers = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        takers.add(
            threads.submit(
                () -> {
                  List<ByteString> taken = new ArrayList<>();
                  for (int j = 0; j < 2_000; j++) {
                    take(A).ifPresent(p -> taken.add(p.id()));
                    stock
                        .next(j % 2 == 0 ? BUSY : 0, (set, _) -> true)
                        .ifPresent(
                            c -> {
                              List<ByteString> ids =
                                  Stream.generate(PresignatureStockTest::randomId)
                                      .limit(c.count())
                                      .toList();
                              if (ids.getFirst().byteAt(0) % 5 == 0) {
                                stock.unknown(1, A);
                              }
                              stock.made(c, ids, new SessionId(ids.getFirst()));
                            });
                  }
                  return taken;
                }));
      }
      for (var taker : takers) {
        for (ByteString id : taker.get()) {
          assertThat(seen.add(id)).isTrue();
        }
      }
    }
    assertThat(seen).hasSizeGreaterThan(1_000);
    assertThat(stock.making()).isZero();
    double used = registry.get(CoordinatorMetrics.PRESIGNATURES_USED).counter().count();
    double all = registry.get(CoordinatorMetrics.PRESIGNATURES_MADE).counter().count();
    assertThat(all).isEqualTo(used + dropped("unknown") + stock.ready());
  }
}
