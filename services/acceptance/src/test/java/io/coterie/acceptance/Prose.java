package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The lines that people read: pages, and the comments of every other file. */
final class Prose {
  private static final Pattern NEVER = Pattern.compile("(?!)");

  /** Starts of lines, and both ends of a longer comment, of everything without marks of its own. */
  private static final Marks PLAIN = Marks.of("#|//", "(?:\\{\\{-?\\s*)?/\\*", "\\*/");

  /** The lines of data that programs of circuits have among their comments are no prose. */
  private static final Marks CODE = Marks.of("//(?! @Test )", "/\\*", "\\*/");

  private static final Marks QUERIES = new Marks(Pattern.compile("--"), NEVER, NEVER);
  private static final Marks PYTHON = Marks.of("#", "\"\"\"", "\"\"\"");
  private static final Marks XML =
      new Marks(NEVER, Pattern.compile(".*?<!--"), Pattern.compile("-->"));

  private static final Pattern MARK =
      Pattern.compile("^\\s*(?:.*?<!--|//[/!]?|/\\*\\*?|\\*(?!/)|#+!?|--|\\{\\{-?\\s*/\\*|\"\"\")");

  private Prose() {}

  /**
   * A line of a page or of a comment.
   *
   * @param sentence its words without the marks of a comment, after the colon or semicolon that
   *     ends the line before it
   */
  record Line(Path file, String text, String sentence) {
    @Override
    public String toString() {
      return file + ": " + text;
    }
  }

  /** The marks of a line of comment, and both ends of a longer comment, in one language. */
  private record Marks(Pattern line, Pattern begin, Pattern end) {
    private static Marks of(String line, String begin, String end) {
      return new Marks(Pattern.compile(line), Pattern.compile(begin), Pattern.compile(end));
    }

    private static Marks of(Path file) {
      String name = file.getFileName().toString();
      return switch (name.substring(name.lastIndexOf('.') + 1)) {
        case "java", "rs", "proto", "h", "js", "mjs", "mpcl" -> CODE;
        case "sql", "lua" -> QUERIES;
        case "py" -> PYTHON;
        case "xml" -> XML;
        default -> PLAIN;
      };
    }
  }

  /** Every page of the project. */
  static List<Path> pages() throws IOException {
    return tracked().filter(Prose::isPage).toList();
  }

  /** Every line outside of fenced blocks of every page, but for the generated ones in a page. */
  static List<Line> ofPages() throws IOException {
    List<Line> lines = new ArrayList<>();
    for (Path page : pages()) {
      boolean fenced = false;
      boolean generated = false;
      String before = "";
      for (String line : Files.readAllLines(page)) {
        if (line.stripLeading().startsWith("```")) {
          fenced = !fenced;
        } else if (line.startsWith("<!-- Generated")) {
          generated = line.contains("below");
        } else if (!fenced && !generated) {
          lines.add(new Line(page, line, sentence(before, line.strip())));
        }
        before = line.strip();
      }
    }
    return lines;
  }

  /** Every line of comment in code, wire contracts, databases, scripts and configuration. */
  static List<Line> ofComments() throws IOException {
    List<Line> lines = new ArrayList<>();
    for (Path file : tracked().filter(file -> !isPage(file)).toList()) {
      addComments(file, lines);
    }
    return lines;
  }

  private static void addComments(Path file, List<Line> lines) throws IOException {
    Marks marks = Marks.of(file);
    boolean inside = false;
    String before = "";
    for (String line : text(file)) {
      String stripped = line.strip();
      Matcher begin = marks.begin().matcher(stripped);
      boolean comment = true;
      if (inside) {
        inside = !marks.end().matcher(stripped).find();
      } else if (begin.lookingAt()) {
        inside = !marks.end().matcher(stripped).find(begin.end());
      } else {
        comment = marks.line().matcher(stripped).lookingAt();
      }
      String words = MARK.matcher(line).replaceFirst("").strip().replaceFirst("^<p>", "");
      if (comment) {
        lines.add(new Line(file, line, sentence(before, words)));
      }
      before = comment ? words : "";
    }
    assertThat(inside).as("a comment of " + file + " has no end").isFalse();
  }

  /** The lines of a file, whatever its bytes are. */
  private static List<String> text(Path file) throws IOException {
    return new String(Files.readAllBytes(file), StandardCharsets.UTF_8).lines().toList();
  }

  /** A clause may begin on the line before it. */
  private static String sentence(String before, String words) {
    boolean continues = before.endsWith(":") || before.endsWith(";");
    return continues ? before.charAt(before.length() - 1) + " " + words : words;
  }

  private static boolean isPage(Path file) {
    return file.toString().endsWith(".md");
  }

  /** The files that git tracks or that wait to be added: nothing that a build has written. */
  private static Stream<Path> tracked() throws IOException {
    Process git =
        new ProcessBuilder("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
            .directory(ProjectRoot.PATH.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String names = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(git.onExit().join().exitValue()).isZero();
    return Pattern.compile("\0")
        .splitAsStream(names)
        .map(ProjectRoot.PATH::resolve)
        .filter(Files::isRegularFile);
  }
}
