package io.coterie.cli;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;

/** The imports between the packages of the command, and between its classes. */
@AnalyzeClasses(packages = "io.coterie.cli", importOptions = ImportOption.DoNotIncludeTests.class)
class PackageArrowsTest {
  private static final String BASE = "io.coterie.cli.";

  @ArchTest
  static final ArchRule arrows_point_to_the_terminal =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("command")
          .definedBy("io.coterie.cli")
          .layer("terminal")
          .definedBy(BASE + "terminal")
          .layer("profile")
          .definedBy(BASE + "profile")
          .layer("payload")
          .definedBy(BASE + "payload")
          .layer("intent")
          .definedBy(BASE + "intent")
          .layer("key")
          .definedBy(BASE + "key")
          .layer("signing")
          .definedBy(BASE + "signing")
          .layer("trust")
          .definedBy(BASE + "trust")
          .layer("doctor")
          .definedBy(BASE + "doctor")
          .layer("plan")
          .definedBy(BASE + "plan")
          .whereLayer("terminal")
          .mayNotAccessAnyLayer()
          .whereLayer("profile")
          .mayOnlyAccessLayers("terminal")
          .whereLayer("payload")
          .mayOnlyAccessLayers("terminal")
          .whereLayer("plan")
          .mayOnlyAccessLayers("terminal")
          .whereLayer("trust")
          .mayOnlyAccessLayers("terminal", "profile")
          .whereLayer("doctor")
          .mayOnlyAccessLayers("terminal", "profile")
          .whereLayer("intent")
          .mayOnlyAccessLayers("terminal", "profile", "payload")
          .whereLayer("key")
          .mayOnlyAccessLayers("terminal", "profile", "payload", "intent")
          .whereLayer("signing")
          .mayOnlyAccessLayers("terminal", "profile", "payload", "intent", "key")
          .whereLayer("command")
          .mayNotBeAccessedByAnyLayer();

  @ArchTest
  static final ArchRule no_circles_between_classes =
      slices()
          .assignedFrom(
              new SliceAssignment() {
                @Override
                public SliceIdentifier getIdentifierOf(JavaClass c) {
                  return SliceIdentifier.of(c.getName().split("\\$", 2)[0]);
                }

                @Override
                public String getDescription() {
                  return "classes with what is nested in them";
                }
              })
          .should()
          .beFreeOfCycles();

  /** A command ends by its exit code, and a failure is one line. */
  @ArchTest
  static final ArchRule only_the_start_ends_the_process =
      noClasses()
          .that(describe("are not the start", c -> !c.getName().equals(BASE + "Coterie")))
          .should()
          .callMethod(System.class, "exit", int.class);
}
