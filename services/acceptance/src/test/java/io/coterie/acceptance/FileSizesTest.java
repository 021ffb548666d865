package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The lengths of source files, and the list of the longer ones in CONTRIBUTING. */
class FileSizesTest {
  private static final Set<String> BUILT = Set.of("target", "node_modules", ".terraform");

  private static final int LINES_OF_CODE = 550;

  /** Cases of a test are read one by one, so that a longer file costs its reader less. */
  private static final int LINES_OF_TESTS = 700;

  private static final Pattern EXCEPTION =
      Pattern.compile("(?m)^\\| `(services/[^`]+)` \\| [^|]{20,} \\|$");

  @Test
  void every_file_above_the_limit_is_on_the_list_and_no_other_is() throws IOException {
    TreeMap<String, Integer> tooLong = new TreeMap<>();
    for (Path file : sources()) {
      String name = ProjectRoot.PATH.relativize(file).toString();
      int lines = Files.readAllLines(file).size();
      if (lines > (isTest(name) ? LINES_OF_TESTS : LINES_OF_CODE)) {
        tooLong.put(name, lines);
      }
    }
    assertThat(tooLong.keySet()).containsExactlyInAnyOrderElementsOf(listed());
  }

  private static List<String> listed() throws IOException {
    String contributing = Files.readString(ProjectRoot.PATH.resolve("CONTRIBUTING.md"));
    String section = contributing.split("\n### Long files\n", 2)[1].split("\n## ", 2)[0];
    return EXCEPTION.matcher(section).results().map(row -> row.group(1)).toList();
  }

  private static boolean isTest(String name) {
    return name.matches(".*/(src/test|tests?)/.*");
  }

  /** Folders of builds are left out, because other tests write and delete there meanwhile. */
  private static List<Path> sources() throws IOException {
    List<Path> sources = new ArrayList<>();
    for (String folder : List.of("services", "proto", "deploy", "infra", "loadtest")) {
      Files.walkFileTree(
          ProjectRoot.PATH.resolve(folder),
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path visited, BasicFileAttributes attributes) {
              return BUILT.contains(visited.getFileName().toString())
                  ? FileVisitResult.SKIP_SUBTREE
                  : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
              if (file.toString().matches(".*[.](java|rs|proto|sql|py|m?js|tf)")) {
                sources.add(file);
              }
              return FileVisitResult.CONTINUE;
            }
          });
    }
    assertThat(sources).hasSizeGreaterThan(500);
    return sources;
  }
}
