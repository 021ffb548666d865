package io.coterie.simulation;

import java.io.PrintStream;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Runs schedules of the real signers in a hostile world. */
public final class Simulation {
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
    try (ScratchFolder folder = ScratchFolder.make()) {
      World world = new World(seed, setting, mutant, faults, folder.path(), out);
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
    }
  }
}
