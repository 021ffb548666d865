package io.coterie.cli.terminal;

/** The exit codes of the command; its help says what each means. */
public final class ExitCode {
  /** The answer is no; a request that was to be cancelled is signed. */
  public static final int NO = 1;

  /** The installation refused, or its answer is not believed. */
  public static final int REFUSED = 3;

  /** The installation cannot be reached or did not finish, or it is not known what was signed. */
  public static final int UNAVAILABLE = 4;

  /** A local file is missing or wrong. */
  public static final int LOCAL = 5;

  /** The parties have proven that a request to sign never is signed. */
  public static final int NOT_SIGNED = 6;

  /** A bug of the command. */
  public static final int BUG = 70;

  private ExitCode() {}
}
