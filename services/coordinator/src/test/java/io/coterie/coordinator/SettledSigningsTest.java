package io.coterie.coordinator;

import static io.coterie.coordinator.StoreContractTest.NOW;
import static io.coterie.coordinator.StoreContractTest.WHY;
import static io.coterie.coordinator.StoreContractTest.digest;
import static io.coterie.coordinator.StoreContractTest.signed;
import static io.coterie.coordinator.StoreContractTest.signing;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.StoreContractTest.Database;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.proto.custody.v1.SignedReceipt;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The ends of signings that parties show, in every store. */
class SettledSigningsTest {
  @ParameterizedTest
  @MethodSource("io.coterie.coordinator.StoreContractTest#databases")
  void a_signing_gets_the_end_that_its_parties_show_and_a_signature_outlasts_all(
      Database database) {
    Replica here = database.apply("here");
    SigningRecord pending = signing();
    assertThat(here.signings().settle(pending.notSigned(receipts(1), NOW))).isEmpty();
    here.signings().claimOnce(pending);
    SigningRecord never = pending.notSigned(receipts(2), NOW);
    assertThat(here.signings().settle(never)).contains(never);
    assertThat(here.signings().find(pending.id())).contains(never);
    assertThat(here.signings().finish(pending.unknown(WHY, 9, NOW)))
        .as("no end of the coordinator's takes its place")
        .isEqualTo(never);
    SigningRecord more = pending.notSigned(receipts(3), NOW.plusSeconds(1));
    assertThat(here.signings().settle(more)).contains(more);
    SigningRecord signed = signed(pending, 1);
    assertThat(here.signings().settle(signed)).as("it disproves them").contains(signed);
    assertThat(here.signings().settle(more)).contains(signed);

    SigningRecord other = signing();
    here.signings().claimOnce(other);
    here.signings().finish(other.unknown(WHY, 9, NOW));
    SigningRecord after = other.notSigned(receipts(2), NOW.plusSeconds(2));
    assertThat(here.signings().settle(after)).contains(after);
  }

  private static List<SignedReceipt> receipts(int number) {
    return IntStream.range(0, number)
        .mapToObj(i -> SignedReceipt.newBuilder().setPayload(digest(i)).build())
        .toList();
  }
}
