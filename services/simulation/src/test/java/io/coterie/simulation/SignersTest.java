package io.coterie.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The signers that ship, in worlds that follow from a seed. */
class SignersTest {
  private static final long FULL = 10_000;

  /** Schedules among which every fault and every lie must be. */
  private static final int ENOUGH = 100;

  /** Schedules among which every threshold must be; the largest are rare. */
  private static final int ENOUGH_FOR_SHAPES = 500;

  private static final List<String> SHAPES =
      List.of("shape 2 of 3", "shape 3 of 5", "shape 4 of 7", "shape 5 of 7");

  /** Schedules after which each mutant must be found; the rarest is, in one of some 250. */
  private static final int MUTANT_SCHEDULES = 1000;

  /**
   * Where the rarer mutants were found last: there each is looked for first, and in all schedules
   * if it is not there any more.
   */
  private static final Map<Mutant, Integer> FOUND_LAST =
      Map.ofEntries(
          Map.entry(Mutant.ANSWERS_EARLY, 4),
          Map.entry(Mutant.LEAVES_UNSETTLED, 4),
          Map.entry(Mutant.LOSES_ENDS, 4),
          Map.entry(Mutant.TAKES_REFUSALS_FOR_RECEIPTS, 4),
          Map.entry(Mutant.FREEZES_FOR_ONE, 5),
          Map.entry(Mutant.IGNORES_FENCE, 5),
          Map.entry(Mutant.TAKES_OVER_AT_ONCE, 5),
          Map.entry(Mutant.TAKES_UP_ALL, 5),
          Map.entry(Mutant.TELLS_OF_SHARES_EARLY, 5),
          Map.entry(Mutant.WAITS_LONGER, 5),
          Map.entry(Mutant.DECLINES_IN_WORDS, 6),
          Map.entry(Mutant.LOSES_COMMITS, 6),
          Map.entry(Mutant.GIVES_UP_ORDERING, 8),
          Map.entry(Mutant.BELIEVES_ONE_FOR_ALL, 10),
          Map.entry(Mutant.USES_SHARES_EARLY, 10),
          Map.entry(Mutant.TAKES_UP_NOTHING, 11),
          Map.entry(Mutant.CLAIMS_BEFORE_DISK, 14),
          Map.entry(Mutant.ERASES_EXCLUSIONS, 17),
          Map.entry(Mutant.LOSES_ABANDONED_SHARES, 31),
          Map.entry(Mutant.USES_OLD_SHARES, 37),
          Map.entry(Mutant.REPEATS_PRESIGNATURE_NAMES, 38),
          Map.entry(Mutant.BINDS_NOTHING, 39),
          Map.entry(Mutant.IGNORES_OWN_ROLLBACK, 45),
          Map.entry(Mutant.FORGETS_LEDGERS, 46),
          Map.entry(Mutant.FORGETS_WITNESSES, 73),
          Map.entry(Mutant.SAYS_NEVER_IN_WORDS, 73));

  /** Schedules that shrinking may run. */
  private static final int SHRINKING_RUNS = 300;

  private static List<String> expected() {
    List<String> expected = new ArrayList<>();
    Stream.of(SimulatedNetwork.Fault.values()).map(f -> "fault " + f).forEach(expected::add);
    Stream.of(Lie.values()).map(Lie::label).forEach(expected::add);
    expected.addAll(
        List.of(
            "fault KILLED",
            "fault KILLED_BEFORE_COMMIT",
            "fault PUT_BACK",
            "fault RESTORED",
            "fault CLONED",
            "fault DISK_FULL",
            "fault CLOCK_SET",
            "fault CLOCK_AHEAD",
            "fault CLOCK_BEHIND",
            "fault HELD",
            "work RESHARE",
            "outcome Signed",
            "outcome Created",
            "outcome Presigned",
            "outcome Bound",
            "outcome Refused",
            "outcome Aborted",
            "outcome TimedOut",
            "outcome Unsent",
            "progress " + World.BLS_KEY,
            "fault TAKEN_OVER",
            "fault REPLICA_KILLED",
            "fault DATABASE_AWAY",
            "fault CLAIM_UNANSWERED",
            "fault ANSWER_LOST",
            "fault ROWS_LOCKED",
            "fault DATABASE_CRASHED",
            "fault CLAIM_LOST",
            "witnesses wanted",
            "answer SIGNED",
            "answer NOT_SIGNED",
            "answer UNKNOWN",
            "answer to a cancellation SIGNED",
            "answer to a cancellation NOT_SIGNED",
            "answer to a cancellation UNKNOWN",
            "progress " + World.ECDSA_KEY,
            "progress " + World.ED25519_KEY,
            "progress " + World.BIP340_KEY,
            "repaired " + World.ECDSA_KEY));
    return expected;
  }

  private static Simulation.Outcome quiet(long seed, Coverage coverage) {
    return Simulation.run(seed, Setting.quiet(), Mutant.NONE, Faults.all(), coverage, null);
  }

  @Test
  void quiet_world_signs_and_replays() {
    Coverage coverage = new Coverage();
    Simulation.Outcome first = quiet(1, coverage);
    assertThat(first.violations()).isEmpty();
    assertThat(coverage.of("progress " + World.BLS_KEY)).isEqualTo(1);
    assertThat(coverage.of("progress " + World.ECDSA_KEY)).isEqualTo(1);
    assertThat(coverage.of("progress " + World.ED25519_KEY)).isEqualTo(1);
    assertThat(coverage.of("progress " + World.BIP340_KEY)).isEqualTo(1);
    assertThat(coverage.of("answer SIGNED")).isPositive();
    assertThat(quiet(1, coverage)).isEqualTo(first);
    assertThat(quiet(2, coverage).trace()).isNotEqualTo(first.trace());
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
      if (Seeds.shrinks() && !outcome.violations().isEmpty()) {
        printShrunk(Shrinker.shrink(seed, Mutant.NONE, outcome, SHRINKING_RUNS));
      }
      assertThat(outcome.violations()).isEmpty();
      return;
    }
    Coverage coverage = new Coverage();
    List<Long> seeds = Seeds.wanted("signers", FULL);
    long started = System.nanoTime();
    Duration worked = processorTime();
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
    double seconds = (System.nanoTime() - started) / 1e9;
    System.out.printf(
        Locale.ROOT,
        "rate: %,d schedules in %.0f s on %d cores, %,.0f an hour%n",
        seeds.size(),
        seconds,
        Runtime.getRuntime().availableProcessors(),
        3600 * seeds.size() / seconds);
    double work = processorTime().minus(worked).toNanos() / 1e9;
    System.out.printf(
        Locale.ROOT,
        "processor time: %.0f s, with which these cores run %,.0f an hour%n",
        work,
        3600 * seeds.size() * Runtime.getRuntime().availableProcessors() / work);
    assertThat(broken).isEmpty();
    if (seeds.size() >= ENOUGH) {
      assertThat(coverage.missing(expected())).as("never happened").isEmpty();
    }
    if (seeds.size() >= ENOUGH_FOR_SHAPES) {
      assertThat(coverage.missing(SHAPES)).as("never happened").isEmpty();
    }
  }

  /** The time that this process has worked: other work on the machine changes it little. */
  private static Duration processorTime() {
    return ProcessHandle.current().info().totalCpuDuration().orElse(Duration.ZERO);
  }

  /** Asked for only after it was cancelled: never signed, and no end is stored that says so. */
  @Test
  void request_that_comes_after_its_cancellation_has_one_end() {
    assertThat(withoutKeys(20_074).violations()).isEmpty();
  }

  /** The database is away while a replica works on the request, and no client asks again. */
  @Test
  void request_whose_work_stopped_for_the_database_has_an_end() {
    for (long seed : List.of(312L, 407L)) {
      assertThat(withoutKeys(seed).violations()).as("seed " + seed).isEmpty();
    }
  }

  /** The schedule that a seed had when it was found: since then most begin with keys. */
  private static Simulation.Outcome withoutKeys(long seed) {
    Setting setting = Simulation.setting(seed).withoutKeys();
    return Simulation.run(seed, setting, Mutant.NONE, Faults.all(), new Coverage(), null);
  }

  /** The first replica had the row locked while it was away. */
  @Test
  void request_that_was_locked_while_another_replica_looked_has_an_end() {
    assertThat(Simulation.run(202_661, Mutant.NONE, new Coverage(), null).violations()).isEmpty();
  }

  /** A replica gets a request back from another one, and knows nothing of its own first attempt. */
  @Test
  void request_that_comes_back_to_a_replica_is_begun_anew() {
    assertThat(Simulation.run(202_350, Mutant.NONE, new Coverage(), null).violations()).isEmpty();
  }

  private static void printShrunk(Shrinker.Shrunk shrunk) {
    System.out.println("the smallest schedule that was found: " + shrunk.setting());
    shrunk.again(shrunk.outcome().seed(), Mutant.NONE, System.out);
    System.out.println("which needs " + shrunk.outcome().faults());
    System.out.println("and breaks " + shrunk.outcome().violations());
  }

  /** A lost rule is shown by a handful of faults and deeds, and without them it is not. */
  @Test
  void failing_schedule_shrinks() {
    Mutant mutant = Mutant.CLAIMS_TWICE;
    long seed = 0;
    Simulation.Outcome failed = Simulation.run(seed, mutant, new Coverage(), null);
    while (failed.violations().isEmpty()) {
      failed = Simulation.run(++seed, mutant, new Coverage(), null);
    }
    Shrinker.Shrunk shrunk = Shrinker.shrink(seed, mutant, failed, SHRINKING_RUNS);
    System.out.printf(
        "%d of %d: %s%n",
        shrunk.outcome().faults().size(), failed.faults().size(), shrunk.outcome().faults());
    assertThat(shrunk.outcome().faults()).isNotEmpty();
    assertThat(shrunk.outcome().faults().size() * 10).isLessThan(failed.faults().size());
    assertThat(shrunk.again(seed, mutant, null)).isEqualTo(shrunk.outcome());
    assertThat(shrunk.again(seed, Mutant.NONE, null).violations()).isEmpty();
    for (String needed : shrunk.outcome().faults()) {
      Set<String> fewer = new HashSet<>(shrunk.outcome().faults());
      fewer.remove(needed);
      assertThat(
              Simulation.run(
                      seed, shrunk.setting(), mutant, Faults.only(fewer), new Coverage(), null)
                  .violations())
          .as("without " + needed)
          .isEmpty();
    }
  }

  static List<Mutant> mutants() {
    return Stream.of(Mutant.values()).filter(mutant -> mutant != Mutant.NONE).toList();
  }

  /** A check that checks nothing is seen. */
  @Test
  void every_promise_has_a_mutant_that_breaks_it() {
    assertThat(mutants().stream().flatMap(mutant -> mutant.breach().stream()))
        .containsAll(EnumSet.allOf(Breach.class));
  }

  @ParameterizedTest
  @MethodSource("mutants")
  void rule_that_is_taken_out_is_missed(Mutant mutant) {
    IntStream first = Stream.ofNullable(FOUND_LAST.get(mutant)).mapToInt(schedule -> schedule - 1);
    for (int seed : IntStream.concat(first, IntStream.range(0, MUTANT_SCHEDULES)).toArray()) {
      Optional<String> found =
          Simulation.run(seed, mutant, new Coverage(), null).violations().stream()
              .filter(violation -> violation.startsWith(mutant.breach().orElseThrow().toString()))
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
