package io.coterie.signer;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import io.coterie.signer.party.ThreadWorkPool;
import io.coterie.signer.storage.PartyStore;
import java.util.Set;

/**
 * Time, threads and randomness come to the signer from outside, so that a simulation decides them
 * (docs/adr/0038).
 */
@AnalyzeClasses(
    packages = "io.coterie.signer",
    importOptions = ImportOption.DoNotIncludeTests.class)
class InjectedMeansTest {
  private static final Set<String> MEANS =
      Set.of(
          "java.lang.System.nanoTime",
          "java.lang.System.currentTimeMillis",
          "java.time.Instant.now",
          "java.time.Clock.systemUTC",
          "java.lang.Thread.<init>",
          "java.lang.Thread.sleep",
          "java.lang.Thread.ofPlatform",
          "java.lang.Thread.ofVirtual",
          "java.lang.Thread.startVirtualThread",
          "java.util.concurrent.ThreadPoolExecutor.<init>",
          "java.util.concurrent.ScheduledThreadPoolExecutor.<init>",
          "java.util.concurrent.CompletableFuture.supplyAsync",
          "java.util.concurrent.CompletableFuture.runAsync",
          "java.util.UUID.randomUUID",
          "java.lang.Math.random",
          "java.security.SecureRandom.<init>");

  /** The implementations for production, and the class that makes one of them. */
  private static final Set<String> MAKERS =
      Set.of(
          ThreadWorkPool.class.getName(),
          PartyStore.class.getPackageName() + ".CommitThread",
          PartyStore.class.getName());

  private static boolean isMeans(JavaAccess<?> access) {
    String owner = access.getTargetOwner().getName();
    return owner.equals("java.util.concurrent.Executors")
        || MEANS.contains(owner + "." + access.getName());
  }

  @ArchTest
  static final ArchRule time_threads_and_randomness_come_from_outside =
      noClasses()
          .that(
              describe(
                  "are neither wiring nor the implementations for production",
                  c ->
                      !c.getPackageName().equals("io.coterie.signer.config")
                          && !MAKERS.contains(c.getName())))
          .should()
          .accessTargetWhere(
              describe("a clock, a thread or chance is made", access -> isMeans(access)));
}
