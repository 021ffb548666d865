package io.coterie.signer.claim;

import static org.assertj.core.api.Assertions.assertThat;

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
  void every_peer_and_one_outsider_remember_and_at_a_start_all_outsiders() {
    LedgerPosition start = LedgerPosition.NONE.next(new byte[LedgerPosition.HEAD_BYTES]);
    LedgerPosition now = new LedgerPosition(start.starts(), start.head(), start.base(), 5);
    int cases = 0;
    for (Does peer : Does.values()) {
      for (Does third : Does.values()) {
        for (Does fourth : Does.values()) {
          for (Set<Integer> reachable : List.of(Set.of(2), Set.of(2, 3), Set.of(2, 3, 4))) {
            for (boolean fresh : new boolean[] {true, false}) {
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
              boolean others =
                  fresh
                      ? outside.stream().allMatch(Does.COVERS::equals)
                      : outside.isEmpty() || outside.contains(Does.COVERS);
              assertThat(
                      Witness.enough(
                          now.head(), now.claims(), List.of(2), reachable, fresh, witnesses))
                  .as("%s, %s, %s, %s, fresh %s", peer, third, fourth, reachable, fresh)
                  .isEqualTo(peer == Does.COVERS && others);
              cases++;
            }
          }
        }
      }
    }
    assertThat(cases).isEqualTo(4 * 4 * 4 * 3 * 2);
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
            new LedgerPosition(now.starts(), now.head(), now.base(), now.claims() - 1);
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
