package io.coterie.acceptance;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The pages of docs/runbooks, whose commands are run as they stand there (docs/adr/0021). Thread-
 * safe.
 */
final class Runbooks {
  static final Path FOLDER = ProjectRoot.PATH.resolve("docs/runbooks");

  private static final Pattern FENCE = Pattern.compile(" *```(.*)");
  private static final Pattern HEADING = Pattern.compile("#+ (.*)");
  private static final Pattern VARIABLE_ROW = Pattern.compile("\\| (`[A-Z_`, ]+`) \\|.*");
  private static final Pattern NAME = Pattern.compile("[A-Z_]+");

  /**
   * A section that has commands: those of a page are in its order. KubernetesTest runs them all.
   */
  enum Section {
    NAMESPACES("install", "Namespaces and certificates"),
    SECRETS("install", "Secrets of the control plane"),
    CONTROL_PLANE("install", "Control plane"),
    A_PARTY("install", "A party"),
    THE_TRUST_FILE("install", "The trust file"),
    THE_FIRST_KEY("install", "The first key"),
    BEFORE_AN_UPGRADE("upgrade", "Before"),
    LOAD("upgrade", "Load"),
    UPGRADE_CONTROL_PLANE("upgrade", "Control plane"),
    UPGRADE_PARTIES("upgrade", "Parties"),
    BACK("upgrade", "Back"),
    BACK_UP_A_PARTY("back-up-and-restore", "Back up a party"),
    BACK_UP_CONTROL_PLANE("back-up-and-restore", "Back up the control plane"),
    RESTORE_A_PARTY("back-up-and-restore", "Restore a party"),
    SHARES("rotate-keys-and-certificates", "Shares"),
    A_NEW_CERTIFICATE("rotate-keys-and-certificates", "A new certificate"),
    A_RESTART("rotate-keys-and-certificates", "A restart"),
    VALID_NOW("rotate-keys-and-certificates", "How long it is valid now"),
    LOST_PARTY("lose-a-party", "Its volume is lost, and there is no backup"),
    LOST_SHARES("lose-a-party", "Its shares"),
    BROKEN_INTO("lose-a-party", "It was broken into"),
    LOST_COORDINATOR("lose-the-coordinator", "Its volume");

    final String page;
    final String heading;

    Section(String page, String heading) {
      this.page = page;
      this.heading = heading;
    }
  }

  /**
   * A fenced block.
   *
   * @param line where it begins, from 1
   * @param heading the nearest above it
   * @param language text after the fence
   */
  record Block(int line, String heading, String language, String text) {
    boolean isCommands() {
      return language.equals("sh");
    }
  }

  private final Kube kube;
  private final Supplier<Map<String, String>> common;
  private final Set<Section> run = EnumSet.noneOf(Section.class);

  /**
   * Runs sections on a cluster.
   *
   * @param common variables that every section may use
   */
  Runbooks(Kube kube, Supplier<Map<String, String>> common) {
    this.kube = kube;
    this.common = common;
  }

  /** Names of the pages with commands. Those of the alerts are a folder of their own. */
  static List<String> pages() throws IOException {
    try (Stream<Path> files = Files.list(FOLDER)) {
      return files
          .map(file -> file.getFileName().toString())
          .filter(name -> name.endsWith(".md"))
          .map(name -> name.substring(0, name.length() - ".md".length()))
          .sorted()
          .toList();
    }
  }

  static List<String> lines(String page) {
    try {
      return Files.readAllLines(FOLDER.resolve(page + ".md"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** All fenced blocks of a page, in its order. */
  static List<Block> blocks(String page) {
    List<Block> blocks = new ArrayList<>();
    String heading = "";
    String language = null;
    int begin = 0;
    int number = 0;
    StringBuilder text = new StringBuilder();
    for (String line : lines(page)) {
      number++;
      Matcher fence = FENCE.matcher(line);
      Matcher title = HEADING.matcher(line);
      if (fence.matches()) {
        if (language == null) {
          language = fence.group(1).strip();
          begin = number;
        } else {
          blocks.add(new Block(begin, heading, language, text.toString()));
          language = null;
          text.setLength(0);
        }
      } else if (language != null) {
        text.append(line).append('\n');
      } else if (title.matches()) {
        heading = title.group(1).strip();
      }
    }
    if (language != null) {
      throw new IllegalStateException(page + ".md: the block at line " + begin + " has no end");
    }
    return blocks;
  }

  /** The variables that the commands may use, as the first page lists them. */
  static Set<String> variables() {
    return lines("README").stream()
        .map(VARIABLE_ROW::matcher)
        .filter(Matcher::matches)
        .flatMap(row -> NAME.matcher(row.group(1)).results())
        .map(name -> name.group())
        .collect(Collectors.toCollection(TreeSet::new));
  }

  /**
   * Runs the blocks of a section, one shell for each, until one fails.
   *
   * @param own variables besides the common ones
   * @return their output
   * @throws IllegalStateException if one fails, or a section above it has not been run yet
   */
  String run(Section section, Map<String, String> own) {
    begin(section);
    return execute(section, own);
  }

  /** As {@link #run}, in another terminal. */
  Future<String> run(ExecutorService terminal, Section section, Map<String, String> own) {
    begin(section);
    return terminal.submit(() -> execute(section, own));
  }

  private void begin(Section section) {
    synchronized (run) {
      for (Section other : Section.values()) {
        if (other.page.equals(section.page)
            && other.compareTo(section) < 0
            && !run.contains(other)) {
          throw new IllegalStateException(other + " comes before " + section);
        }
      }
      run.add(section);
    }
  }

  private String execute(Section section, Map<String, String> own) {
    Map<String, String> variables = new TreeMap<>(common.get());
    variables.putAll(own);
    Set<String> known = variables();
    if (!known.containsAll(variables.keySet())) {
      throw new IllegalArgumentException(variables.keySet() + ": README.md says " + known);
    }
    List<Block> blocks =
        blocks(section.page).stream()
            .filter(block -> block.isCommands() && block.heading().equals(section.heading))
            .toList();
    if (blocks.isEmpty()) {
      throw new IllegalStateException(section.page + ".md has no commands of " + section.heading);
    }
    StringBuilder output = new StringBuilder();
    for (Block block : blocks) {
      output.append(kube.shell(block.text(), known, variables));
    }
    return output.toString();
  }

  /** Sections that were not run. */
  Set<Section> left() {
    synchronized (run) {
      Set<Section> left = EnumSet.allOf(Section.class);
      left.removeAll(run);
      return left;
    }
  }
}
