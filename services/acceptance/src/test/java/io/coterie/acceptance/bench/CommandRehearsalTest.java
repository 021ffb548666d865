package io.coterie.acceptance.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.ProjectRoot;
import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The recording of the class cache of {@code bin/coterie}, without the cache itself. */
class CommandRehearsalTest {
  private static final String JAVA =
      Path.of(System.getProperty("java.home"), "bin", "java").toString();

  @TempDir Path folder;

  /** Each of its commands has to end well, and a key that is not attested would be exit code 3. */
  @Test
  void all_commands_of_the_rehearsal_end_well_and_believe_its_key() throws Exception {
    assertThat(
            CommandRehearsal.run(
                folder,
                List.of(
                    JAVA,
                    "--enable-native-access=ALL-UNNAMED",
                    "-cp",
                    System.getProperty("java.class.path"),
                    "io.coterie.cli.Rehearsal")))
        .isZero();
  }

  @Test
  void a_command_that_fails_fails_the_recording() throws Exception {
    assertThat(
            CommandRehearsal.run(
                folder,
                List.of(
                    JAVA,
                    "-cp",
                    System.getProperty("java.class.path"),
                    "io.coterie.cli.Coterie",
                    "keys",
                    "get",
                    "Not-A-Name")))
        .isNotZero();
  }

  @Test
  void a_jar_with_old_classes_gets_stack_maps_and_each_class_still_verifies() throws Exception {
    String jar = jarOf(CommandLine.class);
    String printed = cacheable(jar, folder);
    assertThat(Path.of(printed)).isEqualTo(folder.resolve("coterie.jar"));
    List<String> names = files(jar);
    assertThat(files(printed)).hasSameElementsAs(names).hasSizeGreaterThan(200);
    try (URLClassLoader loader =
        new URLClassLoader(
            new URL[] {Path.of(printed).toUri().toURL()}, ClassLoader.getPlatformClassLoader())) {
      for (String name : names) {
        if (name.startsWith("picocli/") && name.endsWith(".class")) {
          try (InputStream content = loader.getResourceAsStream(name)) {
            assertThat(content.readNBytes(8)[7]).as(name).isEqualTo((byte) 52);
          }
          // Initialises it, and so has the JVM verify its code.
          String type = name.substring(0, name.length() - ".class".length()).replace('/', '.');
          assertThat(Class.forName(type, true, loader).getClassLoader()).isSameAs(loader);
        }
      }
    }
  }

  /** The jar's hash is a committed one; its signature would be looked at in every start. */
  @Test
  void a_signed_jar_is_there_without_its_signature_and_with_all_else() throws Exception {
    String jar = jarOf(BouncyCastleProvider.class);
    String printed = cacheable(jar, folder);
    List<String> left = files(jar);
    left.removeAll(files(printed));
    assertThat(left)
        .allMatch(name -> name.matches("META-INF/BC[^/]*\\.(SF|RSA|DSA|EC)"))
        .isNotEmpty();
    try (JarFile before = new JarFile(jar, false);
        JarFile after = new JarFile(printed)) {
      assertThat(before.getManifest().getEntries()).isNotEmpty();
      assertThat(after.getManifest().getEntries()).isEmpty();
      assertThat(after.isMultiRelease()).isEqualTo(before.isMultiRelease()).isTrue();
      for (JarEntry entry : Collections.list(after.entries())) {
        String name = entry.getName();
        if (!name.equals(JarFile.MANIFEST_NAME) && !name.startsWith("META-INF/services/")) {
          assertThat(content(after, entry)).as(name).isEqualTo(content(before, entry));
        }
      }
    }
  }

  /** A start looks for providers in each jar, and opens it for that. */
  @Test
  void many_jars_are_one_with_the_first_file_of_a_name_and_all_providers() throws Exception {
    String service = "META-INF/services/a.Service";
    Path first = jar("first.jar", Map.of("a/a.txt", "first", service, "a.One"));
    Path second =
        jar(
            "second.jar",
            Map.of(
                "a/a.txt",
                "second",
                "b.txt",
                "b",
                service,
                "a.Two",
                "META-INF/versions/9/b.txt",
                "9"));
    String printed = cacheable(first + ":" + second, folder);
    try (JarFile all = new JarFile(printed)) {
      assertThat(content(all, all.getJarEntry("a/a.txt"))).asString().isEqualTo("first");
      assertThat(content(all, all.getJarEntry("b.txt"))).asString().isEqualTo("b");
      assertThat(content(all, all.getJarEntry(service))).asString().isEqualTo("a.One\na.Two\n");
    }
    assertThat(files(printed)).as("of no jar for several releases").noneMatch(n -> n.contains("9"));
  }

  private Path jar(String name, Map<String, String> files) throws IOException {
    Path jar = folder.resolve(name);
    try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar), new Manifest())) {
      for (Map.Entry<String, String> file : new TreeMap<>(files).entrySet()) {
        out.putNextEntry(new JarEntry(file.getKey()));
        out.write(file.getValue().getBytes(StandardCharsets.UTF_8));
      }
    }
    return jar;
  }

  private static byte[] content(JarFile jar, JarEntry entry) throws IOException {
    try (InputStream content = jar.getInputStream(jar.getJarEntry(entry.getName()))) {
      return content.readAllBytes();
    }
  }

  private static String jarOf(Class<?> type) throws URISyntaxException {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
  }

  /** The class path that the build makes of another one. */
  private static String cacheable(String classPath, Path folder) throws Exception {
    Path program = ProjectRoot.PATH.resolve(".ci").resolve("CacheableJars.java");
    Process process =
        new ProcessBuilder(JAVA, program.toString(), classPath, folder.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String printed =
        new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    assertThat(process.waitFor()).isZero();
    return printed;
  }

  private static List<String> files(String jar) throws IOException {
    List<String> names = new ArrayList<>();
    try (JarFile file = new JarFile(jar)) {
      for (JarEntry entry : Collections.list(file.entries())) {
        if (!entry.isDirectory()) {
          names.add(entry.getName());
        }
      }
    }
    return names;
  }
}
