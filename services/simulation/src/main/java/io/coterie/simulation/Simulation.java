package io.coterie.simulation;

import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Runs schedules of the real signers in a hostile world. */
public final class Simulation {
  /** In memory where there is such a folder: its fsync costs nothing. */
  private static final Path MEMORY = Path.of("/dev/shm");

  private Simulation() {}

  /**
   * The end of a schedule.
   *
   * @param violations of what the threat model promises; empty if there is none
   * @param trace a number for everything that happened
   * @param events how many things happened
   * @param faults the faults, lies and deeds of the coordinator among them
   */
  public record Outcome(
      long seed, List<String> violations, long trace, long events, List<String> faults) {}

  /**
   * Runs the schedule of a seed.
   *
   * @param coverage is added to
   * @param out where every step is printed; null to print none
   */
  static Outcome run(long seed, Mutant mutant, Coverage coverage, @Nullable PrintStream out) {
    return run(seed, setting(seed), mutant, Faults.all(), coverage, out);
  }

  /** The setting of a seed. */
  static Setting setting(long seed) {
    return Setting.of(Chance.of(seed).part("setting"));
  }

  static Outcome run(
      long seed,
      Setting setting,
      Mutant mutant,
      Faults faults,
      Coverage coverage,
      @Nullable PrintStream out) {
    Path folder = folder();
    try {
      World world = new World(seed, setting, mutant, faults, folder, out);
      world.run();
      coverage.add(world.coverage());
      return new Outcome(
          seed,
          world.checker().violations(),
          world.trace().hash(),
          world.timeline().happened(),
          faults.happened());
    } catch (RuntimeException e) {
      throw new IllegalStateException("seed " + seed, e);
    } finally {
      delete(folder);
    }
  }

  private static Path folder() {
    try {
      return Files.isDirectory(MEMORY)
          ? Files.createTempDirectory(MEMORY, "coterie-simulation")
          : Files.createTempDirectory("coterie-simulation");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void delete(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
