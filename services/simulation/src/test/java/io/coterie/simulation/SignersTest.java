package io.coterie.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The signers that ship, in worlds that follow from a seed. */
class SignersTest {
  private static final long FULL = 10_000;

  /** Schedules among which every fault and every lie must be. */
  private static final int ENOUGH = 100;

  /** Schedules after which each mutant must be found. */
  private static final int MUTANT_SCHEDULES = 200;

  private static List<String> expected() {
    List<String> expected = new ArrayList<>();
    Stream.of(SimulatedNetwork.Fault.values()).map(f -> "fault " + f).forEach(expected::add);
    Stream.of(Lie.values()).map(Lie::label).forEach(expected::add);
    expected.addAll(
        List.of(
            "fault KILLED",
            "fault KILLED_BEFORE_COMMIT",
            "fault PUT_BACK",
            "fault DISK_FULL",
            "fault CLOCK_SET",
            "progress " + World.BLS_KEY,
            "fault TAKEN_OVER",
            "progress " + World.ECDSA_KEY,
            "progress " + World.ED25519_KEY,
            "repaired " + World.ECDSA_KEY));
    return expected;
  }

  @Test
  void quiet_world_signs_and_replays() {
    Coverage coverage = new Coverage();
    Simulation.Outcome first = Simulation.run(1, Setting.quiet(), Mutant.NONE, coverage, null);
    assertThat(first.violations()).isEmpty();
    assertThat(coverage.of("progress " + World.BLS_KEY)).isEqualTo(1);
    assertThat(coverage.of("progress " + World.ECDSA_KEY)).isEqualTo(1);
    assertThat(coverage.of("progress " + World.ED25519_KEY)).isEqualTo(1);
    assertThat(Simulation.run(1, Setting.quiet(), Mutant.NONE, coverage, null)).isEqualTo(first);
    assertThat(Simulation.run(2, Setting.quiet(), Mutant.NONE, coverage, null).trace())
        .isNotEqualTo(first.trace());
  }

  /** The order of an immutable set, for one, is another one in every process. */
  @Test
  void seed_replays_in_another_process() throws IOException {
    long seed = 3;
    Process other =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Replay.class.getName(),
                Long.toString(seed))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try (BufferedReader out = other.inputReader()) {
      long trace = Simulation.run(seed, Mutant.NONE, new Coverage(), null).trace();
      assertThat(out.lines().toList()).last().isEqualTo(Long.toString(trace));
    } finally {
      other.destroyForcibly();
    }
  }

  @Test
  void hostile_world_breaks_no_promise() {
    if (Seeds.replaysOne()) {
      long seed = Seeds.wanted("signers", FULL).getFirst();
      Simulation.Outcome outcome = Simulation.run(seed, Mutant.NONE, new Coverage(), System.out);
      assertThat(outcome.violations()).isEmpty();
      return;
    }
    Coverage coverage = new Coverage();
    List<Long> seeds = Seeds.wanted("signers", FULL);
    List<Simulation.Outcome> broken =
        seeds.parallelStream()
            .map(
                seed -> {
                  Coverage own = new Coverage();
                  Simulation.Outcome outcome = Simulation.run(seed, Mutant.NONE, own, null);
                  synchronized (coverage) {
                    coverage.add(own);
                  }
                  return outcome;
                })
            .filter(outcome -> !outcome.violations().isEmpty())
            .toList();
    System.out.print(coverage.table());
    assertThat(broken).isEmpty();
    if (seeds.size() >= ENOUGH) {
      assertThat(coverage.missing(expected())).as("never happened").isEmpty();
    }
  }

  static List<Mutant> mutants() {
    return Stream.of(Mutant.values()).filter(mutant -> mutant != Mutant.NONE).toList();
  }

  @ParameterizedTest
  @MethodSource("mutants")
  void rule_that_is_taken_out_is_missed(Mutant mutant) {
    for (int seed = 0; seed < MUTANT_SCHEDULES; seed++) {
      Optional<String> found =
          Simulation.run(seed, mutant, new Coverage(), null).violations().stream()
              .filter(violation -> violation.startsWith(mutant.violation()))
              .findFirst();
      if (found.isPresent()) {
        System.out.printf("%s: schedule %d: %s%n", mutant, seed + 1, found.get());
        assertThat(Simulation.run(seed, Mutant.NONE, new Coverage(), null).violations())
            .as("the same schedule with the rule")
            .isEmpty();
        return;
      }
    }
    throw new AssertionError(mutant + " is not found in " + MUTANT_SCHEDULES + " schedules");
  }
}
