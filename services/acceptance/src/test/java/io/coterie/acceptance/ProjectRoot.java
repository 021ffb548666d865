package io.coterie.acceptance;

import java.nio.file.Path;

/** Where the Makefile is, as seen from the module in which Maven runs the tests. */
final class ProjectRoot {
  static final Path PATH = Path.of("..", "..").toAbsolutePath().normalize();

  private ProjectRoot() {}
}
