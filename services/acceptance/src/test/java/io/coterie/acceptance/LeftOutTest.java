package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code .ci/skipped}, which fails on a build server if a test was left out without need. */
class LeftOutTest {
  private static final String NEEDED = "no Docker here";
  private static final String OF_THE_MACHINE = "a disk of its own needs root";

  @TempDir Path tree;

  private record Ended(int status, String output) {}

  @BeforeEach
  void copy() throws IOException {
    Files.createDirectories(tree.resolve(".ci"));
    Files.createDirectories(tree.resolve("build/log"));
    Files.createDirectories(tree.resolve("services/a/target/surefire-reports"));
    Files.copy(ProjectRoot.PATH.resolve(".ci/skipped"), tree.resolve(".ci/skipped"));
    Files.createFile(tree.resolve("build/.test-start"));
  }

  private Path surefire(String reason) throws IOException {
    return Files.writeString(
        tree.resolve("services/a/target/surefire-reports/TEST-a.ATest.xml"),
        """
        <testsuite name="a.ATest" tests="2" errors="0" skipped="1" failures="0">
          <testcase name="runs" classname="a.ATest" time="0.1"/>
          <testcase name="waits" classname="a.ATest" time="0.0">
            <skipped message="Assumption failed: %s"/>
          </testcase>
        </testsuite>
        """
            .formatted(reason));
  }

  private Ended run(String ci) throws IOException, InterruptedException {
    ProcessBuilder command = new ProcessBuilder("node", tree.resolve(".ci/skipped").toString());
    command.environment().put("CI", ci);
    Process process = command.redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes());
    return new Ended(process.waitFor(), output);
  }

  @Test
  void a_build_server_fails_if_a_test_was_left_out_that_it_could_run() throws Exception {
    surefire(NEEDED);
    Ended ended = run("true");
    assertThat(ended.output()).contains("left out: ATest.waits: " + NEEDED);
    assertThat(ended.status()).isEqualTo(1);
    assertThat(run("").status()).as("on a laptop").isZero();
  }

  @Test
  void a_test_that_the_machine_cannot_run_is_listed_and_fails_nothing() throws Exception {
    surefire(OF_THE_MACHINE);
    Ended ended = run("true");
    assertThat(ended.output()).contains("left out: ATest.waits: " + OF_THE_MACHINE);
    assertThat(ended.status()).isZero();
  }

  @Test
  void tests_of_cargo_and_node_and_parts_of_scripts_count_too() throws Exception {
    for (String line :
        new String[] {
          "test a::waits ... ignored, no reason",
          "ok 3 - waits # SKIP no helm",
          "left out: constant-time: valgrind is missing",
          "left out: terraform: there is no terraform; install 1.9 or newer"
        }) {
      Files.writeString(tree.resolve("build/log/some-tests.log"), "before\n" + line + "\nafter\n");
      assertThat(run("true").status()).as(line).isEqualTo(1);
    }
  }

  @Test
  void a_report_of_an_earlier_run_does_not_count() throws Exception {
    Files.setLastModifiedTime(surefire(NEEDED), FileTime.from(Instant.now().minusSeconds(3600)));
    assertThat(run("true")).isEqualTo(new Ended(0, ""));
  }
}
