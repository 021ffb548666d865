package io.coterie.platform.intent;

import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import java.util.Map;

/** A signed intent that is refused. Says what is wrong and where, never how much goes to whom. */
public final class IntentException extends Exception {
  private static final long serialVersionUID = 1L;

  private final IntentProblem problem;
  private final String part;
  private final boolean signed;

  public IntentException(IntentProblem problem) {
    this(problem, "");
  }

  /**
   * @param part of the payload that has the problem, in one line: its place, and the name of a
   *     program, a function or a field, but no amount, recipient or text
   */
  public IntentException(IntentProblem problem, String part) {
    this(problem, part, false);
  }

  private IntentException(IntentProblem problem, String part, boolean signed) {
    // An answer, not a fault: whether a message is a transaction is asked for each signature.
    super(problem + ": " + text(problem, part), null, false, false);
    this.problem = problem;
    this.part = part;
    this.signed = signed;
  }

  /** The same problem, of an intent whose requester's signature was found good before. */
  IntentException ofSigned() {
    return new IntentException(problem, part, true);
  }

  /** Whether the requester's signature was found good before the problem was. */
  public boolean isSigned() {
    return signed;
  }

  public IntentProblem problem() {
    return problem;
  }

  /** One line for people: the problem, and the part that has it. */
  public String text() {
    return text(problem, part);
  }

  private static String text(IntentProblem problem, String part) {
    return part.isEmpty() ? problem.text() : problem.text() + " (" + part + ")";
  }

  public ErrorReason reason() {
    return problem.reason();
  }

  /** The same failure in the form that ends a call. */
  public CustodyException toCustodyException() {
    return new CustodyException(
        reason(),
        part.isEmpty()
            ? Map.of(StatusErrors.PROBLEM, problem.name())
            : Map.of(StatusErrors.PROBLEM, problem.name(), StatusErrors.PART, part));
  }
}
