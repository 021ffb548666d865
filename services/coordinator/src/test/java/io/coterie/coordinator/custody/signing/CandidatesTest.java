package io.coterie.coordinator.custody.signing;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.TestEvidence;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The parties that are asked for a signature after earlier sessions failed. */
class CandidatesTest {
  private static final Instant NOW = Instant.parse("2030-01-01T00:00:00Z");
  private static final KeyRecord KEY =
      new KeyRecord(
          1,
          new RequestHeader(
              "wallet",
              RequestId.next(),
              ByteString.EMPTY,
              SignedIntent.getDefaultInstance(),
              NOW,
              NOW),
          "keys/test",
          Scheme.SCHEME_ED25519,
          2,
          IntStream.rangeClosed(1, 4).mapToObj(i -> new KeyRecord.Holder(i, "p" + i)).toList(),
          Key.State.ACTIVE,
          1,
          TestEvidence.unattested(KeyPublic.getDefaultInstance()),
          null);

  /** Party 4 is not in the roster. */
  private static final Roster ROSTER =
      new Roster("test", 1, IntStream.rangeClosed(1, 3).mapToObj(CandidatesTest::member).toList());

  private final Candidates candidates = new Candidates(Set.of());

  private static Member member(int id) {
    byte[] identity = new byte[33];
    identity[1] = (byte) id;
    return new Member(
        "p" + id, Member.Role.PARTY, id, "local", new UUID(0, id), 1, identity, new byte[32]);
  }

  private List<Integer> asked() {
    return candidates.among(KEY, ROSTER).stream().map(Member::partyId).toList();
  }

  private String party(Failure failure) {
    return failure.metadata().get(StatusErrors.PARTY);
  }

  @Test
  void holders_in_the_roster_are_asked_unless_they_refused_or_are_excluded() {
    assertThat(asked()).containsExactly(1, 2, 3);
    assertThat(candidates.left(KEY)).isEqualTo(4);
    candidates.refused(1, RefusalReason.REFUSAL_REASON_FORBIDDEN, "");
    candidates.exclude(Set.of(3));
    assertThat(asked()).containsExactly(2);
    assertThat(candidates.left(KEY)).isEqualTo(2);
  }

  @Test
  void a_party_that_refused_and_is_excluded_is_missing_once() {
    candidates.refused(1, RefusalReason.REFUSAL_REASON_FORBIDDEN, "");
    candidates.exclude(Set.of(1, 9));
    assertThat(candidates.left(KEY)).isEqualTo(3);
  }

  @Test
  void a_party_that_failed_more_often_ranks_behind() {
    candidates.failed(Set.of(2), candidates.among(KEY, ROSTER));
    candidates.failed(Set.of(), candidates.among(KEY, ROSTER));
    assertThat(candidates.ranks(NOW))
        .containsEntry(1, 1)
        .containsEntry(2, 2)
        .containsEntry(3, 1)
        .doesNotContainKey(4);
  }

  @Test
  void a_witness_ranks_first_until_its_session_is_settled() {
    candidates.failed(3);
    candidates.witnesses(Set.of(3), NOW);
    assertThat(candidates.ranks(NOW)).containsEntry(3, -1);
    assertThat(candidates.isWitness(3, NOW.minusMillis(1))).isTrue();
    assertThat(candidates.isWitness(3, NOW)).isFalse();
    assertThat(candidates.isWitness(2, NOW.minusMillis(1))).isFalse();
    assertThat(candidates.ranks(NOW.plusMillis(1))).containsEntry(3, 1);
  }

  @Test
  void parties_at_an_epoch_of_their_own_are_asked_last() {
    candidates.atOtherEpoch(2);
    assertThat(candidates.someAtOtherEpoch()).isTrue();
    candidates.learned(false, Set.of());
    assertThat(candidates.someAtOtherEpoch()).isFalse();
    assertThat(candidates.ranks(NOW)).containsEntry(2, 1);
    candidates.atOtherEpoch(1);
    candidates.learned(true, Set.of());
    assertThat(candidates.ranks(NOW)).doesNotContainKey(1);
  }

  @Test
  void new_shares_lift_exclusions_and_keep_refusals() {
    candidates.exclude(Set.of(1));
    candidates.refused(2, RefusalReason.REFUSAL_REASON_FORBIDDEN, "");
    candidates.learned(true, Set.of(3));
    assertThat(asked()).containsExactly(1);
  }

  @Test
  void a_request_without_candidates_names_who_refused_was_excluded_or_is_unknown() {
    Failure unknown = candidates.exhausted("resource", KEY, Set.of());
    assertThat(unknown.reason()).isEqualTo(ErrorReason.PARTY_UNKNOWN);
    assertThat(party(unknown)).isEqualTo("p1,p2,p3,p4");
    candidates.exclude(Set.of(3, 9));
    Failure misbehaved = candidates.exhausted("resource", KEY, Set.of());
    assertThat(misbehaved.reason()).isEqualTo(ErrorReason.PARTY_MISBEHAVED);
    assertThat(party(misbehaved)).isEqualTo("p3");
    Failure behind = candidates.exhausted("resource", KEY, Set.of(3, 4));
    assertThat(behind.reason()).isEqualTo(ErrorReason.KEY_NEEDS_REFRESH);
    assertThat(party(behind)).isEqualTo("p3");
    candidates.refused(1, RefusalReason.REFUSAL_REASON_FORBIDDEN, "");
    Failure refused = candidates.exhausted("resource", KEY, Set.of());
    assertThat(refused.reason()).isEqualTo(ErrorReason.FORBIDDEN);
    assertThat(party(refused)).isEqualTo("p1");
  }
}
