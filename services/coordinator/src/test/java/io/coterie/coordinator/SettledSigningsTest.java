package io.coterie.coordinator;

import static io.coterie.coordinator.StoreContractTest.NOW;
import static io.coterie.coordinator.StoreContractTest.WHY;
import static io.coterie.coordinator.StoreContractTest.digest;
import static io.coterie.coordinator.StoreContractTest.signed;
import static io.coterie.coordinator.StoreContractTest.signing;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.StoreContractTest.Database;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.SignedReceipt;
import java.util.Collections;
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

  @ParameterizedTest
  @MethodSource("io.coterie.coordinator.StoreContractTest#databases")
  void a_signing_without_an_end_that_is_known_begins_again_once_with_other_approvals(
      Database database) {
    Replica here = database.apply("here");
    List<ByteString> first = approvals(1, 1);
    List<ByteString> second = approvals(2, 32);
    SigningRecord pending = signing().approved(first);
    here.signings().claimOnce(pending);
    assertThat(here.signings().find(pending.id())).contains(pending);
    assertThat(here.signings().reopen(pending, second)).as("it has not ended").isEmpty();
    SigningRecord ended = pending.unknown(WHY, 9, NOW);
    here.signings().finish(ended);
    SigningRecord again = pending.approved(second);
    assertThat(here.signings().reopen(ended, second)).contains(again);
    assertThat(here.signings().find(pending.id())).contains(again);
    assertThat(here.signings().take(pending.id())).as("it is work of this replica").contains(again);
    assertThat(here.signings().reopen(ended, first)).as("as it is not any more").isEmpty();
    SigningRecord signed = signed(again, 1);
    assertThat(here.signings().finish(signed)).isEqualTo(signed);
    assertThat(here.signings().reopen(signed, first)).isEmpty();
    assertThat(here.signings().find(pending.id())).contains(signed);
    assertThat(here.signings().list(pending.key(), null, null, 200))
        .filteredOn(listed -> listed.id().equals(pending.id()))
        .singleElement()
        .matches(listed -> listed.approvals().isEmpty(), "a page has none");
  }

  private static List<ByteString> approvals(int first, int number) {
    byte[] bytes = new byte[IntentVerifier.APPROVAL_BYTES];
    bytes[0] = (byte) first;
    return Collections.nCopies(number, ByteString.copyFrom(bytes));
  }

  private static List<SignedReceipt> receipts(int number) {
    return IntStream.range(0, number)
        .mapToObj(i -> SignedReceipt.newBuilder().setPayload(digest(i)).build())
        .toList();
  }
}
