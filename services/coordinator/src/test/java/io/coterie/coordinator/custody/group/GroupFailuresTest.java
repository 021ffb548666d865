package io.coterie.coordinator.custody.group;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.custody.request.Failure;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.party.v1.GroupKept;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.GroupStepRefused;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.trust.Member;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** The worst of the reports of parties is told, with its cause and its culprit. */
class GroupFailuresTest {
  private static final String NAME = "groups/approvers/epochs/1";
  private static final List<Member> PARTIES =
      List.of(member("alpha", 1), member("bravo", 2), member("charlie", 3));

  private static final GroupReport DONE =
      GroupReport.newBuilder().setGroupKept(GroupKept.getDefaultInstance()).build();

  private static Member member(String name, int id) {
    return new Member(
        name, Member.Role.PARTY, id, "here", UUID.randomUUID(), 1, new byte[33], new byte[32]);
  }

  private static GroupReport refused(RefusalReason reason, int party) {
    return GroupReport.newBuilder()
        .setRefused(
            GroupStepRefused.newBuilder().setReason(reason).setParty(party).setDetail("why"))
        .build();
  }

  private static GroupReport aborted(AbortCause cause, List<Integer> culprits) {
    return GroupReport.newBuilder()
        .setAborted(Abort.newBuilder().setCause(cause).setRound(2).addAllCulprits(culprits))
        .build();
  }

  private static GroupReport timedOut(Integer... missing) {
    return GroupReport.newBuilder()
        .setTimedOut(TimedOut.newBuilder().setRound(3).addAllMissing(List.of(missing)))
        .build();
  }

  private static Failure failure(Map<Integer, GroupReport> reports) {
    return GroupFailures.of(NAME, PARTIES, reports, _ -> true).orElseThrow();
  }

  @Test
  void nothing_failed_if_all_have_done_it() {
    assertThat(GroupFailures.of(NAME, PARTIES, Map.of(1, DONE, 2, DONE, 3, DONE), _ -> true))
        .isEmpty();
    assertThat(GroupFailures.of(NAME, PARTIES, Map.of(1, DONE, 2, DONE), _ -> true)).isPresent();
  }

  @Test
  void a_culprit_comes_before_everything_else() {
    Failure failure =
        failure(
            Map.of(
                1,
                refused(RefusalReason.REFUSAL_REASON_OVERLOADED, 0),
                2,
                timedOut(3),
                3,
                aborted(AbortCause.ABORT_CAUSE_WRONG_OPENING, List.of(2))));
    assertThat(failure.reason()).isEqualTo(ErrorReason.PARTY_MISBEHAVED);
    assertThat(failure.metadata())
        .containsEntry("party", "bravo")
        .containsEntry("round", "2")
        .containsEntry("cause", "ABORT_CAUSE_WRONG_OPENING")
        .containsEntry("resource", NAME);
  }

  /** alpha says that bravo has deviated, and has nothing to show for it. */
  @Test
  void a_word_without_evidence_convicts_nobody() {
    Map<Integer, GroupReport> reports =
        Map.of(1, aborted(AbortCause.ABORT_CAUSE_WRONG_OPENING, List.of(2)), 2, timedOut(1));
    Failure failure = GroupFailures.of(NAME, PARTIES, reports, _ -> false).orElseThrow();
    assertThat(failure.reason()).isEqualTo(ErrorReason.SESSION_FAILED);
    assertThat(failure.metadata()).containsEntry("party", "alpha,bravo");
    Failure refusal =
        failure(Map.of(1, refused(RefusalReason.REFUSAL_REASON_GROUP_INVALID, 3), 2, DONE));
    assertThat(refusal.reason()).isEqualTo(ErrorReason.SESSION_FAILED);
    assertThat(refusal.metadata()).containsEntry("party", "alpha").containsEntry("detail", "why");
  }

  @Test
  void a_refusal_names_the_party_that_refuses() {
    Failure exists =
        failure(Map.of(1, DONE, 2, refused(RefusalReason.REFUSAL_REASON_GROUP_EXISTS, 0)));
    assertThat(exists.reason()).isEqualTo(ErrorReason.GROUP_EXISTS);
    assertThat(exists.metadata()).containsEntry("party", "bravo");
  }

  @Test
  void the_late_party_is_named_by_those_that_waited_or_else_by_its_silence() {
    Failure missed = failure(Map.of(1, timedOut(2), 3, timedOut(2)));
    assertThat(missed.reason()).isEqualTo(ErrorReason.PARTY_UNRESPONSIVE);
    assertThat(missed.metadata()).containsEntry("party", "bravo").containsEntry("round", "3");
    assertThat(failure(Map.of(1, DONE)).metadata()).containsEntry("party", "bravo,charlie");
    Failure nobody = failure(Map.of(1, aborted(AbortCause.ABORT_CAUSE_INTERNAL, List.of())));
    assertThat(nobody.reason()).isEqualTo(ErrorReason.SESSION_FAILED);
  }
}
