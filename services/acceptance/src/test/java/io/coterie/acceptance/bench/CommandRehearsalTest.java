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
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
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
  void a_jar_with_old_classes_is_copied_with_stack_maps_and_each_class_still_verifies()
      throws Exception {
    String jar = jarOf(CommandLine.class);
    String printed = cacheable(jar, folder);
    assertThat(Path.of(printed)).isEqualTo(folder.resolve(Path.of(jar).getFileName()));
    List<String> names = names(jar);
    assertThat(names(printed)).isEqualTo(names).hasSizeGreaterThan(200);
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
    Path none = Files.createDirectory(folder.resolve("none"));
    assertThat(cacheable(printed, none)).as("has no old classes").isEqualTo(printed);
    assertThat(none).isEmptyDirectory();
  }

  /** The jar's hash is a committed one; its signature would be looked at in every start. */
  @Test
  void a_signed_jar_is_copied_without_its_signature_and_with_all_else() throws Exception {
    String jar = jarOf(BouncyCastleProvider.class);
    String printed = cacheable(jar, folder);
    List<String> left = names(jar);
    left.removeAll(names(printed));
    assertThat(left)
        .allMatch(name -> name.matches("META-INF/BC[^/]*\\.(SF|RSA|DSA|EC)"))
        .isNotEmpty();
    try (JarFile before = new JarFile(jar, false);
        JarFile after = new JarFile(printed)) {
      assertThat(before.getManifest().getEntries()).isNotEmpty();
      assertThat(after.getManifest().getEntries()).isEmpty();
      assertThat(after.getManifest().getMainAttributes())
          .isEqualTo(before.getManifest().getMainAttributes());
      for (JarEntry entry : Collections.list(after.entries())) {
        if (!entry.getName().equals(JarFile.MANIFEST_NAME)) {
          assertThat(content(after, entry)).isEqualTo(content(before, entry));
        }
      }
    }
    Path none = Files.createDirectory(folder.resolve("none"));
    assertThat(cacheable(printed, none)).as("is not signed").isEqualTo(printed);
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

  private static List<String> names(String jar) throws IOException {
    List<String> names = new ArrayList<>();
    try (JarFile file = new JarFile(jar)) {
      for (JarEntry entry : Collections.list(file.entries())) {
        names.add(entry.getName());
      }
    }
    return names;
  }
}
