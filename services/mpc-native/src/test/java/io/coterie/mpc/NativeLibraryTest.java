package io.coterie.mpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
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
  void one_found_by_search_must_be_that_of_the_build() throws IOException {
    Path installed = folder.resolve(NativeLibrary.FILE);
    copyLibrary(installed);
    // Bytes after the end of the sections: the loader would not mind.
    Files.write(installed, new byte[] {0}, StandardOpenOption.APPEND);
    System.setProperty("java.library.path", folder.toString());
    assertThatThrownBy(NativeLibrary::load)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("not the native core of this build");
    assertThat(isMapped(installed.toString())).isFalse();
  }

  @Test
  void the_property_names_an_absolute_path() {
    System.setProperty(NativeLibrary.PATH_PROPERTY, "native/" + NativeLibrary.FILE);
    assertThatThrownBy(NativeLibrary::load)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("not an absolute path");
  }

  @Test
  void an_error_while_an_object_is_wrapped_frees_it() {
    List<MemorySegment> freed = new ArrayList<>();
    MemorySegment object = MemorySegment.ofAddress(8);
    OutOfMemoryError error = new OutOfMemoryError("here");
    assertThatThrownBy(
            () ->
                NativeMpcCore.wrapped(
                    object,
                    freed::add,
                    pointer -> {
                      throw error;
                    }))
        .isSameAs(error);
    assertThat(freed).containsExactly(object);
    assertThat(NativeMpcCore.wrapped(object, freed::add, MemorySegment::address)).isEqualTo(8);
    assertThat(freed).hasSize(1);
  }

  @Test
  void a_library_of_something_else_is_refused() {
    assertThatThrownBy(() -> new NativeBindings(name -> Optional.empty()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("mpc_abi_version");
  }
}
