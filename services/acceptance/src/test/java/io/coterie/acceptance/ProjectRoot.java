package io.coterie.acceptance;

import java.nio.file.Path;

/** Where the Makefile is, as seen from the module in which Maven runs the tests. */
public final class ProjectRoot {
  public static final Path PATH = Path.of("..", "..").toAbsolutePath().normalize();

  private ProjectRoot() {}
}
