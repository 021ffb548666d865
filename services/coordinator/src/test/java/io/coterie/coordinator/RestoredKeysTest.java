package io.coterie.coordinator;

import static io.coterie.coordinator.StoreContractTest.NOW;
import static io.coterie.coordinator.StoreContractTest.PARTIES;
import static io.coterie.coordinator.StoreContractTest.creation;
import static io.coterie.coordinator.StoreContractTest.made;
import static io.coterie.coordinator.StoreContractTest.renewal;
import static io.coterie.coordinator.StoreContractTest.started;
import static io.coterie.coordinator.StoreContractTest.stored;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.StoreContractTest.Database;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyRecord.Holder;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.RestoredKey;
import io.coterie.coordinator.custody.key.RestoredKey.Fate;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Keys that an earlier database had, in the stores of {@link StoreContractTest}. */
class RestoredKeysTest {
  private static final VerificationShare SHARE = VerificationShare.newBuilder().setParty(1).build();

  @ParameterizedTest
  @MethodSource("io.coterie.coordinator.StoreContractTest#databases")
  void a_key_of_an_earlier_database_is_stored_unless_it_is_there(Database database) {
    Replica here = database.apply("here");
    KeyRecord kept = creation("kept").active(made(3), 0);
    assertThat(fate(here, kept)).isEqualTo(Fate.WRITTEN);
    KeyRecord stored = here.keys().find("keys/kept").orElseThrow();
    assertThat(stored).isEqualTo(kept.withId(stored.id()));
    assertThat(fate(here, kept)).as("again").isEqualTo(Fate.SAME);
    assertThat(fate(here, creation("kept").active(made(4), 0)))
        .as("another of its name")
        .isEqualTo(Fate.NAME_TAKEN);
    KeyRecord renamed =
        KeyRecord.creating(kept.header(), "keys/renamed", kept.scheme(), 2, PARTIES);
    assertThat(fate(here, renamed.active(made(1), 0)))
        .as("of a request that made another one")
        .isEqualTo(Fate.REQUEST_TAKEN);
    assertThat(here.keys().find("keys/renamed")).isEmpty();
    KeyRecord running = stored(here, creation("running"));
    assertThat(fate(here, running.active(made(1), 0).withId(0)))
        .as("of a name that is being made")
        .isEqualTo(Fate.NAME_TAKEN);
    assertThat(here.keys().find("keys/kept")).contains(stored);
    assertThat(here.keys().takeAll(true)).as("nothing is left to do").doesNotContain(stored);
    // The renewal of such a key goes on from its epoch.
    assertThat(started(here, renewal("kept", 3)).fromEpoch()).isEqualTo(3);
  }

  private static Fate fate(Replica here, KeyRecord kept) {
    return here.keys().restore(List.of(kept)).getFirst().fate();
  }

  @ParameterizedTest
  @MethodSource("io.coterie.coordinator.StoreContractTest#databases")
  void a_later_epoch_of_a_kept_key_takes_the_place_of_an_earlier_one(Database database) {
    Replica here = database.apply("here");
    KeyRecord old = creation("older").active(made(3), 0);
    KeyRecord other = creation("beside").active(made(1), 0);
    KeyRecord later =
        new KeyRecord(
            0,
            old.header(),
            old.name(),
            old.scheme(),
            1,
            List.of(new Holder(2, "p2"), new Holder(3, "p3")),
            old.state(),
            0,
            made(5),
            null);
    assertThat(fate(here, old)).isEqualTo(Fate.WRITTEN);
    here.keys().exclude(old.name(), 1, "CAUSE", new byte[32], NOW);
    assertThat(here.keys().restore(List.of(later, other)))
        .containsExactly(
            new RestoredKey("keys/older", 5, Fate.RENEWED),
            new RestoredKey("keys/beside", 1, Fate.WRITTEN));
    KeyRecord stored = here.keys().find("keys/older").orElseThrow();
    assertThat(stored).isEqualTo(later.withId(stored.id()));
    assertThat(here.keys().excluded("keys/older")).as("from shares of before").isEmpty();
    assertThat(fate(here, old)).isEqualTo(Fate.LATER_HERE);
    assertThat(here.keys().find("keys/older")).contains(stored);

    MadeKey fork =
        TestEvidence.unattested(
            KeyPublic.newBuilder()
                .setEpoch(5)
                .setThreshold(2)
                .addVerificationShares(SHARE)
                .build());
    assertThat(fate(here, old.active(fork, 0))).isEqualTo(Fate.OTHER_SHARES);
    started(here, renewal("older", 5));
    assertThat(fate(here, old.active(made(6), 0))).isEqualTo(Fate.RENEWING);
    assertThat(here.keys().find("keys/older")).contains(stored);
  }

  @Test
  void kept_keys_are_stored_all_together_or_not_at_all() {
    Replica here = StoreContractTest.replica(StoreContractTest.postgres(), "here");
    KeyRecord good = creation("good").active(made(1), 0);
    KeyRecord bad = creation("NO NAME").active(made(1), 0);
    assertThatThrownBy(() -> here.keys().restore(List.of(good, bad)))
        .isInstanceOf(StoreUnavailableException.class);
    assertThat(here.keys().find("keys/good")).isEmpty();
  }
}
