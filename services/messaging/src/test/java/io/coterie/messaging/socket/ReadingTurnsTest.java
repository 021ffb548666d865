package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ReadingTurnsTest {
  private final ReadingTurns turns = new ReadingTurns();

  @Test
  void one_turn_waits_however_often_more_comes() {
    assertThat(turns.await()).isTrue();
    assertThat(turns.await()).isFalse();
    turns.begin();
    assertThat(turns.end(false)).isFalse();
    assertThat(turns.await()).as("that turn is over").isTrue();
  }

  @Test
  void what_comes_during_a_turn_is_read_in_the_next_by_the_same_thread() {
    turns.await();
    turns.begin();
    assertThat(turns.await()).as("another thread has to wait for the first").isFalse();
    assertThat(turns.await()).isFalse();
    assertThat(turns.end(false)).isTrue();
    assertThat(turns.await()).as("the next turn waits").isFalse();
    turns.begin();
    assertThat(turns.end(false)).isFalse();
  }

  @Test
  void what_a_turn_leaves_unread_is_read_in_the_next() {
    turns.await();
    turns.begin();
    assertThat(turns.end(true)).isTrue();
    assertThat(turns.await()).isFalse();
  }
}
