package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.File;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The dependencies of this build against the committed snapshot of advisories: every one is listed
 * there, as searched or not, and none has a version that an advisory names.
 */
class AdvisoriesTest {
  private static final Path SNAPSHOT = ProjectRoot.PATH.resolve("advisories/snapshot.json");
  private static final JsonNode JSON = read();
  private static final Set<String> SKIPPED = Set.of(".git", "build", "node_modules", "target");

  /** A dependency as it is built in. */
  private record Locked(String name, String version) implements Comparable<Locked> {
    @Override
    public int compareTo(Locked other) {
      return toString().compareTo(other.toString());
    }
  }

  /** Where dependencies come from, by the name of that part of the snapshot. */
  enum Ecosystem {
    CRATES {
      @Override
      Set<Locked> locked() {
        return matches("Cargo.lock", CRATE);
      }
    },
    MAVEN {
      @Override
      Set<Locked> locked() {
        Set<Locked> locked = new TreeSet<>();
        for (String jar : classPath().split(File.pathSeparator)) {
          Matcher matcher = JAR.matcher(jar);
          if (matcher.find()) {
            String group = matcher.group("group").replace('/', '.');
            locked.add(
                new Locked(group + ":" + matcher.group("artifact"), matcher.group("version")));
          }
        }
        return locked;
      }
    },
    NPM {
      @Override
      Set<Locked> locked() {
        return matches("package-lock.json", PACKAGE);
      }
    };

    /** Crates of the registry: those of this project have no source. */
    private static final Pattern CRATE =
        Pattern.compile(
            "name = \"(?<name>[^\"]+)\"\nversion = \"(?<version>[^\"]+)\"\nsource = \"registry");

    private static final Pattern PACKAGE =
        Pattern.compile(
            "\"(?:[^\"]*/)?node_modules/(?<name>(?:@[^/\"]+/)?[^/\"]+)\": \\{\\s*(?:\"name\":"
                + " \"[^\"]*\",\\s*)?\"version\": \"(?<version>[^\"]+)\"");

    private static final Pattern JAR =
        Pattern.compile(
            "/repository/(?<group>.+)/(?<artifact>[^/]+)/(?<version>[^/]+)/\\k<artifact>-[^/]+\\.jar$");

    abstract Set<Locked> locked();

    JsonNode part() {
      return JSON.path(name().toLowerCase(Locale.ROOT));
    }

    private static Set<Locked> matches(String file, Pattern pattern) {
      Set<Locked> locked = new TreeSet<>();
      for (Path path : files(file)) {
        try {
          Matcher matcher = pattern.matcher(Files.readString(path));
          while (matcher.find()) {
            locked.add(new Locked(matcher.group("name"), matcher.group("version")));
          }
        } catch (IOException e) {
          throw new IllegalStateException(e);
        }
      }
      return locked;
    }
  }

  private static JsonNode read() {
    try {
      return JsonMapper.builder().build().readTree(Files.readString(SNAPSHOT));
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  /** Lock files of that name, but for those inside of what is built or fetched. */
  private static List<Path> files(String name) {
    List<Path> found = new ArrayList<>();
    try {
      Files.walkFileTree(
          ProjectRoot.PATH,
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes of) {
              return SKIPPED.contains(folder.getFileName().toString())
                  ? FileVisitResult.SKIP_SUBTREE
                  : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes of) {
              if (file.endsWith(name)) {
                found.add(file);
              }
              return FileVisitResult.CONTINUE;
            }
          });
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return found;
  }

  private static List<String> texts(JsonNode array) {
    return array.valueStream().map(JsonNode::asString).toList();
  }

  /** A name of the snapshot: the package's, or with a star at its end the beginning of some. */
  private static boolean fits(String pattern, String name) {
    return pattern.endsWith("*")
        ? name.startsWith(pattern.substring(0, pattern.length() - 1))
        : name.equals(pattern);
  }

  private static boolean isAffected(String version, String range) {
    if (range.equals("*")) {
      return true;
    }
    return Stream.of(range.split(" "))
        .allMatch(
            bound -> {
              if (bound.matches(">=[^<>=].*")) {
                return compare(version, bound.substring(2)) >= 0;
              }
              if (bound.matches("<[^<>=].*")) {
                return compare(version, bound.substring(1)) < 0;
              }
              throw new IllegalArgumentException("no bound: " + bound);
            });
  }

  private static int compare(String one, String other) {
    String[] left = one.split("[.+-]");
    String[] right = other.split("[.+-]");
    for (int i = 0; i < Math.max(left.length, right.length); i++) {
      long difference = Long.compare(rank(left, i), rank(right, i));
      if (difference != 0) {
        return (int) difference;
      }
    }
    return 0;
  }

  /** A number, or a word: those of a release say nothing, all others come before it. */
  private static long rank(String[] parts, int at) {
    if (at >= parts.length || parts[at].matches("(?i)final|release|android|jre|empty")) {
      return 0;
    }
    return parts[at].matches("\\d{1,18}") ? Long.parseLong(parts[at]) : -1;
  }

  private static Set<String> affected(Ecosystem ecosystem, Iterable<Locked> locked) {
    Set<String> found = new TreeSet<>();
    for (JsonNode advisory : ecosystem.part().path("advisories")) {
      for (Locked each : locked) {
        if (texts(advisory.path("packages")).stream().anyMatch(name -> fits(name, each.name()))
            && texts(advisory.path("affected")).stream()
                .anyMatch(range -> isAffected(each.version(), range))) {
          found.add(line(advisory.path("id").asString(), each.name(), each.version()));
        }
      }
    }
    return found;
  }

  private static String line(String id, String name, String version) {
    return id + ": " + name + " " + version;
  }

  private static Set<String> accepted(Ecosystem ecosystem) {
    Set<String> accepted = new TreeSet<>();
    for (JsonNode each : ecosystem.part().path("accepted")) {
      assertThat(each.path("reason").asString()).as("%s", each).isNotBlank();
      accepted.add(
          line(
              each.path("id").asString(),
              each.path("package").asString(),
              each.path("version").asString()));
    }
    return accepted;
  }

  @ParameterizedTest
  @EnumSource
  void no_dependency_is_affected_but_by_what_was_accepted(Ecosystem ecosystem) {
    // An acceptance ends when the version is mended.
    assertThat(affected(ecosystem, ecosystem.locked())).isEqualTo(accepted(ecosystem));
  }

  @ParameterizedTest
  @EnumSource
  void every_dependency_is_in_the_snapshot_as_searched_or_not(Ecosystem ecosystem) {
    List<String> named = new ArrayList<>(texts(ecosystem.part().path("searched")));
    named.addAll(texts(ecosystem.part().path("unsearched")));
    assertThat(ecosystem.locked()).hasSizeGreaterThan(100);
    assertThat(ecosystem.locked())
        .allSatisfy(
            locked -> assertThat(named).as("%s", locked).anyMatch(n -> fits(n, locked.name())));
    assertThat(ecosystem.part().path("source").asString()).isNotBlank();
    assertThat(ecosystem.part().path("advisories").valueStream())
        .allSatisfy(advisory -> assertThat(advisory.path("source").asString()).isNotBlank());
  }

  @Test
  void versions_that_are_affected_are_found() {
    assertThat(affected(Ecosystem.CRATES, List.of(new Locked("rustls", "0.23.44"))))
        .containsExactly("RUSTSEC-2026-0285: rustls 0.23.44");
    assertThat(affected(Ecosystem.CRATES, List.of(new Locked("rand", "0.8.5"))))
        .containsExactly("RUSTSEC-2026-0097: rand 0.8.5");
    assertThat(
            affected(Ecosystem.MAVEN, List.of(new Locked("org.postgresql:postgresql", "42.7.11"))))
        .containsExactly("CVE-2026-54291: org.postgresql:postgresql 42.7.11");
    assertThat(
            affected(
                Ecosystem.MAVEN, List.of(new Locked("io.netty:netty-codec-http", "4.2.16.Final"))))
        .hasSize(2);
  }

  @ParameterizedTest
  @CsvSource({
    "1.0.0,>=1.0.0 <1.0.1,true",
    "1.0.1,>=1.0.0 <1.0.1,false",
    "0.10.0,<0.9.3,false",
    "4.2.17.Final,>=4.2.0.Final <4.2.17.Final,false",
    "4.2.9.Final,>=4.2.0.Final <4.2.17.Final,true",
    "11.0.0-M26,>=11.0.0-M1 <11.0.23,true",
    "0.104.0-alpha.5,>=0.104.0-alpha.1 <0.104.0-alpha.6,true",
    "0.104.0,>=0.104.0-alpha.1 <0.104.0-alpha.6,false",
    "2,<2.0.0,false",
  })
  void versions_are_compared_as_their_parts(String version, String range, boolean affected) {
    assertThat(isAffected(version, range)).isEqualTo(affected);
  }

  /** Else an advisory would affect nothing, and nobody would see it. */
  @ParameterizedTest
  @ValueSource(strings = {"<=1.0.0", "=1.0.0", ">1.0.0", "1.0.0", "<", ">="})
  void a_bound_that_is_not_understood_is_an_error(String range) {
    assertThatThrownBy(() -> isAffected("1.0.0", range))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Advisories are about the crates of the registry. */
  @Test
  void no_crate_comes_from_a_repository() throws IOException {
    for (Path lock : files("Cargo.lock")) {
      assertThat(Files.readString(lock)).as("%s", lock).doesNotContain("source = \"git");
    }
  }

  @Test
  void the_security_page_names_the_day_of_the_snapshot() throws IOException {
    LocalDate taken = LocalDate.parse(JSON.path("taken").asString());
    assertThat(Files.readString(ProjectRoot.PATH.resolve("SECURITY.md")))
        .contains("advisories/snapshot.json")
        .contains(taken.toString());
  }
}
