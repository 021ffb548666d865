package io.coterie.channel.link;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class WaitingRoomTest {
  private static final UUID ONE = new UUID(0, 1);
  private static final UUID TWO = new UUID(0, 2);

  private final WaitingRoom room = new WaitingRoom(1_000);

  private final List<WaitingRoom.Place> places = new ArrayList<>();

  private boolean take(int size, UUID... recipients) {
    Optional<WaitingRoom.Place> place = room.take(List.of(recipients), size);
    place.ifPresent(places::add);
    return place.isPresent();
  }

  private int fill(UUID recipient) {
    int taken = 0;
    while (take(10, recipient)) {
      taken += 10;
    }
    return taken;
  }

  @Test
  void a_recipient_alone_leaves_half() {
    assertThat(fill(ONE)).isEqualTo(500);
    assertThat(fill(TWO)).isEqualTo(250);
  }

  @Test
  void however_many_queues_are_full_something_is_left() {
    for (int recipient = 10; recipient < 14; recipient++) {
      assertThat(fill(new UUID(0, recipient))).isPositive();
    }
    assertThat(take(10, TWO)).isTrue();
  }

  @Test
  void a_body_for_several_counts_for_each_and_once_in_all() {
    for (int i = 0; i < 50; i++) {
      assertThat(take(10, ONE, TWO)).as("%d", i).isTrue();
    }
    assertThat(take(10, ONE)).isFalse();
    assertThat(take(10, TWO)).isFalse();
    assertThat(take(10, ONE, TWO)).isFalse();
    assertThat(take(500)).as("all the rest").isTrue();
    assertThat(take(1)).isFalse();
  }

  @Test
  void a_body_waits_for_all_of_its_recipients_if_one_of_them_has_room() {
    fill(ONE);
    assertThat(take(10, ONE, TWO)).isTrue();
    assertThat(places.getLast().owners()).containsExactly(TWO);
  }

  @Test
  void a_body_that_was_sent_takes_no_room_any_more() {
    fill(ONE);
    places.forEach(room::giveBack);
    assertThat(fill(ONE)).isEqualTo(500);
  }

  @Test
  void what_is_refused_takes_nothing() {
    fill(ONE);
    assertThat(take(10, ONE)).isFalse();
    assertThat(fill(TWO)).isEqualTo(250);
  }
}
