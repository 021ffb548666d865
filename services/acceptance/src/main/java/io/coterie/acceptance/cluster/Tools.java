package io.coterie.acceptance.cluster;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;

/** Programs that are not part of an installation made here: Envoy, Prometheus, k6. */
public final class Tools {
  private Tools() {}

  /**
   * The program that the scripts in {@code .ci} fetched or built, or the system's; empty if there
   * is neither.
   *
   * @param projectRoot where the Makefile is
   */
  public static Optional<Path> find(Path projectRoot, String name) {
    return Stream.concat(
            Stream.of(projectRoot.toAbsolutePath().resolve("build/tools/bin")),
            Stream.of(System.getenv("PATH").split(":")).map(Path::of))
        .map(folder -> folder.resolve(name))
        .filter(Files::isExecutable)
        .findFirst();
  }
}
