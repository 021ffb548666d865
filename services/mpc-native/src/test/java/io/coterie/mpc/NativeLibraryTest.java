package io.coterie.mpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLibraryTest {
  private final String libraryPath = System.getProperty("java.library.path");

  @TempDir Path folder;

  @AfterEach
  void restore() {
    System.clearProperty(NativeLibrary.PATH_PROPERTY);
    System.setProperty("java.library.path", libraryPath);
  }

  private static void copyLibrary(Path to) throws IOException {
    try (var in =
        NativeLibrary.class.getResourceAsStream(
            "native/linux-" + System.getProperty("os.arch") + "/" + NativeLibrary.FILE)) {
      Files.copy(in, to);
    }
  }

  private static boolean isMapped(String suffix) throws IOException {
    try (var lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.anyMatch(line -> line.endsWith(suffix));
    }
  }

  @Test
  void the_one_in_the_jar_leaves_no_file_behind() throws IOException {
    NativeLibrary.load();
    assertThat(isMapped(NativeLibrary.FILE + " (deleted)")).isTrue();
  }

  @Test
  void an_installed_one_is_preferred() throws IOException {
    Path installed = folder.resolve(NativeLibrary.FILE);
    copyLibrary(installed);
    System.setProperty("java.library.path", "/nonexistent:" + folder + ":");
    NativeLibrary.load();
    assertThat(isMapped(installed.toString())).isTrue();
  }

  @Test
  void the_one_named_by_property_is_taken_and_no_other() throws IOException {
    Path named = folder.resolve("core.so");
    copyLibrary(named);
    System.setProperty(NativeLibrary.PATH_PROPERTY, named.toString());
    NativeLibrary.load();
    assertThat(isMapped(named.toString())).isTrue();

    System.setProperty(NativeLibrary.PATH_PROPERTY, folder.resolve("missing.so").toString());
    assertThatThrownBy(NativeLibrary::load)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("missing.so");
  }

  @Test
  void a_library_of_something_else_is_refused() {
    assertThatThrownBy(() -> new NativeBindings(name -> Optional.empty()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("mpc_abi_version");
  }
}
