package io.coterie.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Starts of honest parties whose stores never went back: after a clean stop, after a crash that
 * lost what was not on disk, while another party is away, with a clock that was set back. None of
 * them is taken for a store that went back.
 */
class RestartsTest {
  /** Worlds of some sixty starts each. */
  private static final long FULL = 500;

  /** As many of them have a thousand starts. */
  private static final int ENOUGH = 20;

  private static final List<String> STARTS =
      List.of("fault STOPPED", "fault KILLED", "fault KILLED_BEFORE_COMMIT", "fault AWAY");

  private static final List<String> EXPECTED =
      Stream.concat(STARTS.stream(), Stream.of("fault CLOCK_BACK")).toList();

  @Test
  void no_start_raises_a_false_fence() {
    Coverage coverage = new Coverage();
    List<Long> seeds = Seeds.wanted("restarts", FULL);
    List<Simulation.Outcome> broken =
        seeds.parallelStream()
            .map(
                seed -> {
                  Coverage own = new Coverage();
                  Simulation.Outcome outcome =
                      Simulation.run(
                          seed, Setting.restarting(), Mutant.NONE, Faults.all(), own, null);
                  synchronized (coverage) {
                    coverage.add(own);
                  }
                  return outcome;
                })
            .filter(outcome -> !outcome.violations().isEmpty())
            .toList();
    long starts = STARTS.stream().mapToLong(coverage::of).sum();
    System.out.print(coverage.table());
    System.out.println(starts + " starts");
    assertThat(broken).isEmpty();
    if (seeds.size() >= ENOUGH) {
      assertThat(coverage.missing(EXPECTED)).as("never happened").isEmpty();
      assertThat(starts).isGreaterThanOrEqualTo(1_000);
    }
  }

  /** The check that finds nothing above finds a store that has lost what it had committed. */
  @Test
  void a_disk_that_loses_commits_is_noticed() {
    boolean found = false;
    for (int seed = 0; seed < ENOUGH && !found; seed++) {
      found =
          Simulation.run(
                  seed,
                  Setting.restarting(),
                  Mutant.LOSES_COMMITS,
                  Faults.all(),
                  new Coverage(),
                  null)
              .violations()
              .stream()
              .anyMatch(violation -> violation.startsWith(Breach.FENCED.toString()));
    }
    assertThat(found).isTrue();
  }
}
