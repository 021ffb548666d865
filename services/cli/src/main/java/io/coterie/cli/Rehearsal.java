package io.coterie.cli;

import java.util.List;

/**
 * Commands one after the other in one process, so that the JVM records the classes of all of them
 * for the cache with which {@code bin/coterie} starts. The profile is that of {@code
 * COTERIE_PROFILE}.
 */
final class Rehearsal {
  private static final List<List<String>> COMMANDS =
      List.of(
          List.of("--help"),
          List.of("keys", "list"),
          List.of("keys", "get", "rehearsed"),
          List.of("doctor"));

  private Rehearsal() {}

  public static void main(String... args) {
    for (List<String> command : COMMANDS) {
      int exit = Coterie.run(command.toArray(String[]::new));
      if (exit != 0) {
        throw new IllegalStateException(String.join(" ", command) + " ended with " + exit);
      }
    }
  }
}
