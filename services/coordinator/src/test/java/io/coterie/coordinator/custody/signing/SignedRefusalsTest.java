package io.coterie.coordinator.custody.signing;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.TestEvidence;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The receipts that fit into an error, whatever parties give. */
class SignedRefusalsTest {
  private static final RefusalReason LONGEST = RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN;
  private static final String NAME = "x".repeat(63);

  private static final Roster ROSTER =
      new Roster(
          NAME,
          1,
          IntStream.rangeClosed(1, 20)
              .mapToObj(
                  id ->
                      new Member(
                          "p" + id,
                          Member.Role.PARTY,
                          id,
                          "eu",
                          new UUID(1, id),
                          1,
                          new byte[33],
                          TestEvidence.publicKey(id)))
              .toList());

  private static final VerifiedIntent.Signing INTENT =
      new VerifiedIntent.Signing(
          NAME,
          ByteString.copyFrom(new byte[32]),
          SignedIntent.getDefaultInstance(),
          SigningIntent.newBuilder()
              .setRequestId(RequestId.next())
              .setKey("keys/" + NAME)
              .setInstallation(NAME)
              .setKeyFingerprint(ByteString.copyFrom(new byte[16]))
              .setReshareEpoch(Integer.MAX_VALUE)
              .build());

  private static SignedReceipt says(int party, long unixMs) {
    Receipt receipt = Receipts.refused(Receipts.Refusable.of(INTENT, NAME), LONGEST, unixMs, party);
    return TestEvidence.receipt(party, receipt.toBuilder());
  }

  private static void hear(SignedRefusals refusals, int party, SignedReceipt receipt) {
    refusals.hear(
        new SessionOutcome.Refused(
            Map.of(party, LONGEST), Map.of(party, ""), Map.of(party, receipt)),
        ROSTER);
  }

  @Test
  void the_longest_of_twenty_parties_leave_room_in_the_trailers() {
    SignedRefusals refusals = new SignedRefusals(INTENT);
    IntStream.iterate(20, id -> id >= 1, id -> id - 1)
        .forEach(party -> hear(refusals, party, says(party, 1)));
    List<SignedReceipt> some = refusals.receipts();
    assertThat(some.stream().mapToInt(SignedReceipt::getSerializedSize).sum())
        .isLessThanOrEqualTo(SignedRefusals.MAX_BYTES);
    assertThat(some).hasSizeGreaterThanOrEqualTo(4).first().isEqualTo(says(1, 1));
    assertThat(
            StatusErrors.status(ErrorReason.FORBIDDEN, Map.of(), some).getSerializedSize() * 4 / 3)
        .isLessThan(5 * 1024);
  }

  @Test
  void the_last_word_of_a_party_counts_and_no_forged_one_after_it() {
    SignedRefusals refusals = new SignedRefusals(INTENT);
    hear(refusals, 3, says(3, 1));
    hear(refusals, 3, says(3, 2));
    hear(refusals, 3, says(4, 3));
    hear(refusals, 4, says(3, 3));
    assertThat(refusals.receipts()).containsExactly(says(3, 2));
  }
}
