package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Prometheus;
import io.coterie.acceptance.cluster.Tools;
import io.coterie.acceptance.cluster.WalletBackend;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.yaml.snakeyaml.Yaml;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Rules and dashboards say something about the services as they are. */
@ExtendWith(SharedCluster.class)
@Timeout(600)
class ObservabilityTest {
  private static final Path DEPLOY = ProjectRoot.PATH.resolve("deploy");
  private static final Path FILES = DEPLOY.resolve("helm/coterie-observability/files");
  private static final Path RULES = FILES.resolve("rules.yaml");
  private static final Duration PATIENCE = Duration.ofSeconds(150);
  private static final int SIGNATURES_BETWEEN_LOOKS = 10;

  /** Series that only an installation with several messaging replicas has. */
  private static final Set<String> NEEDS_REDIS = Set.of("coterie_messaging_relay_seconds_count");

  private static final Pattern METRIC =
      Pattern.compile("\\b(coterie[_:][a-z0-9_:]+|ssl_chain_expiry_seconds|up)\\b(?!\\s*=)");

  private record Rule(String name, boolean alert, String expression, String runbook) {}

  @SuppressWarnings("unchecked")
  private static List<Rule> rules() throws IOException {
    Map<String, List<Map<String, Object>>> file = new Yaml().load(Files.readString(RULES));
    return file.get("groups").stream()
        .flatMap(group -> ((List<Map<String, Object>>) group.get("rules")).stream())
        .map(
            rule ->
                new Rule(
                    String.valueOf(rule.getOrDefault("alert", rule.get("record"))),
                    rule.containsKey("alert"),
                    String.valueOf(rule.get("expr")),
                    rule.containsKey("alert")
                        ? String.valueOf(
                            ((Map<String, Object>) rule.get("annotations")).get("runbook_url"))
                        : ""))
        .toList();
  }

  /** Every query of every panel, by where it is, for the time range and variables of a person. */
  private static Map<String, String> panelQueries() throws IOException {
    Map<String, String> queries = new LinkedHashMap<>();
    try (Stream<Path> boards = Files.list(FILES.resolve("dashboards"))) {
      for (Path board : boards.sorted().toList()) {
        JsonNode root = new JsonMapper().readTree(Files.readString(board));
        for (JsonNode panel :
            root.findValues("panels").stream().flatMap(JsonNode::valueStream).toList()) {
          for (JsonNode target : panel.path("targets").values()) {
            queries.put(
                board.getFileName()
                    + ", "
                    + panel.get("title").asString()
                    + ", "
                    + target.get("refId").asString(),
                target
                    .get("expr")
                    .asString()
                    .replace("$__rate_interval", "1m")
                    .replace("$protocol", ".*"));
          }
        }
      }
    }
    return queries;
  }

  private static Set<String> metrics(String expression) {
    Set<String> names = new TreeSet<>();
    Matcher matcher = METRIC.matcher(expression);
    while (matcher.find()) {
      names.add(matcher.group(1));
    }
    return names;
  }

  private static String run(Map<String, String> environment, String... command) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(command).directory(DEPLOY.resolve("observability").toFile());
    builder.environment().putAll(environment);
    Process process = builder.redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(200, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(output).isZero();
    return output;
  }

  @Test
  void alerts_fire_when_their_unit_tests_say_so() throws Exception {
    Optional<Path> promtool = Tools.find(ProjectRoot.PATH, "promtool");
    assumeTrue(promtool.isPresent(), "no promtool: make bootstrap says how to get it");
    run(Map.of(), promtool.get().toString(), "test", "rules", "rules_test.yaml");
    String tests = Files.readString(DEPLOY.resolve("observability/rules_test.yaml"));
    assertThat(rules().stream().filter(Rule::alert).map(Rule::name).distinct())
        .allSatisfy(name -> assertThat(tests).contains(name));
  }

  @Test
  void files_are_what_their_generator_makes() throws Exception {
    Path library = ProjectRoot.PATH.resolve("build/tools/python");
    assumeTrue(
        Files.isDirectory(library), "no Grafana schema library: make bootstrap says what it needs");
    run(Map.of("PYTHONPATH", library.toString()), "python3", "-B", "generate.py", "--check");
  }

  @Test
  void every_alert_has_a_page_that_says_what_to_do() throws IOException {
    for (Rule rule : rules().stream().filter(Rule::alert).toList()) {
      Path page =
          ProjectRoot.PATH.resolve(rule.runbook().substring(rule.runbook().indexOf("/docs/") + 1));
      assertThat(page).isRegularFile();
      assertThat(Files.readString(page)).contains(rule.name(), "## What to do");
    }
  }

  @Test
  void every_query_returns_data_under_load(SharedCluster.Running running) throws Exception {
    Optional<Path> binary = Tools.find(ProjectRoot.PATH, "prometheus");
    assumeTrue(binary.isPresent(), "no Prometheus: make bootstrap says how to get it");
    Map<String, String> missing = new LinkedHashMap<>(panelQueries());
    assertThat(missing).hasSizeGreaterThan(40);
    for (Rule rule : rules()) {
      if (rule.alert()) {
        // The series of an alert must exist; an alert that shows nothing is as it should be.
        for (String metric : metrics(rule.expression())) {
          if (!NEEDS_REDIS.contains(metric)) {
            missing.put(rule.name() + " looks at " + metric, metric);
          }
        }
      } else {
        missing.put("recorded " + rule.name(), rule.name());
      }
    }
    missing.put("all keys can sign", "coterie_quorum_margin >= 0");
    WalletBackend wallet = running.wallet();
    wallet.createEcdsaKey("observed", 2, running.cluster().partyNames());
    long end = System.nanoTime() + PATIENCE.toNanos();
    int signed = 0;
    try (Prometheus prometheus =
        Prometheus.start(
            binary.get(),
            Path.of("target", "prometheus").toAbsolutePath(),
            RULES,
            running.cluster())) {
      while (!missing.isEmpty() && System.nanoTime() < end) {
        for (int i = 0; i < SIGNATURES_BETWEEN_LOOKS; i++) {
          signed += sign(wallet, signed);
        }
        missing.values().removeIf(query -> prometheus.series(query) > 0);
      }
      assertThat(missing).as("queries without data after %s signatures", signed).isEmpty();
      assertThat(prometheus.ruleProblems()).isEmpty();
    }
  }

  /** Makes a signature of each scheme; how many there were. A busy machine may answer too late. */
  private static int sign(WalletBackend wallet, int number) {
    try {
      wallet.sign(SharedCluster.KEY, "observed " + number);
      wallet.sign(WalletBackend.ecdsaIntent("observed").setDigest(digest(number)));
      return 2;
    } catch (StatusRuntimeException e) {
      return 0;
    }
  }

  private static ByteString digest(int number) {
    byte[] digest = new byte[32];
    digest[0] = (byte) number;
    digest[1] = (byte) (number >> 8);
    return ByteString.copyFrom(digest);
  }
}
