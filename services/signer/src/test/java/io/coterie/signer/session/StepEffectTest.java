package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Dropped;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.signer.session.SessionLifecycle.State;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A step of the core says all that a session does next, and in which order. */
class StepEffectTest {
  private static final Outgoing MESSAGE = Outgoing.newBuilder().setRecipient(2).build();
  private static final Waiting FOR_THREE = Waiting.newBuilder().addMissing(3).build();

  private static List<StepEffect> running(Step.Builder step, Protocol protocol, int round) {
    return StepEffect.of(step.build(), protocol, State.RUNNING, round, true);
  }

  @Test
  void first_step_sends_and_enters_a_round_without_leaving_one() {
    Step first = Step.newBuilder().setRound(1).addOutgoing(MESSAGE).setWaiting(FOR_THREE).build();
    assertThat(StepEffect.of(first, Protocol.ECDSA_SIGN, State.RUNNING, 0, false))
        .containsExactly(
            new StepEffect.Send(MESSAGE),
            new StepEffect.EnterRound(1),
            new StepEffect.Miss(List.of(3)));
  }

  @Test
  void message_that_completes_a_round_leaves_it_before_the_next_begins() {
    assertThat(
            running(
                Step.newBuilder().setRound(2).addOutgoing(MESSAGE).setWaiting(FOR_THREE),
                Protocol.ECDSA_SIGN,
                1))
        .containsExactly(
            new StepEffect.Send(MESSAGE),
            new StepEffect.LeaveRound(),
            new StepEffect.EnterRound(2),
            new StepEffect.Miss(List.of(3)));
  }

  @Test
  void message_in_the_middle_of_a_round_changes_only_the_missing_parties() {
    assertThat(running(Step.newBuilder().setRound(1).setWaiting(FOR_THREE), Protocol.ECDSA_SIGN, 1))
        .containsExactly(new StepEffect.Miss(List.of(3)));
  }

  @Test
  void signing_party_rests_after_its_last_message_and_once_only() {
    Step.Builder last = Step.newBuilder().setRound(1).setWaiting(FOR_THREE);
    Protocol random = Protocol.ED25519_SIGN_PRESIGNED;
    assertThat(running(last, random, 1)).contains(new StepEffect.LastSent(true));
    assertThat(StepEffect.of(last.build(), random, State.COMBINING, 1, true))
        .doesNotContain(new StepEffect.LastSent(true));
  }

  @Test
  void party_that_needs_nothing_of_the_others_contributes_and_is_done() {
    Step.Builder last = Step.newBuilder().setRound(1).setWaiting(FOR_THREE);
    assertThat(running(last, Protocol.BLS_SIGN, 1)).contains(new StepEffect.LastSent(false));
  }

  @Test
  void party_that_makes_a_share_never_rests() {
    assertThat(
            running(
                Step.newBuilder().setRound(Protocol.BLS_KEYGEN.lastRound()).setWaiting(FOR_THREE),
                Protocol.BLS_KEYGEN,
                Protocol.BLS_KEYGEN.lastRound()))
        .containsExactly(new StepEffect.Miss(List.of(3)));
  }

  @Test
  void end_leaves_the_round_and_enters_none() {
    Done done = Done.getDefaultInstance();
    assertThat(running(Step.newBuilder().setRound(4).setDone(done), Protocol.ECDSA_SIGN, 3))
        .containsExactly(new StepEffect.LeaveRound(), new StepEffect.Complete(done));
    Abort abort = Abort.newBuilder().addCulprits(2).build();
    assertThat(running(Step.newBuilder().setAbort(abort), Protocol.ECDSA_SIGN, 3))
        .containsExactly(new StepEffect.LeaveRound(), new StepEffect.Fail(abort));
  }

  @Test
  void run_that_has_ended_answers_and_shows_deviations_and_nothing_else() {
    Abort abort = Abort.newBuilder().addCulprits(2).build();
    assertThat(
            StepEffect.afterEnd(
                Step.newBuilder().setRound(9).addOutgoing(MESSAGE).setAbort(abort).build()))
        .containsExactly(new StepEffect.Send(MESSAGE), new StepEffect.Fail(abort));
    assertThat(StepEffect.afterEnd(Step.newBuilder().setRound(9).setWaiting(FOR_THREE).build()))
        .isEmpty();
    assertThat(
            StepEffect.afterEnd(
                Step.newBuilder()
                    .setDropped(
                        Dropped.newBuilder().setReason(RejectReason.REJECT_REASON_MALFORMED))
                    .build()))
        .containsExactly(new StepEffect.Ignore("reject_reason_malformed"));
  }
}
