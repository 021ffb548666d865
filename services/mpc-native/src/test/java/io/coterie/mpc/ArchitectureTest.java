package io.coterie.mpc;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(packages = "io.coterie.mpc", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule knows_nothing_but_the_contract =
      classes()
          .should()
          .onlyDependOnClassesThat()
          .resideInAnyPackage(
              "io.coterie.mpc",
              "io.coterie.proto.core.v1",
              "com.google.protobuf",
              "java..",
              "org.jspecify.annotations");

  @ArchTest
  static final ArchRule foreign_memory_stays_out_of_the_public_interface =
      noClasses()
          .that()
          .areInterfaces()
          .should()
          .dependOnClassesThat()
          .resideInAPackage("java.lang.foreign..");

  @ArchTest
  static final ArchRule bindings_are_not_public =
      classes()
          .that()
          .haveSimpleNameStartingWith("Native")
          .and()
          .doNotHaveSimpleName("NativeMpcCore")
          .should()
          .bePackagePrivate();
}
