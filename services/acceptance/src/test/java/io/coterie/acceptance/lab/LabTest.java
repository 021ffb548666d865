package io.coterie.acceptance.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.coterie.acceptance.ProjectRoot;
import io.coterie.acceptance.cluster.Tools;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A short run of the latency lab: 2-of-3, regions 150 ms apart. The lab itself refuses its results
 * if a message makes a way too many, or if Prometheus, the dashboard and the client disagree. Only
 * where network namespaces may be made.
 */
class LabTest {
  /** Exit status of {@code loadtest/lab/run} where it cannot run. */
  private static final int NOT_HERE = 77;

  @Test
  @Timeout(600)
  void aShortRunNeedsNoRoundTripTooMany() throws IOException, InterruptedException {
    assumeTrue(
        "root".equals(System.getProperty("user.name")) && Files.exists(Path.of("/dev/net/tun")),
        "the latency lab needs root and /dev/net/tun");
    Path root = ProjectRoot.PATH;
    Path delayer = root.resolve("loadtest/lab/delayer");
    Path folder = Files.createDirectories(Path.of("target", "lab").toAbsolutePath());
    assertThat(
            run(
                folder,
                "delayer.log",
                "cargo",
                "build",
                "--release",
                "--locked",
                "--manifest-path",
                delayer.resolve("Cargo.toml").toString()))
        .as("the delayer's build; see %s", folder.resolve("delayer.log"))
        .isZero();
    int status =
        run(
            folder,
            "lab.log",
            root.resolve("loadtest/lab/run").toString(),
            "3",
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow",
            "-XX:+UseSerialGC",
            "-Xmx256m",
            "-Djava.library.path=" + root.resolve("build/native"),
            "-Dcoterie.root=" + root,
            "-cp",
            System.getProperty(
                "surefire.real.class.path",
                System.getProperty(
                    "surefire.test.class.path", System.getProperty("java.class.path"))),
            Lab.class.getName(),
            delayer.resolve("target/release/delayer").toString(),
            "3",
            "check");
    String log = Files.readString(folder.resolve("lab.log"));
    assumeTrue(status != NOT_HERE, log);
    assertThat(status).as(log).isZero();
    List<String> results = Files.readAllLines(folder.resolve("build/lab/results.csv"));
    assertThat(results.getFirst()).isEqualTo(Result.HEADER);
    assertThat(results).anyMatch(l -> l.startsWith("sign,bls12-381,2,3,group,subsequent,latency"));
    assertThat(results).anyMatch(l -> l.startsWith("keygen,bls12-381,2,3,group,subsequent,floor"));
    assertThat(results)
        .anyMatch(l -> l.startsWith("sign_to_all,bls12-381,2,3,pairwise_sequential,subsequent,"));
    if (Tools.find(root, "prometheus").isPresent()) {
      assertThat(results)
          .anyMatch(l -> l.startsWith("sign,bls12-381,2,3,group,subsequent,dashboard_p50"))
          .anyMatch(l -> l.startsWith("keygen,bls12-381,2,3,group,subsequent,dashboard_p50"));
    }
    List<String> rounds = Files.readAllLines(folder.resolve("build/lab/rounds.csv"));
    assertThat(rounds.getFirst()).isEqualTo(Result.ROUNDS_HEADER);
    for (int round = 1; round <= 4; round++) {
      String passes =
          "keygen,bls12-381,2,3,group,subsequent,150,third_region,bls_keygen,"
              + round
              + ",parties,";
      assertThat(rounds).anyMatch(l -> l.startsWith(passes));
    }
    assertThat(folder.resolve("build/lab/report.md")).content().contains("# Latency lab");
  }

  private static int run(Path folder, String log, String... command)
      throws IOException, InterruptedException {
    File output = folder.resolve(log).toFile();
    Process process =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output)
            .start();
    if (!process.waitFor(500, TimeUnit.SECONDS)) {
      process.destroy();
      process.waitFor();
    }
    return process.exitValue();
  }
}
