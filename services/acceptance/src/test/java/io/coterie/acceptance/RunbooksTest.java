package io.coterie.acceptance;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.mapping;
import static java.util.stream.Collectors.toList;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.Runbooks.Block;
import io.coterie.acceptance.Runbooks.Section;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * No command gets onto a runbook that {@code make cluster-test} does not run. Those of the alerts
 * are for looking only.
 */
class RunbooksTest {
  private static final Path SOURCES = Path.of("src/test/java/io/coterie/acceptance");

  /** How a line or an inline piece of code begins that somebody would paste into a terminal. */
  private static final Pattern COMMAND =
      Pattern.compile(
          "(?:\\$ |sudo )?(?:kubectl|helm|make|curl|cp|mv|rm|tar|java|psql|pg_[a-z]+|sqlite3|openssl"
              + "|bin/\\S+|deploy/\\S+|coterie) \\S.*");

  private static final Pattern INLINE = Pattern.compile("`([^`]+)`");
  private static final Pattern VARIABLE = Pattern.compile("\\$\\{?([A-Z_]+)\\b");

  /** Targets that other tests run: images, charts and this one. */
  private static final Set<String> TARGETS =
      Set.of(
          "make images",
          "make charts",
          "make cluster-images",
          "make cluster-test",
          "make build charts");

  @Test
  void everySectionWithCommandsIsRunByTheClusterTest() throws IOException {
    Map<String, List<String>> written = new TreeMap<>();
    for (String page : Runbooks.pages()) {
      List<String> headings =
          Runbooks.blocks(page).stream()
              .filter(Block::isCommands)
              .map(Block::heading)
              .distinct()
              .toList();
      if (!headings.isEmpty()) {
        written.put(page, headings);
      }
    }
    Map<String, List<String>> run =
        Arrays.stream(Section.values())
            .collect(groupingBy(s -> s.page, TreeMap::new, mapping(s -> s.heading, toList())));
    assertThat(run).isEqualTo(written);

    String sources =
        Files.readString(SOURCES.resolve("KubernetesTest.java"))
            + Files.readString(SOURCES.resolve("KubernetesInstallation.java"));
    assertThat(Section.values())
        .allSatisfy(section -> assertThat(sources).contains("Section." + section.name() + ","));
  }

  @Test
  void commandsAreInBlocksOfShAndNowhereElse() throws IOException {
    List<String> loose = new ArrayList<>();
    for (String page : Runbooks.pages()) {
      List<Block> blocks = Runbooks.blocks(page);
      blocks.stream()
          .filter(block -> !block.isCommands())
          .filter(block -> block.text().lines().anyMatch(RunbooksTest::isCommand))
          .forEach(block -> loose.add("%s.md:%d".formatted(page, block.line())));
      boolean fenced = false;
      int number = 0;
      for (String line : Runbooks.lines(page)) {
        number++;
        String where = "%s.md:%d: %s".formatted(page, number, line);
        if (line.stripLeading().startsWith("```")) {
          fenced = !fenced;
        } else if (!fenced && line.startsWith("    ") && isCommand(line)) {
          loose.add(where);
        } else if (!fenced
            && INLINE.matcher(line).results().map(code -> code.group(1)).anyMatch(this::isLoose)) {
          loose.add(where);
        }
      }
    }
    assertThat(loose).isEmpty();
  }

  private static boolean isCommand(String line) {
    return COMMAND.matcher(line.strip()).matches();
  }

  private boolean isLoose(String code) {
    return isCommand(code) && !TARGETS.contains(code);
  }

  @Test
  void commandsUseTheVariablesThatAreDescribed() throws IOException {
    Set<String> used = new TreeSet<>();
    for (String page : Runbooks.pages()) {
      Runbooks.blocks(page).stream()
          .filter(Block::isCommands)
          .flatMap(block -> VARIABLE.matcher(block.text()).results())
          .map((MatchResult variable) -> variable.group(1))
          .forEach(used::add);
    }
    // The profile's is read by bin/coterie itself.
    used.add("COTERIE_PROFILE");
    assertThat(Runbooks.variables()).isEqualTo(used);
  }
}
