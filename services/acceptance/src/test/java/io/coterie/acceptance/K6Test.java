package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Tools;
import io.coterie.proto.custody.v1.Scheme;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The scenario of {@code loadtest/k6} against a real installation, where k6 is there: {@code make
 * test} does not build it, which takes minutes; {@code make load K6=1} does.
 */
@ExtendWith(SharedCluster.class)
@Timeout(600)
class K6Test {
  private static final Path SCRIPT = ProjectRoot.PATH.resolve("loadtest/k6/run");
  private static final Path SUMMARY = Path.of("target", "k6-summary.json").toAbsolutePath();
  private static final String KEY = "k6";

  private record Run(int exitCode, String output) {}

  @BeforeAll
  static void there() {
    assumeTrue(
        Tools.find(ProjectRoot.PATH, "k6").isPresent()
            && Files.exists(ProjectRoot.PATH.resolve("build/k6/sign.js")),
        "k6 or its scenario is not here: `make load K6=1` builds both");
  }

  private static Run k6(Running shared, Map<String, String> settings) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(SCRIPT.toString(), "--summary-export", SUMMARY.toString())
            .redirectErrorStream(true);
    builder.environment().put("PROFILE", shared.cluster().writeProfile(Cluster.WALLET).toString());
    builder.environment().putAll(settings);
    Process process = builder.start();
    process.getOutputStream().close();
    String output = new String(process.getInputStream().readAllBytes());
    assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
    return new Run(process.exitValue(), output);
  }

  private static JsonNode metrics() throws IOException {
    return new JsonMapper().readTree(Files.readString(SUMMARY)).get("metrics");
  }

  @Test
  void everySignatureOfASteadyAndOfAGrowingRateIsVerified(Running shared) throws Exception {
    shared
        .wallet()
        .createKey(
            KEY,
            Scheme.SCHEME_ED25519,
            shared.cluster().threshold(),
            shared.cluster().partyNames());
    Run run =
        k6(shared, Map.of("KEY", KEY, "RATE", "2", "DURATION", "3", "RAMP", "4", "VUS", "20"));
    assertThat(run.exitCode()).as(run.output()).isZero();
    JsonNode valid = metrics().get("signatures_valid");
    // Six at the steady rate, and some nine while it grows.
    assertThat(valid.get("passes").asInt()).as(run.output()).isBetween(12, 16);
    assertThat(valid.get("fails").asInt()).isZero();
    assertThat(metrics().get("signing_time").get("med").asDouble()).isPositive();
  }

  @Test
  void aRunWithoutSignaturesIsNoSuccess(Running shared) throws Exception {
    Run run = k6(shared, Map.of("KEY", "nobody-made-this", "RATE", "2", "DURATION", "1"));
    assertThat(run.exitCode()).as(run.output()).isNotZero();
    assertThat(run.output()).contains("keys/nobody-made-this");
  }
}
