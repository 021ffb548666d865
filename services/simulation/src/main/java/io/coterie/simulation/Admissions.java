package io.coterie.simulation;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import java.util.HashMap;
import java.util.Map;

/**
 * The policy that ships, asked once about each intent: all parties have the same rules, and the
 * requester's signature would cost more than the rest of a schedule.
 */
final class Admissions implements PolicyGate {
  private final PolicyGate policy;
  private final Map<SignedIntent, Answer> answers = new HashMap<>();

  private sealed interface Answer {
    record Admitted(VerifiedIntent intent) implements Answer {}

    record Refused(RefusedException reason) implements Answer {}
  }

  Admissions(PolicyGate policy) {
    this.policy = policy;
  }

  @Override
  public VerifiedIntent admit(SignedIntent intent) throws RefusedException {
    return switch (answers.computeIfAbsent(intent, this::ask)) {
      case Answer.Admitted(VerifiedIntent admitted) -> admitted;
      case Answer.Refused(RefusedException reason) -> throw reason;
    };
  }

  private Answer ask(SignedIntent intent) {
    try {
      return new Answer.Admitted(policy.admit(intent));
    } catch (RefusedException e) {
      return new Answer.Refused(e);
    }
  }
}
