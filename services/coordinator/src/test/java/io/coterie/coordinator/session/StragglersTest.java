package io.coterie.coordinator.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.party.v1.TimedOut;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class StragglersTest {
  private static final Set<Integer> ALL = Set.of(1, 2, 3);
  private static final int DONE = Integer.MAX_VALUE;

  private static TimedOut in(int round, Integer... missing) {
    return TimedOut.newBuilder().setRound(round).addAllMissing(List.of(missing)).build();
  }

  private static Set<Integer> of(Map<Integer, TimedOut> waited, Map<Integer, Integer> reached) {
    return Stragglers.of(waited, reached, ALL, 2);
  }

  @Test
  void who_is_not_heard_of_is_named_alone() {
    assertThat(of(Map.of(1, in(3, 2), 2, in(3, 3)), Map.of())).containsExactly(3);
  }

  @Test
  void recipient_of_a_withheld_message_is_never_named_alone() {
    // 3 has kept its private message of round 3 from 1, which therefore sends nothing in round 4.
    assertThat(of(Map.of(1, in(3, 3), 2, in(4, 1), 3, in(4, 1)), Map.of()))
        .containsExactlyInAnyOrder(1, 3);
    assertThat(of(Map.of(1, in(3, 3), 2, in(4, 1)), Map.of(3, DONE)))
        .containsExactlyInAnyOrder(1, 3);
    // The one that withheld says that it waits for the one it kept waiting.
    assertThat(of(Map.of(1, in(3, 3), 2, in(4, 1), 3, in(3, 1)), Map.of()))
        .containsExactlyInAnyOrder(1, 3);
  }

  @Test
  void whom_an_honest_party_must_have_missed_is_named_alone() {
    assertThat(of(Map.of(1, in(2, 3), 2, in(2, 3), 3, in(2, 1)), Map.of())).containsExactly(3);
    assertThat(of(Map.of(1, in(2, 3), 2, in(2, 3)), Map.of(3, 2))).containsExactly(3);
  }

  @Test
  void every_edge_without_a_reason_counts() {
    assertThat(of(Map.of(1, in(2, 2), 2, in(2, 3), 3, in(2)), Map.of()))
        .containsExactlyInAnyOrder(1, 2, 3);
  }

  @Test
  void if_all_have_a_reason_both_ends_of_every_edge_count() {
    assertThat(of(Map.of(1, in(2, 3)), Map.of(2, DONE, 3, 1))).containsExactlyInAnyOrder(1, 3);
    assertThat(of(Map.of(1, in(2), 2, in(1)), Map.of(3, DONE))).isEmpty();
    assertThat(of(Map.of(1, in(2, 77, 3)), Map.of(2, DONE, 3, 1))).containsExactlyInAnyOrder(1, 3);
  }
}
