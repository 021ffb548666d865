package io.coterie.platform.limit;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Nobody gets all places, and those that want many get equally many. */
class FairPlacesTest {
  private static final int MOST = 256;
  private static final int NO_BOUND = Integer.MAX_VALUE;

  private final FairPlaces places = new FairPlaces(MOST);

  private void takeTurns(String... owners) {
    boolean some = true;
    while (some) {
      some = false;
      for (String owner : owners) {
        some |= places.take(owner, NO_BOUND);
      }
    }
  }

  @Test
  void one_alone_gets_seven_of_eight() {
    takeTurns("greedy");
    assertThat(places.of("greedy")).isEqualTo(MOST * 7 / 8);
    assertThat(places.take("other", NO_BOUND)).isTrue();
  }

  @Test
  void those_that_want_all_get_equally_many_and_leave_some() {
    takeTurns("a", "b", "c");
    for (String one : List.of("b", "c")) {
      assertThat(places.of(one) - places.of("a")).as("but for one").isBetween(-1, 1);
    }
    assertThat(places.of("a") * 3).isBetween(MOST * 9 / 10, MOST - 4);
    assertThat(places.take("late", NO_BOUND)).isTrue();
  }

  @Test
  void one_that_had_all_gives_way_as_its_places_become_free() {
    takeTurns("greedy");
    for (int i = 0; i < MOST * 7 / 8; i++) {
      places.giveBack("greedy");
      takeTurns("other", "greedy");
    }
    assertThat(places.of("other")).isGreaterThan(MOST * 2 / 5);
  }

  @Test
  void a_bound_of_its_own_counts_too() {
    assertThat(places.take("a", 1)).isTrue();
    assertThat(places.take("a", 1)).isFalse();
    assertThat(places.take("b", 1)).isTrue();
    places.giveBack("a");
    assertThat(places.take("a", 1)).isTrue();
  }

  @Test
  void a_place_that_was_taken_anyhow_is_known_to_be_too_many() {
    for (int i = 0; i < MOST * 7 / 8; i++) {
      places.add("greedy");
      assertThat(places.isWithin("greedy")).isTrue();
    }
    places.add("greedy");
    assertThat(places.isWithin("greedy")).isFalse();
    assertThat(places.isEnough()).isTrue();
    places.giveBack("greedy");
    places.add("other");
    assertThat(places.isWithin("other")).isTrue();
  }

  @Test
  void few_places_can_all_be_taken() {
    FairPlaces two = new FairPlaces(2);
    assertThat(two.take("a", NO_BOUND)).isTrue();
    assertThat(two.take("a", NO_BOUND)).isTrue();
    assertThat(two.take("a", NO_BOUND)).isFalse();
    assertThat(two.isEnough()).isTrue();
    two.add("a");
    assertThat(two.isEnough()).isFalse();
  }
}
