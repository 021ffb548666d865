package io.coterie.coordinator;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;

/** The arrows between the packages, and to other modules. */
@AnalyzeClasses(
    packages = "io.coterie.coordinator",
    importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  private static final String BASE = "io.coterie.coordinator.";

  @ArchTest
  static final ArchRule arrows =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("api")
          .definedBy(BASE + "api..")
          .layer("custody")
          .definedBy(BASE + "custody..")
          .layer("session")
          .definedBy(BASE + "session..")
          .layer("storage")
          .definedBy(BASE + "storage..")
          .layer("channel")
          .definedBy(BASE + "channel..")
          .layer("verification")
          .definedBy(BASE + "verification..")
          .layer("telemetry")
          .definedBy(BASE + "telemetry..")
          .layer("config")
          .definedBy(BASE + "config..")
          .layer("application")
          .definedBy("io.coterie.coordinator")
          .whereLayer("api")
          .mayOnlyBeAccessedByLayers("config")
          .whereLayer("custody")
          .mayOnlyBeAccessedByLayers("api", "storage", "config")
          .whereLayer("session")
          .mayOnlyBeAccessedByLayers("custody", "channel", "verification", "config")
          .whereLayer("storage")
          .mayOnlyBeAccessedByLayers("config")
          .whereLayer("channel")
          .mayOnlyBeAccessedByLayers("storage", "config")
          .whereLayer("verification")
          .mayOnlyBeAccessedByLayers("config")
          .whereLayer("config")
          .mayOnlyBeAccessedByLayers("application");

  @ArchTest
  static final ArchRule arrows_inside_the_domain =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("request")
          .definedBy(BASE + "custody.request..")
          .layer("key")
          .definedBy(BASE + "custody.key..")
          .layer("presignature")
          .definedBy(BASE + "custody.presignature..")
          .layer("signing")
          .definedBy(BASE + "custody.signing..")
          .layer("evidence")
          .definedBy(BASE + "custody.evidence..")
          .layer("ledger")
          .definedBy(BASE + "custody.ledger..")
          .whereLayer("signing")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("presignature")
          .mayOnlyBeAccessedByLayers("signing")
          .whereLayer("key")
          .mayOnlyBeAccessedByLayers("presignature", "signing", "ledger")
          .whereLayer("request")
          .mayOnlyBeAccessedByLayers("key", "presignature", "signing", "evidence", "ledger")
          .whereLayer("ledger")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("evidence")
          .mayNotBeAccessedByAnyLayer();

  @ArchTest
  static final ArchRule decisions_act_on_nothing =
      noClasses()
          .that()
          .haveSimpleName("ShareFindings")
          .or()
          .haveSimpleName("Candidates")
          .or()
          .haveSimpleName("UnsettledSession")
          .should()
          .dependOnClassesThat()
          .haveSimpleNameEndingWith("Store")
          .orShould()
          .dependOnClassesThat()
          .areAssignableTo(java.time.Clock.class)
          .orShould()
          .dependOnClassesThat()
          .haveSimpleName("SecureChannel")
          .orShould()
          .dependOnClassesThat()
          .haveSimpleName("ObservedSession")
          .orShould()
          .callMethod(System.class, "nanoTime");

  @ArchTest
  static final ArchRule the_domain_knows_no_framework =
      noClasses()
          .that()
          .resideInAnyPackage(BASE + "custody..", BASE + "session..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "org.springframework..", "java.sql..", "javax.sql..", "io.grpc..", "supranational..");

  @ArchTest
  static final ArchRule a_coordinator_has_no_vault =
      noClasses().should().dependOnClassesThat().haveFullyQualifiedName("io.coterie.mpc.Vault");

  @ArchTest
  static final ArchRule only_the_verifier_and_its_wiring_know_another_implementation =
      noClasses()
          .that()
          .resideOutsideOfPackage(BASE + "verification..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("supranational..");

  @ArchTest
  static final ArchRule services_meet_in_proto_only =
      noClasses()
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "io.coterie.signer..",
              "io.coterie.messaging..",
              "io.coterie.cli..",
              "io.coterie.acceptance..");

  @ArchTest
  static final ArchRule time_and_randomness_are_injected_into_the_domain =
      noClasses()
          .that()
          .resideInAnyPackage(BASE + "custody..", BASE + "session..")
          .should()
          .callMethod(java.time.Instant.class, "now")
          .orShould()
          .callConstructor(java.security.SecureRandom.class);

  /** So that a simulation decides when a thread goes on (docs/adr/0066). */
  @ArchTest
  static final ArchRule requests_and_signings_wait_by_the_time_of_their_replica =
      noClasses()
          .that()
          .resideInAnyPackage(
              BASE + "custody.request..", BASE + "custody.signing..", BASE + "session..")
          .and()
          .haveNameNotMatching(".*(ReplicaTime|SessionTimer)(\\$.*)?")
          .should()
          .callMethod(System.class, "nanoTime")
          .orShould()
          .callMethod(CompletableFuture.class, "get")
          .orShould()
          .callMethod(CompletableFuture.class, "get", long.class, TimeUnit.class)
          .orShould()
          .callMethod(Thread.class, "ofVirtual")
          .orShould()
          .callMethod(Thread.class, "sleep", long.class)
          .orShould()
          .callMethod(Thread.class, "sleep", Duration.class)
          .orShould()
          .callMethod(Object.class, "wait")
          .orShould()
          .dependOnClassesThat()
          .belongToAnyOf(
              BlockingQueue.class,
              Condition.class,
              CountDownLatch.class,
              LockSupport.class,
              Semaphore.class);

  @ArchTest
  static final ArchRule no_service_keeps_its_stores_in_memory =
      noClasses()
          .that()
          .resideOutsideOfPackage(BASE + "storage.memory..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage(BASE + "storage.memory..");

  @ArchTest
  static final ArchRule no_circles =
      slices().matching("io.coterie.coordinator.(**)").should().beFreeOfCycles();
}
