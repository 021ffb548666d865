package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The pages that people read: their links, their list of places, and the rules of CONTRIBUTING. */
class DocumentationTest {
  private static final int LONGEST_LINE = 120;

  /**
   * A decision in {@code docs/adr} has one page: so many lines, where a long row counts as several.
   */
  private static final int LINES_OF_A_PAGE = 45;

  private static final Pattern LINK = Pattern.compile("\\]\\(([^)#:]+)(?:#[^)]*)?\\)");
  private static final Pattern PLACE = Pattern.compile("`((?:services|proto|deploy|docs)/[^`]+)`");
  private static final Pattern TEST =
      Pattern.compile("`(?:\\w+\\.)?((?!coterie_)[a-z]+(?:_[a-z0-9]+){3,})`");
  private static final Pattern TEST_OF_CLASS = Pattern.compile("`([A-Z]\\w+Test)[.](\\w+)`");
  private static final Pattern MAKE = Pattern.compile("`make ([a-z][a-z-]*)");
  private static final Pattern TARGET = Pattern.compile("(?m)^([a-z-]+):(?!=)");

  /** After a colon or a semicolon the same clause reads no better for its small letter. */
  private static final Pattern RIDDLE =
      Pattern.compile(
          "(?:^|[.:;] )(?:[-*] |\\d+\\. )?\\*{0,2}(?:What|Who|Whoever|Whatever)\\b"
              + "|@(?:param \\S+|return|throws \\S+) (?:what|who|whoever|whatever) "
              + "|[:;] (?:what|who|whoever|whatever) ");

  /**
   * A cell of a table is read across, so a longer text stands below the table or in rows of its
   * own.
   */
  private static final int LONGEST_CELL = 500;

  private static final Pattern CELL_END = Pattern.compile("(?<!\\\\)\\|");

  @Test
  void everyLinkLeadsToAFile() throws IOException {
    List<String> broken = new ArrayList<>();
    for (Prose.Line line : Prose.ofPages()) {
      LINK.matcher(line.text())
          .results()
          .map(link -> link.group(1))
          .filter(target -> !Files.exists(line.file().resolveSibling(target)))
          .forEach(target -> broken.add(line.file() + ": " + target));
    }
    assertThat(broken).isEmpty();
  }

  @Test
  void linesOfProseAreShort() throws IOException {
    List<Prose.Line> tooLong = new ArrayList<>();
    for (Prose.Line line : Prose.ofPages()) {
      if (line.text().length() > LONGEST_LINE && !line.text().stripLeading().startsWith("|")) {
        tooLong.add(line);
      }
    }
    for (Prose.Line line : Prose.ofComments()) {
      if (line.text().length() > LONGEST_LINE) {
        tooLong.add(line);
      }
    }
    assertThat(tooLong).isEmpty();
  }

  @Test
  void cellsOfTablesAreShort() throws IOException {
    List<String> tooLong = new ArrayList<>();
    for (Prose.Line line : Prose.ofPages()) {
      if (line.text().startsWith("|")) {
        CELL_END
            .splitAsStream(line.text())
            .map(String::strip)
            .filter(cell -> cell.length() > LONGEST_CELL)
            .forEach(cell -> tooLong.add(line.file() + ": " + cell));
      }
    }
    assertThat(tooLong).isEmpty();
  }

  /**
   * An operator reads the list from top to bottom; arguments stand in the ADR that a line names.
   */
  @Test
  void anEntryOfTheChangelogHasTwoLinesAtMost() throws IOException {
    List<String> entries = new ArrayList<>();
    for (String line : Files.readAllLines(ProjectRoot.PATH.resolve("CHANGELOG.md"))) {
      if (line.startsWith("- ")) {
        entries.add(line);
      } else if (line.startsWith("  ")) {
        entries.add(entries.removeLast() + "\n" + line);
      }
    }
    assertThat(entries)
        .hasSizeGreaterThan(20)
        .allSatisfy(entry -> assertThat(entry.lines()).hasSizeLessThanOrEqualTo(2));
  }

  @Test
  void aDecisionHasOnePage() throws IOException {
    List<String> tooLong = new ArrayList<>();
    for (Path page : Prose.pages()) {
      String name = page.getFileName().toString();
      if (page.getParent().endsWith("docs/adr")) {
        int lines = Files.readAllLines(page).stream().mapToInt(DocumentationTest::filled).sum();
        if (lines > LINES_OF_A_PAGE) {
          tooLong.add(name + ": " + lines);
        }
      }
    }
    assertThat(tooLong).isEmpty();
  }

  /** How many lines of the longest length a line of text fills. */
  private static int filled(String line) {
    return Math.max(1, Math.ceilDiv(line.length(), LONGEST_LINE));
  }

  @Test
  void noSentenceOpensAsARiddle() throws IOException {
    List<Prose.Line> lines = new ArrayList<>(Prose.ofPages());
    lines.addAll(Prose.ofComments());
    assertThat(lines).filteredOn(line -> RIDDLE.matcher(line.sentence()).find()).isEmpty();
  }

  @Test
  void commentsOfEveryLanguageAreRead() throws IOException {
    List<Prose.Line> comments = Prose.ofComments();
    assertThat(comments).hasSizeGreaterThan(20_000);
    Set<String> kinds =
        comments.stream()
            .map(line -> line.file().getFileName().toString().replaceFirst(".*[.]", ""))
            .collect(Collectors.toSet());
    assertThat(kinds)
        .contains("java", "rs", "proto", "h", "js", "mjs", "mpcl", "sql", "lua", "xml", "py")
        .contains("yaml", "tpl", "toml", "tf", "hcl", "lock", "csv", "txt")
        .contains("suppressions", "Makefile", "Dockerfile", "soak");
  }

  @Test
  void placesOfEverydayChangesExist() throws IOException {
    assertThat(places(Files.readString(ProjectRoot.PATH.resolve("CONTRIBUTING.md"))))
        .hasSizeGreaterThan(20)
        .allSatisfy(place -> assertThat(place).exists());
  }

  @Test
  void eachEverydayChangeNamesItsOneOrTwoPlaces() throws IOException {
    String contributing = Files.readString(ProjectRoot.PATH.resolve("CONTRIBUTING.md"));
    String section =
        contributing.split("\n## Where everyday changes go\n", 2)[1].split("\n## ", 2)[0];
    List<String> changes =
        section
            .lines()
            .filter(line -> line.startsWith("| "))
            .filter(line -> !line.startsWith("| change "))
            .toList();
    assertThat(changes)
        .hasSizeGreaterThanOrEqualTo(20)
        .allSatisfy(
            change -> {
              assertThat(places(change)).hasSizeBetween(1, 2);
              // A file of which only the name is given cannot be found from the tree alone.
              assertThat(change).doesNotContainPattern("`\\w+[.](java|rs|proto|py)`");
            });
  }

  /** The files and folders that a text of CONTRIBUTING names by their paths. */
  private static List<Path> places(String text) {
    return PLACE
        .matcher(text)
        .results()
        .map(place -> place.group(1).replace("JAVA", "src/main/java/io/coterie"))
        .map(ProjectRoot.PATH::resolve)
        .toList();
  }

  @Test
  void testsThatPagesNameExist() throws IOException {
    Map<String, String> sources = new HashMap<>();
    try (Stream<Path> files = Files.walk(ProjectRoot.PATH.resolve("services"))) {
      for (Path file : files.filter(DocumentationTest::isTestSource).toList()) {
        String unit = file.getFileName().toString().replaceFirst("[.].*", "");
        sources.merge(unit, Files.readString(file), String::concat);
      }
    }
    String all = String.join("\n", sources.values());
    List<String> named = new ArrayList<>();
    List<String> absent = new ArrayList<>();
    for (Path page : Prose.pages()) {
      String text = Files.readString(page);
      if (page.toString().matches(".*/docs/(security|protocols)/.*")) {
        TEST.matcher(text).results().forEach(test -> named.add(test.group(1)));
      }
      TEST_OF_CLASS
          .matcher(text)
          .results()
          .filter(
              test -> !sources.getOrDefault(test.group(1), "").contains(" " + test.group(2) + "("))
          .forEach(test -> absent.add(page + ": " + test.group()));
    }
    assertThat(absent).isEmpty();
    assertThat(named).hasSizeGreaterThan(10).allSatisfy(test -> assertThat(all).contains(test));
  }

  @Test
  void makeTargetsThatFilesNameExist() throws IOException {
    Set<String> targets =
        TARGET
            .matcher(Files.readString(ProjectRoot.PATH.resolve("Makefile")))
            .results()
            .map(target -> target.group(1))
            .collect(Collectors.toSet());
    List<Path> files = new ArrayList<>(Prose.pages());
    for (String folder : List.of("proto", "deploy", "infra", "loadtest")) {
      try (Stream<Path> all = Files.walk(ProjectRoot.PATH.resolve(folder))) {
        all.filter(DocumentationTest::isWrittenByHand).forEach(files::add);
      }
    }
    List<String> unknown = new ArrayList<>();
    for (Path file : files) {
      MAKE.matcher(Files.readString(file))
          .results()
          .map(named -> named.group(1))
          .filter(target -> !targets.contains(target))
          .forEach(target -> unknown.add(file + ": make " + target));
    }
    assertThat(unknown).isEmpty();
  }

  private static boolean isWrittenByHand(Path file) {
    return file.toString().matches(".*\\.(md|ya?ml|proto|tf|mjs|py)")
        && !file.toString().matches(".*/(node_modules|target|\\.terraform)/.*");
  }

  private static boolean isTestSource(Path file) {
    String path = file.toString();
    return (path.endsWith(".rs") || path.endsWith("Test.java")) && !path.contains("/target/");
  }
}
