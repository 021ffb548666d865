package io.coterie.platform.intent;

import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import java.util.Map;

/** A signed intent that is refused. Says what is wrong, never what was in it. */
public final class IntentException extends Exception {
  private static final long serialVersionUID = 1L;

  private final IntentProblem problem;
  private final boolean signed;

  public IntentException(IntentProblem problem) {
    this(problem, false);
  }

  private IntentException(IntentProblem problem, boolean signed) {
    // An answer, not a fault: whether a message is a transaction is asked for each signature.
    super(problem + ": " + problem.text(), null, false, false);
    this.problem = problem;
    this.signed = signed;
  }

  /** The same problem, of an intent whose requester's signature was found good before. */
  IntentException ofSigned() {
    return new IntentException(problem, true);
  }

  /** Whether the requester's signature was found good before the problem was. */
  public boolean isSigned() {
    return signed;
  }

  public IntentProblem problem() {
    return problem;
  }

  public ErrorReason reason() {
    return problem.reason();
  }

  /** The same failure in the form that ends a call. */
  public CustodyException toCustodyException() {
    return new CustodyException(reason(), Map.of(StatusErrors.PROBLEM, problem.name()));
  }
}
