package io.coterie.signer;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;

/** Who may import whom inside the signer. */
@AnalyzeClasses(
    packages = "io.coterie.signer",
    importOptions = ImportOption.DoNotIncludeTests.class)
class PackageArrowsTest {
  private static final Set<String> ROSTER =
      Set.of(Member.class.getName(), Member.Role.class.getName(), Roster.class.getName());

  @ArchTest
  static final ArchRule domain_knows_values_and_its_own_ports =
      classes()
          .that()
          .resideInAPackage("io.coterie.signer.session")
          .should()
          .onlyDependOnClassesThat(
              resideInAnyPackage(
                      "java..",
                      "org.slf4j..",
                      "org.jspecify..",
                      "com.google.protobuf..",
                      "io.coterie.proto..",
                      "io.coterie.platform..",
                      "io.coterie.signer.session")
                  .or(describe("are the roster", c -> ROSTER.contains(c.getName()))));

  @ArchTest
  static final ArchRule policy_is_pure =
      noClasses()
          .that()
          .resideInAPackage("io.coterie.signer.policy")
          .should()
          .dependOnClassesThat(
              resideInAnyPackage(
                  "java.io..",
                  "java.nio.file..",
                  "java.sql..",
                  "java.time..",
                  "java.util.concurrent..",
                  "org.springframework.."));

  @ArchTest
  static final ArchRule database_is_known_to_storage_alone =
      noClasses()
          .that()
          .resideOutsideOfPackage("io.coterie.signer.storage")
          .should()
          .dependOnClassesThat(resideInAnyPackage("java.sql..", "org.sqlite.."));

  @ArchTest
  static final ArchRule core_is_known_to_its_adapter_and_the_wiring =
      noClasses()
          .that()
          .resideOutsideOfPackages("io.coterie.signer.nativecore", "io.coterie.signer.config")
          .should()
          .dependOnClassesThat(resideInAnyPackage("io.coterie.mpc.."));

  @ArchTest
  static final ArchRule spring_is_known_to_the_wiring =
      noClasses()
          .that()
          .resideOutsideOfPackages("io.coterie.signer", "io.coterie.signer.config")
          .should()
          .dependOnClassesThat(resideInAnyPackage("org.springframework.."));

  @ArchTest
  static final ArchRule no_inbound_port_but_management =
      noClasses()
          .should()
          .dependOnClassesThat(
              resideInAnyPackage("io.grpc..", "java.net.http..", "com.sun.net.httpserver.."));

  private static final String[] DECISIONS = {
    "Operation",
    "Signing",
    "BoundSigning",
    "Presigning",
    "KeyGeneration",
    "NextEpoch",
    "OrderCheck",
    "ShareAgreement",
    "ShareCandidate",
    "StepEffect",
    "Witness"
  };

  @ArchTest
  static final ArchRule decisions_act_on_nothing =
      noClasses()
          .that(named(DECISIONS))
          .should()
          .dependOnClassesThat(
              named("Session", "PartyNetwork", "WorkPool", "AuditLog", "SessionTelemetry"));

  @ArchTest
  static final ArchRule shares_and_ledgers_know_no_session =
      noClasses()
          .that(
              named(
                  "KeyActivation",
                  "ShareGossip",
                  "ShareAgreement",
                  "ShareCandidate",
                  "KeyShareStore",
                  "ClaimWitnesses",
                  "PeerLedgers",
                  "Witness",
                  "ClaimLedger",
                  "RequestBindings"))
          .should()
          .dependOnClassesThat(named("Session", "Operation"))
          .orShould()
          .dependOnClassesThat(named("SessionService", "SessionOpening", "SessionDriver"));

  @ArchTest
  static final ArchRule what_a_session_uses_calls_no_driver =
      noClasses()
          .that()
          .resideInAPackage("io.coterie.signer.session")
          .and(not(named("SessionService", "SessionOpening", "SessionDriver")))
          .should()
          .dependOnClassesThat(named("SessionService", "SessionOpening", "SessionDriver"));

  @ArchTest
  static final ArchRule driver_calls_neither_opening_nor_service =
      noClasses()
          .that(named("SessionDriver"))
          .should()
          .dependOnClassesThat(named("SessionService", "SessionOpening"));

  @ArchTest
  static final ArchRule opening_calls_no_service =
      noClasses()
          .that(named("SessionOpening"))
          .should()
          .dependOnClassesThat(named("SessionService"));

  /** Classes of the domain, and what is nested in them. */
  private static DescribedPredicate<JavaClass> named(String... names) {
    Set<String> wanted =
        Arrays.stream(names)
            .map(name -> "io.coterie.signer.session." + name)
            .collect(Collectors.toSet());
    return describe(
        "are " + String.join(", ", names), c -> wanted.contains(c.getName().split("\\$", 2)[0]));
  }
}
