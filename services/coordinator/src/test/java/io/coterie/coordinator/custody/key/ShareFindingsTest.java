package io.coterie.coordinator.custody.key;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.custody.key.KeyRecord.Holder;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.RefusalReason;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Whether work on shares goes on after a session. */
class ShareFindingsTest {
  private static final Failure WHY = Failure.of(ErrorReason.SESSION_FAILED, "keys/test");

  private static List<Holder> holders(int... ids) {
    return Arrays.stream(ids).mapToObj(id -> new Holder(id, "p" + id)).toList();
  }

  private static KeyPublic threshold(int threshold) {
    return KeyPublic.newBuilder().setEpoch(1).setThreshold(threshold).build();
  }

  private static ShareWork work(ShareWork.Change change, int... parties) {
    return new ShareWork(
        change,
        "keys/test",
        Scheme.SCHEME_ED25519,
        2,
        holders(parties),
        SignedIntent.getDefaultInstance(),
        Instant.MAX);
  }

  private static ShareFindings findings(ShareWork.Change change, int... parties) {
    return new ShareFindings(work(change, parties), false);
  }

  private static ShareWork.Change refresh() {
    return new ShareWork.Refresh(threshold(2));
  }

  /** From parties 1 to 4 and threshold 3. */
  private static ShareWork.Change reshare() {
    return new ShareWork.Reshare(threshold(3), holders(1, 2, 3, 4));
  }

  private static SessionOutcome refused(int party, RefusalReason reason) {
    return new SessionOutcome.Refused(Map.of(party, reason), Map.of());
  }

  private static SessionOutcome aborted(int culprit) {
    return new SessionOutcome.Aborted(
        2, AbortCause.ABORT_CAUSE_WRONG_SHARE, Set.of(culprit), Set.of(), false, false);
  }

  @Test
  void a_refusal_for_good_ends_the_task_and_names_the_party() {
    Failure end =
        findings(new ShareWork.NewKey(), 1, 2)
            .learn(refused(2, RefusalReason.REFUSAL_REASON_FORBIDDEN), WHY, false);
    assertThat(end).isNotNull();
    assertThat(end.reason()).isEqualTo(ErrorReason.FORBIDDEN);
    assertThat(end.metadata()).containsEntry(StatusErrors.PARTY, "p2");
  }

  @Test
  void a_party_with_too_much_to_do_is_asked_again() {
    assertThat(
            findings(new ShareWork.NewKey(), 1, 2)
                .learn(refused(2, RefusalReason.REFUSAL_REASON_OVERLOADED), WHY, false))
        .isNull();
  }

  @Test
  void an_intent_that_only_the_order_made_late_has_not_expired() {
    SessionOutcome late = refused(2, RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(findings(refresh(), 1, 2).learn(late, WHY, false)).isNull();
    Failure end = findings(refresh(), 1, 2).learn(late, WHY, true);
    assertThat(end).isNotNull();
    assertThat(end.reason()).isEqualTo(ErrorReason.INTENT_EXPIRED);
  }

  @Test
  void a_culprit_ends_a_key_creation_at_once_and_a_renewal_the_second_time() {
    assertThat(findings(new ShareWork.NewKey(), 1, 2).learn(aborted(2), WHY, false)).isEqualTo(WHY);
    ShareFindings renewal = findings(refresh(), 1, 2);
    assertThat(renewal.learn(aborted(2), WHY, false)).isNull();
    assertThat(renewal.learn(aborted(1), WHY, false)).isNull();
    assertThat(renewal.learn(aborted(2), WHY, false)).isEqualTo(WHY);
  }

  @Test
  void a_renewal_that_was_ordered_fails_only_once_a_party_shows_that_it_lacks_a_share() {
    ShareFindings resumed = new ShareFindings(work(refresh(), 1, 2), true);
    assertThat(resumed.mayFail()).isFalse();
    resumed.learn(new SessionOutcome.TimedOut(0, Set.of(2)), WHY, false);
    assertThat(resumed.mayFail()).as("nobody took part").isFalse();
    resumed.learn(new SessionOutcome.Undecided(Set.of()), WHY, false);
    assertThat(resumed.mayFail()).isFalse();
    resumed.learn(new SessionOutcome.Undecided(Set.of(1)), WHY, false);
    assertThat(resumed.mayFail()).isTrue();
    resumed.learn(new SessionOutcome.TimedOut(0, Set.of(1, 2)), WHY, false);
    assertThat(resumed.mayFail()).as("a later session says nothing").isFalse();
    resumed.learn(new SessionOutcome.TimedOut(1, Set.of(2)), WHY, false);
    assertThat(resumed.mayFail()).isTrue();
    assertThat(findings(refresh(), 1, 2).mayFail()).as("nothing was ordered").isTrue();
    assertThat(new ShareFindings(work(new ShareWork.NewKey(), 1), true).mayFail()).isTrue();
  }

  @Test
  void a_party_that_may_have_forgotten_the_request_shows_nothing() {
    ShareFindings resumed = new ShareFindings(work(refresh(), 1, 2), true);
    SessionOutcome fenced = refused(2, RefusalReason.REFUSAL_REASON_FENCED);
    assertThat(resumed.learn(fenced, WHY, false)).isNull();
    assertThat(resumed.mayFail()).as("it may hold a share").isFalse();
    resumed.learn(refused(2, RefusalReason.REFUSAL_REASON_OVERLOADED), WHY, false);
    assertThat(resumed.mayFail()).isTrue();
  }

  @Test
  void dealers_suffice_from_the_old_threshold_on_if_fewer_are_left_behind_with_an_old_share() {
    ShareFindings all = findings(reshare(), 5, 6);
    assertThat(all.canDeal(Set.of(1, 2, 3, 4))).isTrue();
    assertThat(all.canDeal(Set.of(1, 2, 3))).isTrue();
    assertThat(all.canDeal(Set.of(1, 2))).isFalse();
    ShareFindings six = findings(new ShareWork.Reshare(threshold(2), holders(1, 2, 3, 4)), 3, 5);
    assertThat(six.canDeal(Set.of(1, 2))).as("4 alone keeps an old share").isTrue();
    assertThat(six.canDeal(Set.of(3, 4))).as("1 and 2 could sign").isFalse();
  }

  @Test
  void a_dealer_without_its_share_is_left_out_while_the_others_suffice() {
    ShareFindings findings = findings(reshare(), 5, 6);
    assertThat(findings.learn(refused(4, RefusalReason.REFUSAL_REASON_UNKNOWN_KEY), WHY, false))
        .isNull();
    assertThat(findings.dealers()).containsExactlyInAnyOrder(1, 2, 3);
    Failure end = findings.learn(refused(3, RefusalReason.REFUSAL_REASON_WRONG_EPOCH), WHY, false);
    assertThat(end).isNotNull();
    assertThat(end.reason()).isEqualTo(ErrorReason.EPOCH_MISMATCH);
    assertThat(end.metadata()).containsEntry(StatusErrors.PARTY, "p3");
  }
}
