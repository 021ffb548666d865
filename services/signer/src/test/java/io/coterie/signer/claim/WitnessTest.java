package io.coterie.signer.claim;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerPosition;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The other parties whose answers a session waits for. */
class WitnessTest {
  private enum Does {
    COVERS,
    LAGS,
    IS_SILENT,
    WAS_NOT_ASKED
  }

  /** Two parties outside the signing set and one inside, in every state. */
  @Test
  void every_peer_and_one_outsider_remember() {
    LedgerPosition now = LedgerPosition.NONE.next(new byte[LedgerPosition.HASH_BYTES]);
    for (int claim = 0; claim < 5; claim++) {
      now = now.claimed(ByteString.EMPTY);
    }
    int cases = 0;
    for (Does peer : Does.values()) {
      for (Does third : Does.values()) {
        for (Does fourth : Does.values()) {
          for (Set<Integer> reachable : List.of(Set.of(2), Set.of(2, 3), Set.of(2, 3, 4))) {
            Map<Integer, Witness> witnesses = new HashMap<>();
            put(witnesses, 2, peer, now);
            put(witnesses, 3, third, now);
            put(witnesses, 4, fourth, now);
            List<Does> outside = new ArrayList<>();
            if (reachable.contains(3)) {
              outside.add(third);
            }
            if (reachable.contains(4)) {
              outside.add(fourth);
            }
            outside.removeIf(Does.IS_SILENT::equals);
            boolean others = outside.isEmpty() || outside.contains(Does.COVERS);
            assertThat(Witness.enough(now.mark(), now.claims(), List.of(2), reachable, witnesses))
                .as("%s, %s, %s, %s", peer, third, fourth, reachable)
                .isEqualTo(peer == Does.COVERS && others);
            cases++;
          }
        }
      }
    }
    assertThat(cases).isEqualTo(4 * 4 * 4 * 3);
  }

  private static void put(Map<Integer, Witness> all, int party, Does does, LedgerPosition now) {
    if (does == Does.WAS_NOT_ASKED) {
      return;
    }
    Witness witness = new Witness(0);
    switch (does) {
      case COVERS -> {
        witness.ask(now, 0);
        witness.answers(now);
      }
      case LAGS -> {
        LedgerPosition earlier =
            new LedgerPosition(
                now.log(), now.starts(), now.mark(), now.base(), now.claims() - 1, now.hash());
        witness.ask(earlier, 0);
        witness.answers(earlier);
        witness.ask(now, 0);
        witness.answers(earlier); // what it was not asked for is no answer
      }
      case IS_SILENT -> {
        witness.ask(now, 0);
        witness.tick(TimeUnit.HOURS.toNanos(1));
      }
      case WAS_NOT_ASKED -> {}
    }
    all.put(party, witness);
  }
}
