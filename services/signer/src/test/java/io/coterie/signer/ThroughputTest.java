package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.custody.v1.SignedIntent;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Many at once: everything is signed once, claims share fsyncs, and nothing stays behind. */
class ThroughputTest {
  private static final int SIGNATURES = 400;
  private static final int IN_FLIGHT = 32;

  @TempDir Path folder;

  @Test
  void many_sessions_at_once() {
    FakeCore core = new FakeCore();
    try (Installation i = Installation.with(folder, core).start()) {
      i.createKey("keys/main", 2);
      List<SignedIntent> intents = new ArrayList<>();
      for (int n = 0; n < SIGNATURES; n++) {
        intents.add(i.signed(i.signingIntent(Installation.requestId(), "keys/main", "m" + n)));
      }
      double claimsBefore = commits(i);
      // The key generation's own runs, which hear notices until its deadline.
      int listening = core.open.get();
      long began = System.nanoTime();
      Set<SessionId> open = new HashSet<>();
      for (SignedIntent intent : intents) {
        if (open.size() == IN_FLIGHT) {
          Installation.until("one more is done", () -> open.removeIf(s -> done(i, s)));
        }
        open.add(i.coordinator.give(i.coordinator.signOrder(intent, "keys/main", 2, 1, 2).build()));
      }
      Installation.until(
          "all are done",
          () -> {
            open.removeIf(s -> done(i, s));
            return open.isEmpty();
          });
      double seconds = (System.nanoTime() - began) / 1e9;
      Installation.until(
          "both have ended every session",
          () ->
              i.party("alpha").live() == 0
                  && i.party("bravo").live() == 0
                  && core.open.get() <= listening);
      double commits = commits(i) - claimsBefore;
      System.out.printf(
          "%d signatures in %.2f s (%.0f/s), %.0f commits at alpha%n",
          SIGNATURES, seconds, SIGNATURES / seconds, commits);
      assertThat(commits).as("claims share commits").isLessThan(SIGNATURES);
      assertThat(
              i
                  .party("alpha")
                  .meters
                  .find("coterie.sessions")
                  .tag("outcome", "contributed")
                  .counters()
                  .stream()
                  .mapToDouble(c -> c.count())
                  .sum())
          .isEqualTo(SIGNATURES);
    }
  }

  private static boolean done(Installation i, SessionId session) {
    return i.coordinator.partials(session) == 2;
  }

  private static double commits(Installation i) {
    return i.party("alpha").meters.get("coterie.store.commit").timer().count();
  }
}
