package io.coterie.signer.session;

import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Step;
import io.coterie.signer.session.SessionLifecycle.State;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** One thing that a session does because of a step of the core. */
sealed interface StepEffect {
  /** A message leaves, if it still may. */
  record Send(Outgoing message) implements StepEffect {}

  /** The last message that the session's round needed has come. */
  record LeaveRound() implements StepEffect {}

  /** A round begins. */
  record EnterRound(int round) implements StepEffect {}

  /**
   * The core waits.
   *
   * @param missing ids of the parties whose message it has not heard
   */
  record Miss(List<Integer> missing) implements StepEffect {}

  /**
   * This party has sent its last message of a signature.
   *
   * @param rests whether it waits for the result, or needs nothing of the others
   */
  record LastSent(boolean rests) implements StepEffect {}

  /** The core ignored a message. */
  record Ignore(String reason) implements StepEffect {}

  /** The core has the result. */
  record Complete(Done done) implements StepEffect {}

  /** The core ended the run without a result. */
  record Fail(Abort abort) implements StepEffect {}

  /**
   * Everything that follows from a step, in the order in which it is done.
   *
   * @param state of the session before the step
   * @param round of the session before the step; 0 before the first
   * @param caused whether a message of a peer led to the step
   */
  static List<StepEffect> of(Step step, Protocol protocol, State state, int round, boolean caused) {
    List<StepEffect> effects = new ArrayList<>();
    step.getOutgoingList().forEach(message -> effects.add(new Send(message)));
    boolean over = step.hasDone() || step.hasAbort();
    boolean elsewhere = step.getRound() != round;
    if (round != 0 && caused && (over || elsewhere)) {
      effects.add(new LeaveRound());
    }
    int now = over ? round : step.getRound();
    if (now != round) {
      effects.add(new EnterRound(now));
    }
    switch (step.getProgressCase()) {
      case WAITING -> {
        effects.add(new Miss(List.copyOf(step.getWaiting().getMissingList())));
        if (protocol.operation().signs() && state == State.RUNNING && now == protocol.lastRound()) {
          effects.add(new LastSent(!protocol.answersCoordinatorAlone()));
        }
      }
      case DROPPED -> effects.add(ignored(step));
      case DONE -> effects.add(new Complete(step.getDone()));
      case ABORT -> effects.add(new Fail(step.getAbort()));
      case PROGRESS_NOT_SET -> {}
    }
    return effects;
  }

  /**
   * The same for a run that has ended: it answers, ignores, or shows that it was broken, and
   * nothing else of it counts.
   */
  static List<StepEffect> afterEnd(Step step) {
    List<StepEffect> effects = new ArrayList<>();
    step.getOutgoingList().forEach(message -> effects.add(new Send(message)));
    if (step.hasDropped()) {
      effects.add(ignored(step));
    } else if (step.hasAbort()) {
      effects.add(new Fail(step.getAbort()));
    }
    return effects;
  }

  private static Ignore ignored(Step step) {
    return new Ignore(step.getDropped().getReason().name().toLowerCase(Locale.ROOT));
  }
}
