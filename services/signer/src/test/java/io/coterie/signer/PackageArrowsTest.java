package io.coterie.signer;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import java.util.Set;

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
}
