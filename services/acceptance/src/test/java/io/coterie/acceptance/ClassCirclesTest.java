package io.coterie.acceptance;

import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/**
 * Circles between the classes of a package, each class with what is nested in it. Those that stay
 * are listed with their reason, so that a new one is noticed, and so is one that has ended.
 */
class ClassCirclesTest {
  private static final String ROOT = "io.coterie.";

  /** The circles that stay, and the reason. */
  private static final Map<Set<String>, String> STAY =
      Map.of(
          within("mpc", "NativeMpcCore", "NativeSession", "NativeVault"),
          "the core opens vaults and sessions, and owns the memory of each",
          within("trust", "SignedTrust", "TrustFile", "TrustJson", "TrustVersion"),
          "a value reads its content from JSON, and the JSON is read into these values",
          within(
              "coordinator.session",
              "KeygenSession",
              "ObservedSession",
              "PresignSession",
              "Sessions",
              "SigningSession"),
          "the registry hands messages to a session, which takes itself out when it ends",
          within("coordinator.custody.presignature", "PresignatureStock", "Promise", "Shelf"),
          "a promise that is not used goes back to the stock that gave it",
          within("simulation", "FastCore", "FastRun"),
          "a run leaves its presignatures with the core that began it",
          within("platform.scheme", "RecentKeys", "SchemeKeys"),
          "a scheme remembers the keys that it has derived, each by its scheme",
          within(
              "coordinator.storage.memory",
              "MemoryDatabase",
              "MemoryKeyStore",
              "MemoryLedgerStore",
              "MemoryRenewalStore",
              "MemoryReplicaStore",
              "MemorySigningStore"),
          "the stores are tables of one database, which makes them and holds their rows",
          within(
              "simulation",
              "Checker",
              "Clients",
              "CoordinatorLies",
              "CoordinatorProcess",
              "Ending",
              "Messages",
              "OrderChecker",
              "Prepared",
              "Replica",
              "ReplicaDatabase",
              "RequestChecker",
              "RequestWorld",
              "SimulatedCoordinator",
              "SimulatedParty",
              "WatchedCore",
              "WeakenedCoordinator",
              "World"),
          "the parts of one world, which each fault and each check reaches",
          within("acceptance.cluster", "Authority", "InstallationCa"),
          "an authority returns the pair of files that its installation names",
          within("acceptance.cluster", "Cluster", "ClusterPlan"),
          "a cluster is described by the plan that starts it: Cluster.of(3).threshold(2)");

  private static Set<String> within(String folder, String... classes) {
    return Arrays.stream(classes).map(name -> folder + "." + name).collect(toSet());
  }

  @Test
  void classes_form_no_circle_but_these() {
    Map<String, Set<String>> imports =
        imports(
            new ClassFileImporter()
                .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                .importPackages("io.coterie"));
    assertThat(imports).hasSizeGreaterThan(400);
    assertThat(circles(imports)).isEqualTo(STAY.keySet());
  }

  @Test
  void circles_are_found() {
    assertThat(circles(Map.of("a", Set.of("b", "c"), "b", Set.of("c"), "c", Set.of()))).isEmpty();
    assertThat(
            circles(
                Map.of(
                    "a", Set.of("b"),
                    "b", Set.of("c"),
                    "c", Set.of("b"),
                    "d", Set.of("a", "e"),
                    "e", Set.of("d"))))
        .containsExactlyInAnyOrder(Set.of("b", "c"), Set.of("d", "e"));
  }

  /** Each class of this system, and those that it uses. */
  private static Map<String, Set<String>> imports(Iterable<JavaClass> classes) {
    Map<String, Set<String>> imports = new TreeMap<>();
    DescribedPredicate<JavaClass> ours =
        DescribedPredicate.describe(
            "are written by hand here",
            c -> c.getName().startsWith(ROOT) && !c.getName().startsWith(ROOT + "proto."));
    for (JavaClass c : classes) {
      if (ours.test(c)) {
        String name = outermost(c);
        Set<String> used = imports.computeIfAbsent(name, _ -> new TreeSet<>());
        c.getDirectDependenciesFromSelf().stream()
            .map(dependency -> dependency.getTargetClass().getBaseComponentType())
            .filter(ours)
            .map(ClassCirclesTest::outermost)
            .filter(other -> !other.equals(name))
            .forEach(used::add);
      }
    }
    return imports;
  }

  private static String outermost(JavaClass c) {
    return c.getName().substring(ROOT.length()).split("\\$", 2)[0];
  }

  /** The largest sets of which each member leads to each other one. */
  private static Set<Set<String>> circles(Map<String, Set<String>> imports) {
    Map<String, Set<String>> reached = new TreeMap<>();
    imports.keySet().forEach(start -> reached.put(start, reached(start, imports)));
    return imports.keySet().stream()
        .filter(start -> reached.get(start).contains(start))
        .map(
            start ->
                reached.get(start).stream()
                    .filter(other -> reached.getOrDefault(other, Set.of()).contains(start))
                    .collect(toSet()))
        .collect(toSet());
  }

  private static Set<String> reached(String start, Map<String, Set<String>> imports) {
    Set<String> reached = new TreeSet<>();
    Deque<String> open = new ArrayDeque<>(Set.of(start));
    while (!open.isEmpty()) {
      for (String next : imports.getOrDefault(open.pop(), Set.of())) {
        if (reached.add(next)) {
          open.push(next);
        }
      }
    }
    return reached;
  }
}
