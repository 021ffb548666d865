package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.yaml.snakeyaml.Yaml;

/** Rules fire when they should, and what is generated is up to date. */
@Timeout(300)
class ObservabilityTest {
  private static final Path DEPLOY = ProjectRoot.PATH.resolve("deploy");
  private static final Path FILES = DEPLOY.resolve("helm/coterie-observability/files");
  private static final Path RULES = FILES.resolve("rules.yaml");

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

  /** A tool that {@code make bootstrap} fetches, or the system's; empty if there is neither. */
  private static Optional<Path> tool(String name) {
    return Stream.concat(
            Stream.of(ProjectRoot.PATH.resolve("build/tools/bin")),
            Stream.of(System.getenv("PATH").split(":")).map(Path::of))
        .map(folder -> folder.resolve(name))
        .filter(Files::isExecutable)
        .findFirst();
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
    Optional<Path> promtool = tool("promtool");
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
}
