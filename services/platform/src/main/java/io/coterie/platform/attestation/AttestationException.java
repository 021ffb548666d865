package io.coterie.platform.attestation;

/**
 * An answer about a key that is not believed. Its message is one line and quotes nothing unchecked.
 */
public final class AttestationException extends Exception {
  private static final long serialVersionUID = 1L;

  private final AttestationProblem problem;

  AttestationException(AttestationProblem problem, Object... facts) {
    super(problem.line(facts));
    this.problem = problem;
  }

  public AttestationProblem problem() {
    return problem;
  }

  static void require(boolean condition, AttestationProblem problem, Object... facts)
      throws AttestationException {
    if (!condition) {
      throw new AttestationException(problem, facts);
    }
  }
}
