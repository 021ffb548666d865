package io.coterie.signer.nativecore;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.nativecore.CircuitRoom.Use;
import io.coterie.signer.order.RefusedException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The circuits that runs hold are bounded, for each peer and for all. */
class CircuitRoomTest {
  private final CircuitRoom room = new CircuitRoom();

  private void refused(int peer, int blocks, Use use) {
    assertThatExceptionOfType(RefusedException.class)
        .isThrownBy(() -> room.take(peer, blocks, use))
        .satisfies(
            refused ->
                assertThat(refused.reason()).isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED));
  }

  @Test
  void a_peer_takes_no_more_than_its_runs_and_blocks_and_leaves_room_to_others()
      throws RefusedException {
    List<CircuitRoom.Place> runs = new ArrayList<>();
    for (int run = 0; run < CircuitRoom.MAX_PREPARING_WITH_PEER; run++) {
      runs.add(room.take(2, 1, Use.PREPARES));
    }
    refused(2, 1, Use.PREPARES);
    refused(2, 1, Use.BACKGROUND);
    // Those that use what was prepared do not count among these.
    int left = CircuitRoom.MAX_BLOCKS_OF_PEER - runs.size();
    CircuitRoom.Place used = room.take(2, left, Use.PREPARED);
    refused(2, 1, Use.PREPARED);
    CircuitRoom.Place longest = room.take(3, CircuitRoom.MAX_BLOCKS_OF_PEER, Use.PREPARES);
    refused(3, 1, Use.PREPARES);
    used.close();
    runs.getFirst().close();
    runs.getFirst().close();
    room.take(2, 1, Use.PREPARES);
    refused(2, 1, Use.PREPARES);
    longest.close();
    room.take(3, CircuitRoom.MAX_BLOCKS_OF_PEER, Use.PREPARES);
  }

  @Test
  void all_peers_together_have_a_bound_and_what_nobody_waits_for_has_half()
      throws RefusedException {
    for (int peer = 0; peer < CircuitRoom.MAX_BLOCKS_IN_BACKGROUND; peer++) {
      room.take(peer, 1, Use.BACKGROUND);
    }
    refused(100, 1, Use.BACKGROUND);
    List<CircuitRoom.Place> rest = new ArrayList<>();
    for (int peer = CircuitRoom.MAX_BLOCKS_IN_BACKGROUND; peer < CircuitRoom.MAX_BLOCKS; peer++) {
      rest.add(room.take(peer, 1, Use.PREPARES));
    }
    refused(200, 1, Use.PREPARES);
    refused(200, 1, Use.PREPARED);
    rest.forEach(CircuitRoom.Place::close);
    room.take(200, 1, Use.PREPARES);
  }
}
