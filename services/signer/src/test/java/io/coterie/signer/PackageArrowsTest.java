package io.coterie.signer;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;

/** The imports between the packages of the signer. */
@AnalyzeClasses(
    packages = "io.coterie.signer",
    importOptions = ImportOption.DoNotIncludeTests.class)
class PackageArrowsTest {
  private static final Set<String> ROSTER =
      Set.of(Member.class.getName(), Member.Role.class.getName(), Roster.class.getName());

  private static final String[] DOMAIN = {
    "io.coterie.signer.order",
    "io.coterie.signer.party",
    "io.coterie.signer.claim",
    "io.coterie.signer.share",
    "io.coterie.signer.operation",
    "io.coterie.signer.session",
    "io.coterie.signer.group"
  };

  @ArchTest
  static final ArchRule domain_knows_values_and_its_own_ports =
      classes()
          .that()
          .resideInAnyPackage(DOMAIN)
          .should()
          .onlyDependOnClassesThat(
              resideInAnyPackage(
                      "java..",
                      "org.slf4j..",
                      "org.jspecify..",
                      "com.google.protobuf..",
                      "io.coterie.proto..",
                      "io.coterie.platform..")
                  .or(resideInAnyPackage(DOMAIN))
                  .or(describe("are the roster", c -> ROSTER.contains(c.getName()))));

  /** Operations decide: they reach neither the network nor the core, the disk or a thread. */
  @ArchTest
  static final ArchRule arrows_of_the_domain =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("order")
          .definedBy("io.coterie.signer.order")
          .layer("party")
          .definedBy("io.coterie.signer.party")
          .layer("claim")
          .definedBy("io.coterie.signer.claim")
          .layer("share")
          .definedBy("io.coterie.signer.share")
          .layer("operation")
          .definedBy("io.coterie.signer.operation")
          .layer("session")
          .definedBy("io.coterie.signer.session")
          .layer("group")
          .definedBy("io.coterie.signer.group")
          .whereLayer("group")
          .mayOnlyAccessLayers("order", "party", "claim")
          .whereLayer("order")
          .mayNotAccessAnyLayer()
          .whereLayer("party")
          .mayOnlyAccessLayers("order")
          .whereLayer("claim")
          .mayOnlyAccessLayers("order", "party")
          .whereLayer("share")
          .mayOnlyAccessLayers("order", "party")
          .whereLayer("operation")
          .mayOnlyAccessLayers("order", "claim", "share");

  @ArchTest
  static final ArchRule no_circles =
      slices().matching("io.coterie.signer.(*)..").should().beFreeOfCycles();

  @ArchTest
  static final ArchRule no_circles_between_classes =
      slices()
          .assignedFrom(
              new SliceAssignment() {
                @Override
                public SliceIdentifier getIdentifierOf(JavaClass c) {
                  return SliceIdentifier.of(outermost(c));
                }

                @Override
                public String getDescription() {
                  return "classes with what is nested in them";
                }
              })
          .should()
          .beFreeOfCycles();

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

  @ArchTest
  static final ArchRule decisions_act_on_nothing =
      noClasses()
          .that(
              named(
                  "claim.RequestBindings",
                  "claim.Witness",
                  "share.ShareAgreement",
                  "share.ShareCandidate",
                  "share.ShareCheck",
                  "session.StepEffect"))
          .should()
          .dependOnClassesThat(
              resideInAPackage("io.coterie.signer.party").or(named("session.Session")));

  @ArchTest
  static final ArchRule helpers_of_a_session_call_no_driver =
      noClasses()
          .that()
          .resideInAPackage("io.coterie.signer.session")
          .and(
              not(
                  named(
                      "session.SessionService", "session.SessionOpening", "session.SessionDriver")))
          .should()
          .dependOnClassesThat(
              named("session.SessionService", "session.SessionOpening", "session.SessionDriver"));

  @ArchTest
  static final ArchRule driver_calls_neither_opening_nor_service =
      noClasses()
          .that(named("session.SessionDriver"))
          .should()
          .dependOnClassesThat(named("session.SessionService", "session.SessionOpening"));

  @ArchTest
  static final ArchRule opening_calls_no_service =
      noClasses()
          .that(named("session.SessionOpening"))
          .should()
          .dependOnClassesThat(named("session.SessionService"));

  /** Classes of the domain, and what is nested in them. */
  private static DescribedPredicate<JavaClass> named(String... names) {
    Set<String> wanted =
        Arrays.stream(names).map(name -> "io.coterie.signer." + name).collect(Collectors.toSet());
    return describe("are " + String.join(", ", names), c -> wanted.contains(outermost(c)));
  }

  private static String outermost(JavaClass c) {
    return c.getName().split("\\$", 2)[0];
  }
}
