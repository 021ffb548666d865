package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The pages in code that say how a signing goes through a service, step by step. */
class WorkflowTest {
  static final List<String> PAGES =
      List.of(
          "services/coordinator/src/main/java/io/coterie/coordinator/custody/signing/package-info.java",
          "services/signer/src/main/java/io/coterie/signer/session/package-info.java");

  private static final Pattern STEP = Pattern.compile("(?s)<li>(.*?)(?=<li>|</ol>)");
  private static final Pattern LINK =
      Pattern.compile("\\{@link[\\s*]+([\\w.]+)(?:#(\\w+))?[^}]*}");
  private static final Pattern IMPORT = Pattern.compile("(?m)^import ([\\w.]+\\.(\\w+));");
  private static final Pattern PACKAGE = Pattern.compile("(?m)^package ([\\w.]+);");

  /** The compiler does not look into comments. */
  @ParameterizedTest
  @FieldSource("PAGES")
  void everyStepLeadsToCodeThatExists(String page) throws Exception {
    String text = Files.readString(ProjectRoot.PATH.resolve(page));
    assertThat(STEP.matcher(text).results().toList())
        .hasSizeBetween(6, 15)
        .allSatisfy(step -> assertThat(step.group(1)).containsPattern(LINK));
    Map<String, String> imported =
        IMPORT
            .matcher(text)
            .results()
            .collect(Collectors.toMap(found -> found.group(2), found -> found.group(1)));
    String home = PACKAGE.matcher(text).results().findFirst().orElseThrow().group(1);
    for (MatchResult link : LINK.matcher(text).results().toList()) {
      String[] names = link.group(1).split("\\.");
      String outer = imported.getOrDefault(names[0], home + "." + names[0]);
      Class<?> target = load(outer, List.of(names).subList(1, names.length));
      if (link.group(2) != null) {
        assertThat(Arrays.stream(target.getDeclaredMethods()).map(method -> method.getName()))
            .as("methods of %s", target)
            .contains(link.group(2));
      }
    }
  }

  @ParameterizedTest
  @FieldSource("PAGES")
  void theArchitecturePageNamesIt(String page) throws IOException {
    assertThat(ProjectRoot.PATH.resolve("docs/architecture.md"))
        .content()
        .contains("](../" + page + ")");
  }

  /** A class; an import may be of one inside another. */
  private static Class<?> load(String name, List<String> inside) throws ClassNotFoundException {
    String outer = name.replaceAll("\\.([A-Z]\\w*)\\.(?=[A-Z])", ".$1\\$");
    return Class.forName(
        Stream.concat(Stream.of(outer), inside.stream()).collect(Collectors.joining("$")),
        false,
        WorkflowTest.class.getClassLoader());
  }
}
