package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
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
  private static final String RIDDLE_INSIDE = "|[:;] (?:what|who|whoever|whatever) ";

  private static final Pattern RIDDLE =
      Pattern.compile(
          "(?:^(?:[-*] |\\d+\\. )?|[.:] )\\*{0,2}(?:What|Who|Whoever|Whatever) " + RIDDLE_INSIDE);

  /**
   * A cell of a table is read across, so a longer text stands below the table or in rows of its
   * own.
   */
  private static final int LONGEST_CELL = 500;

  private static final Pattern CELL_END = Pattern.compile("(?<!\\\\)\\|");

  private static final Pattern COMMENT = Pattern.compile("\\s*(//|--|/\\*|\\*).*");
  private static final Pattern LINE_OF_BLOCK = Pattern.compile("\\s* \\* .*");
  private static final Pattern END_OF_PARAGRAPH =
      Pattern.compile("\\s*(/\\*\\*| \\*| \\* .*\\.)\\s*");
  private static final Pattern COMMENT_OF_SCRIPT = Pattern.compile("\\s*(#|//|\\{\\{-?/\\*).*");
  private static final Pattern RIDDLE_IN_COMMENT =
      Pattern.compile(
          "(?:^\\s*(?:/\\*\\*|//[/!]?|#|\\{\\{-?/\\*) |[.:] )(?:What|Who|Whoever|Whatever) "
              + "|@(?:param \\S+|return|throws \\S+) (?:what|who|whoever|whatever) "
              + RIDDLE_INSIDE);

  /** Records in {@code docs/verified.json} name the bytes of its profiles. */
  private static final Set<String> UNCHECKED_SCRIPTS = Set.of("services/mpc-core/Cargo.toml");

  @Test
  void everyLinkLeadsToAFile() throws IOException {
    List<String> broken = new ArrayList<>();
    forEachLine(
        (page, line) ->
            LINK.matcher(line)
                .results()
                .map(link -> link.group(1))
                .filter(target -> !Files.exists(page.resolveSibling(target)))
                .forEach(target -> broken.add(page + ": " + target)));
    assertThat(broken).isEmpty();
  }

  @Test
  void linesOfProseAreShort() throws IOException {
    List<String> tooLong = new ArrayList<>();
    forEachLine(
        (page, line) -> {
          if (line.length() > LONGEST_LINE && !line.stripLeading().startsWith("|")) {
            tooLong.add(page + ": " + line);
          }
        });
    forEachComment(
        (file, line, _) -> {
          if (line.length() > LONGEST_LINE) {
            tooLong.add(file + ": " + line);
          }
        });
    assertThat(tooLong).isEmpty();
  }

  @Test
  void cellsOfTablesAreShort() throws IOException {
    List<String> tooLong = new ArrayList<>();
    forEachLine(
        (page, line) -> {
          if (line.startsWith("|")) {
            CELL_END
                .splitAsStream(line)
                .map(String::strip)
                .filter(cell -> cell.length() > LONGEST_CELL)
                .forEach(cell -> tooLong.add(page + ": " + cell));
          }
        });
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
    for (Path page : pages()) {
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
    List<String> riddles = new ArrayList<>();
    forEachLine(
        (page, line) -> {
          if (RIDDLE.matcher(line).find()) {
            riddles.add(page + ": " + line);
          }
        });
    forEachComment(
        (file, line, sentence) -> {
          if (RIDDLE_IN_COMMENT.matcher(sentence).find()) {
            riddles.add(file + ": " + line);
          }
        });
    assertThat(riddles).isEmpty();
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
    for (Path page : pages()) {
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
    List<Path> files = pages();
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

  /** Looks at one line of a comment. */
  private interface CommentCheck {
    /**
     * @param sentence the line as if its comment began with it, if it begins a paragraph
     */
    void accept(Path file, String line, String sentence);
  }

  /**
   * Every line of comment in code, wire contracts, databases, scripts and configuration. A line
   * that begins a paragraph of a longer comment is given as if it were the first one.
   */
  private static void forEachComment(CommentCheck check) throws IOException {
    for (Path script : scripts()) {
      Pattern comment = script.toString().endsWith("js") ? COMMENT : COMMENT_OF_SCRIPT;
      for (String line : Files.readAllLines(script)) {
        if (comment.matcher(line).matches()) {
          check.accept(script, line, line);
        }
      }
    }
    List<Path> sources = new ArrayList<>();
    for (String folder : List.of("services", "proto")) {
      try (Stream<Path> files = Files.walk(ProjectRoot.PATH.resolve(folder))) {
        files
            .filter(
                file ->
                    file.toString()
                        .matches("(?!.*/(target|node_modules)/).*[.](java|proto|sql|rs|h)"))
            .forEach(sources::add);
      }
    }
    for (Path source : sources) {
      String before = "";
      for (String line : Files.readAllLines(source)) {
        if (COMMENT.matcher(line).matches()) {
          check.accept(source, line, opensParagraph(before, line) ? asOpening(line) : line);
        }
        before = line;
      }
    }
  }

  /** Whether a line in a block of comment begins a sentence, because of the line before it. */
  private static boolean opensParagraph(String before, String line) {
    return LINE_OF_BLOCK.matcher(line).matches() && END_OF_PARAGRAPH.matcher(before).matches();
  }

  /** The line as if its comment began with it. */
  private static String asOpening(String line) {
    return line.replaceFirst("(\\s*) \\* ", "$1/** ").replace("/** <p>", "/** ");
  }

  /** Scripts, charts, infrastructure and manifests, which people read and write. */
  private static List<Path> scripts() throws IOException {
    List<Path> scripts = new ArrayList<>(List.of(ProjectRoot.PATH.resolve("Makefile")));
    for (String folder : List.of(".ci", "deploy", "infra", "loadtest", "proto", "services")) {
      try (Stream<Path> files = Files.walk(ProjectRoot.PATH.resolve(folder))) {
        for (Path file : files.filter(Files::isRegularFile).toList()) {
          String name = ProjectRoot.PATH.relativize(file).toString();
          if (!name.matches("(.*/)?(node_modules|target|charts|[.]terraform)/.*")
              && !UNCHECKED_SCRIPTS.contains(name)
              && (name.matches(
                      ".*[.](ya?ml|sh|m?js|toml|tf|py|tpl|lua)|.*/Dockerfile|[.]ci/.*[.]java")
                  || isScript(file))) {
            scripts.add(file);
          }
        }
      }
    }
    assertThat(scripts).hasSizeGreaterThan(80);
    return scripts;
  }

  /** A file without an ending that names its interpreter in its first line. */
  private static boolean isScript(Path file) throws IOException {
    if (file.getFileName().toString().contains(".")) {
      return false;
    }
    try (InputStream bytes = Files.newInputStream(file)) {
      return bytes.read() == '#' && bytes.read() == '!';
    }
  }

  /** Every line outside of fenced blocks of every page, but for the generated ones in a page. */
  private static void forEachLine(BiConsumer<Path, String> check) throws IOException {
    for (Path page : pages()) {
      boolean fenced = false;
      boolean generated = false;
      for (String line : Files.readAllLines(page)) {
        if (line.stripLeading().startsWith("```")) {
          fenced = !fenced;
        } else if (line.startsWith("<!-- Generated")) {
          generated = line.contains("below");
        } else if (!fenced && !generated) {
          check.accept(page, line);
        }
      }
    }
  }

  private static List<Path> pages() throws IOException {
    List<Path> pages = new ArrayList<>();
    for (String name : List.of("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")) {
      pages.add(ProjectRoot.PATH.resolve(name));
    }
    for (String folder : List.of("docs", "deploy", "infra", "loadtest", "proto", "services")) {
      try (Stream<Path> files = Files.walk(ProjectRoot.PATH.resolve(folder))) {
        files
            .filter(
                file ->
                    file.toString().matches("(?!.*/(target|node_modules|[.]terraform)/).*[.]md"))
            .forEach(pages::add);
      }
    }
    return pages;
  }
}
