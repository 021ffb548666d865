package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.custody.v1.SignedIntent;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The main path: an order makes a key, another has it sign. */
class KeygenAndSignTest {
  @TempDir Path folder;

  @Test
  void three_parties_make_a_key_and_two_sign() {
    try (Installation i = Installation.faked(folder).start()) {
      SignedIntent create = i.signed(i.keyIntent(Installation.requestId(), "keys/main", 2));
      SessionId keygen =
          i.coordinator.give(i.coordinator.keygenOrder(create, "keys/main", 2, 1, 2, 3).build());
      for (String party : new String[] {"alpha", "bravo", "charlie"}) {
        assertThat(i.coordinator.awaitFrom(party, keygen).report().hasCompleted()).isTrue();
      }
      Installation.until(
          "active everywhere", () -> i.parties.stream().allMatch(p -> p.hasActive("keys/main")));

      SignedIntent sign = i.signed(i.signingIntent(Installation.requestId(), "keys/main", "hello"));
      i.coordinator.envelopes.clear();
      SessionId signing =
          i.coordinator.give(i.coordinator.signOrder(sign, "keys/main", 2, 1, 3).build());
      Installation.until("both partials", () -> i.coordinator.envelopes.size() == 2);
      assertThat(i.coordinator.envelopes)
          .allSatisfy(e -> assertThat(e.session()).isEqualTo(signing.bytes()));
      for (String party : new String[] {"alpha", "charlie"}) {
        Installation.until(party + " is done", () -> contributed(i, party) == 1.0);
      }
      assertThat(i.party("bravo").store.audit().read(1, 100))
          .noneMatch(r -> r.event().fields().containsValue("bls_sign"));
    }
  }

  private static double contributed(Installation i, String party) {
    var counter =
        i.party(party)
            .meters
            .find("coterie.sessions")
            .tags("protocol", "bls_sign", "outcome", "contributed")
            .counter();
    return counter == null ? 0 : counter.count();
  }
}
