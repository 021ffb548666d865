package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Nothing leaves {@code make test} that {@code make soak} does not run. */
class TiersTest {
  private static final Pattern EXCLUDED = Pattern.compile("<exclude>\\*\\*/([^<]*)\\.java<");

  private static String read(Path file) throws IOException {
    return Files.readString(ProjectRoot.PATH.resolve(file));
  }

  @Test
  void every_class_that_make_test_leaves_out_is_part_of_make_soak() throws IOException {
    List<String> excluded = excluded("services/acceptance/pom.xml");
    assertThat(excluded).isNotEmpty();
    Path tests =
        ProjectRoot.PATH.resolve("services/acceptance/src/test/java/io/coterie/acceptance");
    assertThat(excluded).allSatisfy(name -> assertThat(tests.resolve(name + ".java")).exists());
    String soak = read(Path.of(".ci/soak"));
    assertThat(excluded)
        .extracting(name -> "\"" + name.substring(name.indexOf('/') + 1) + "\"")
        .allSatisfy(name -> assertThat(soak).contains(name));
  }

  @Test
  void the_other_modules_leave_out_nothing() throws IOException {
    try (Stream<Path> modules = Files.list(ProjectRoot.PATH.resolve("services"))) {
      List<Path> others =
          modules
              .map(module -> module.resolve("pom.xml"))
              .filter(pom -> Files.exists(pom) && !pom.getParent().endsWith("acceptance"))
              .toList();
      assertThat(others).hasSizeGreaterThan(5);
      for (Path pom : others) {
        assertThat(Files.readString(pom))
            .as("%s", pom)
            .doesNotContain("<exclude>**", "<excludedGroups>", "<skipTests>");
      }
    }
    assertThat(read(Path.of("pom.xml"))).doesNotContain("<excludedGroups>", "<skipTests>");
  }

  private static List<String> excluded(String pom) throws IOException {
    return EXCLUDED.matcher(read(Path.of(pom))).results().map(match -> match.group(1)).toList();
  }
}
