package io.coterie.acceptance;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.coterie.mpc.Vault;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * The imports between modules. The build's dependencies already keep most of it; this keeps the
 * rest, and says in one place what the arrows are.
 */
class ModuleArrowsTest {
  /** Module (package below {@code io.coterie}) and the others it may use. */
  private static final Map<String, Set<String>> ARROWS =
      Map.ofEntries(
          entry("proto", Set.of()),
          entry("trust", Set.of()),
          entry("mpc", Set.of("proto")),
          entry("platform", Set.of("proto", "trust")),
          entry("channel", Set.of("proto", "trust")),
          entry("member", Set.of("proto", "platform", "trust", "mpc")),
          entry("messaging", Set.of("proto", "platform")),
          entry("coordinator", Set.of("proto", "platform", "channel", "mpc", "trust")),
          entry("signer", Set.of("proto", "platform", "channel", "mpc", "trust")),
          entry(
              "simulation",
              Set.of("proto", "platform", "channel", "mpc", "trust", "signer", "coordinator")),
          entry("cli", Set.of("proto", "platform", "trust", "mpc", "member")),
          // It starts whole installations, and simulates none.
          entry(
              "acceptance",
              Set.of(
                  "proto",
                  "trust",
                  "mpc",
                  "platform",
                  "channel",
                  "messaging",
                  "coordinator",
                  "signer",
                  "member",
                  "cli")));

  private static final String ROOT = "io.coterie.";

  /** Every class of this system but the ones of tests. */
  private static final JavaClasses CLASSES =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("io.coterie");

  static final List<String> MODULES = ARROWS.keySet().stream().sorted().toList();

  private static String module(JavaClass c) {
    return c.getPackageName().startsWith(ROOT)
        ? c.getPackageName().substring(ROOT.length()).split("\\.", 2)[0]
        : "";
  }

  @ParameterizedTest
  @FieldSource("MODULES")
  void module_imports_only_what_its_arrows_allow(String module) {
    Set<String> allowed = ARROWS.get(module);
    assertThat(CLASSES.stream().filter(c -> module(c).equals(module))).isNotEmpty();
    noClasses()
        .that(describe("belong to " + module, c -> module(c).equals(module)))
        .should()
        .dependOnClassesThat(
            describe(
                "belong to a module other than " + allowed,
                c ->
                    !module(c).isEmpty()
                        && !module(c).equals(module)
                        && !allowed.contains(module(c))))
        .check(CLASSES);
  }

  @Test
  void packages_form_no_circle() {
    slices().matching("io.coterie.(**)").should().beFreeOfCycles().check(CLASSES);
  }

  @Test
  void every_module_has_its_arrows() {
    assertThat(CLASSES.stream().map(ModuleArrowsTest::module).filter(name -> !name.isEmpty()))
        .isNotEmpty()
        .isSubsetOf(MODULES);
  }

  /** Packages of a service that connect it to the outside. The rest there is its domain. */
  private static final Set<String> ADAPTERS =
      Set.of("api", "socket", "storage", "channel", "nativecore", "verification");

  static final List<String> SERVICES = List.of("coordinator", "messaging", "signer");

  /** Package below the service's own, empty for the application class. */
  private static String part(String service, JavaClass c) {
    String prefix = ROOT + service + ".";
    return c.getPackageName().startsWith(prefix)
        ? c.getPackageName().substring(prefix.length()).split("\\.", 2)[0]
        : "";
  }

  @ParameterizedTest
  @FieldSource("SERVICES")
  void domain_knows_no_adapter(String service) {
    noClasses()
        .that(
            describe(
                "are domain of " + service,
                c ->
                    !part(service, c).isEmpty()
                        && !part(service, c).equals("config")
                        && !ADAPTERS.contains(part(service, c))))
        .should()
        .dependOnClassesThat(describe("are adapters", c -> ADAPTERS.contains(part(service, c))))
        .check(CLASSES);
  }

  /** Settings are data and may be read; the wiring of the service is known to its start alone. */
  @ParameterizedTest
  @FieldSource("SERVICES")
  void nothing_knows_the_wiring(String service) {
    noClasses()
        .that(
            describe(
                "are parts of " + service,
                c -> !part(service, c).isEmpty() && !part(service, c).equals("config")))
        .should()
        .dependOnClassesThat(
            describe(
                "are wiring",
                c -> part(service, c).equals("config") && !c.isRecord() && !c.isEnum()))
        .check(CLASSES);
  }

  /**
   * Services know the contract of the channel, and the two classes that make accounts and channels.
   */
  @Test
  void inside_of_the_channel_is_its_own() {
    noClasses()
        .that(describe("are not the channel", c -> !module(c).equals("channel")))
        .should()
        .dependOnClassesThat(
            describe(
                "are inside the channel",
                c ->
                    c.getPackageName().startsWith(ROOT + "channel.")
                        && !c.getName().equals(ROOT + "channel.signal.SignalChannel")
                        && !c.getName().equals(ROOT + "channel.link.Enrolment")))
        .check(CLASSES);
  }

  @Test
  void only_the_binding_touches_foreign_memory() {
    noClasses()
        .that()
        .resideOutsideOfPackage("io.coterie.mpc..")
        .should()
        .dependOnClassesThat(resideInAPackage("java.lang.foreign.."))
        .check(CLASSES);
  }

  @Test
  void only_channel_and_messaging_know_signal() {
    noClasses()
        .that()
        .resideOutsideOfPackages(
            "io.coterie.channel..", "io.coterie.messaging..", "io.coterie.acceptance..")
        .should()
        .dependOnClassesThat(resideInAPackage("org.signal.."))
        .check(CLASSES);
  }

  @Test
  void messaging_knows_no_mpc() {
    noClasses()
        .that()
        .resideInAPackage("io.coterie.messaging..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(
            "io.coterie.proto.core..", "io.coterie.proto.party..", "io.coterie.proto.custody..")
        .check(CLASSES);
  }

  /** Clients bring their own terminal, and their own transport of gRPC. */
  @Test
  void library_of_members_knows_no_terminal_and_no_transport() {
    noClasses()
        .that()
        .resideInAPackage("io.coterie.member..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("picocli..", "io.netty..", "io.grpc.netty..", "javax.net..")
        .orShould()
        .accessField(System.class, "out")
        .orShould()
        .accessField(System.class, "err")
        .orShould()
        .callMethod(System.class, "exit", int.class)
        .check(CLASSES);
  }

  /** docs/adr/0003: it observes, and has nothing that could open a share. */
  @Test
  void coordinator_has_no_vault() {
    noClasses()
        .that()
        .resideInAPackage("io.coterie.coordinator..")
        .should()
        .dependOnClassesThat()
        .areAssignableTo(Vault.class)
        .orShould()
        .callMethod("io.coterie.mpc.MpcCore", "openVault", byte[].class.getName())
        .check(CLASSES);
  }
}
