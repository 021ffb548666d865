package io.coterie.channel;

import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition;

/** The imports between the packages of the channel. */
@AnalyzeClasses(
    packages = "io.coterie.channel",
    importOptions = ImportOption.DoNotIncludeTests.class)
class PackageArrowsTest {

  @ArchTest
  static final ArchRule arrows_point_to_the_contract =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("contract")
          .definedBy("io.coterie.channel")
          .layer("telemetry")
          .definedBy("io.coterie.channel.telemetry")
          .layer("wire")
          .definedBy("io.coterie.channel.wire")
          .layer("keys")
          .definedBy("io.coterie.channel.keys")
          .layer("link")
          .definedBy("io.coterie.channel.link")
          .layer("signal")
          .definedBy("io.coterie.channel.signal")
          .whereLayer("contract")
          .mayNotAccessAnyLayer()
          .whereLayer("telemetry")
          .mayOnlyAccessLayers("contract")
          .whereLayer("wire")
          .mayOnlyAccessLayers("contract")
          .whereLayer("keys")
          .mayOnlyAccessLayers("contract", "telemetry", "wire")
          .whereLayer("link")
          .mayOnlyAccessLayers("contract", "telemetry", "keys");

  @ArchTest
  static final ArchRule no_circles =
      slices().matching("io.coterie.channel.(*)..").should().beFreeOfCycles();

  /** The rules of the key exchange can be tested by calls alone. */
  @ArchTest
  static final ArchRule keys_do_no_input_or_output =
      ArchRuleDefinition.noClasses()
          .that()
          .resideInAPackage("io.coterie.channel.keys")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("java.io..", "java.net..", "java.nio..", "javax.net..")
          .orShould()
          .dependOnClassesThat()
          .areAssignableTo(Thread.class);
}
