package io.coterie.platform;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(
    packages = "io.coterie.platform",
    importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule imports_no_service =
      noClasses()
          .should()
          .dependOnClassesThat(
              DescribedPredicate.describe(
                  "are of this system but neither platform, proto nor trust",
                  c ->
                      c.getPackageName().startsWith("io.coterie.")
                          && !c.getPackageName().startsWith("io.coterie.platform")
                          && !c.getPackageName().startsWith("io.coterie.proto")
                          && !c.getPackageName().equals("io.coterie.trust")));

  @ArchTest
  static final ArchRule only_attestations_need_the_trust_of_clients =
      noClasses()
          .that()
          .resideOutsideOfPackage("io.coterie.platform.attestation")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.coterie.trust");

  @ArchTest
  static final ArchRule attestations_need_only_what_they_are_made_of =
      classes()
          .that()
          .resideInAPackage("io.coterie.platform.attestation")
          .should()
          .onlyDependOnClassesThat()
          .resideInAnyPackage(
              "io.coterie.platform.attestation",
              // The names of reasons for which a party refuses.
              "io.coterie.platform.error",
              "io.coterie.proto.party..",
              "io.coterie.platform.intent",
              "io.coterie.platform.ledger",
              "io.coterie.platform.protocol",
              "io.coterie.platform.scheme",
              "io.coterie.trust",
              "io.coterie.proto.core..",
              "io.coterie.proto.custody..",
              "com.google.protobuf",
              "java..",
              "org.jspecify.annotations");

  /** The command-line tool and wallet backends sign intents with it. */
  @ArchTest
  static final ArchRule needs_no_framework =
      noClasses().should().dependOnClassesThat().resideInAPackage("org.springframework..");

  @ArchTest
  static final ArchRule intents_need_only_proto_and_cryptography =
      classes()
          .that()
          .resideInAPackage("io.coterie.platform.intent")
          .should()
          .onlyDependOnClassesThat()
          .resideInAnyPackage(
              "io.coterie.platform.intent",
              "io.coterie.platform.error",
              "io.coterie.proto..",
              "com.google.protobuf",
              "org.bouncycastle.crypto..",
              "java..",
              "org.jspecify.annotations");

  /** Decoders of requesters' bytes use no more than they need, and no secret. */
  @ArchTest
  static final ArchRule payloads_need_only_their_libraries =
      classes()
          .that()
          .resideInAnyPackage("io.coterie.platform.payload", "io.coterie.platform.bip32")
          .should()
          .onlyDependOnClassesThat()
          .resideInAnyPackage(
              "io.coterie.platform.payload",
              "io.coterie.platform.bip32",
              "io.coterie.platform.intent",
              "io.coterie.platform.scheme",
              "io.coterie.proto..",
              "com.google.protobuf",
              "com.esaulpaugh.headlong.rlp",
              "com.esaulpaugh.headlong.abi",
              "fr.acinq.bitcoin..",
              "tools.jackson..",
              "org.bouncycastle..",
              "java..",
              "org.jspecify.annotations");

  /** Each library behind one package, so that it can be exchanged. */
  @ArchTest
  static final ArchRule libraries_of_payloads_stay_there =
      noClasses()
          .that()
          .resideOutsideOfPackages("io.coterie.platform.payload", "io.coterie.platform.bip32")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("com.esaulpaugh..", "fr.acinq..");

  @ArchTest
  static final ArchRule foreign_memory_is_for_the_binding_only =
      noClasses().should().dependOnClassesThat().resideInAPackage("java.lang.foreign..");

  @ArchTest
  static final ArchRule no_circles =
      slices().matching("io.coterie.platform.(**)").should().beFreeOfCycles();
}
