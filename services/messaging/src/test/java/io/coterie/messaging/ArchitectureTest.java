package io.coterie.messaging;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The imports of messaging: it delivers messages and knows nothing of their content. */
@AnalyzeClasses(
    packages = "io.coterie.messaging",
    importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule KNOWS_ONLY_PLATFORM_AND_SIGNAL =
      noClasses()
          .should()
          .dependOnClassesThat(
              resideInAPackage("io.coterie..")
                  .and(
                      DescribedPredicate.not(
                          resideInAnyPackage(
                              "io.coterie.messaging..",
                              "io.coterie.platform.certificate..",
                              "io.coterie.platform.telemetry..",
                              "io.coterie.platform.management..",
                              "io.coterie.proto.signal.."))));

  @ArchTest
  static final ArchRule DOMAIN_KNOWS_NO_ADAPTER =
      noClasses()
          .that()
          .resideInAnyPackage(
              "io.coterie.messaging.account..",
              "io.coterie.messaging.keys..",
              "io.coterie.messaging.queue..",
              "io.coterie.messaging.limit..",
              "io.coterie.messaging.certificate..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "io.coterie.messaging.api..",
              "io.coterie.messaging.socket..",
              "io.coterie.messaging.storage..",
              "org.springframework.jdbc..",
              "jakarta..");

  @ArchTest
  static final ArchRule CALLS_KNOW_NO_TRANSPORT_AND_NO_TABLE =
      noClasses()
          .that()
          .resideInAPackage("io.coterie.messaging.api..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "io.coterie.messaging.socket..", "io.coterie.messaging.storage..", "jakarta..");

  @ArchTest
  static final ArchRule NO_CIRCLES =
      slices().matching("io.coterie.messaging.(**)").should().beFreeOfCycles();
}
