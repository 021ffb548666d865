package io.coterie.mpc;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** In a process of its own: protection is for ever, and would lock out what watches the tests. */
class ProtectionTest {

  /** Prints what the core says and what the kernel says. */
  public static final class Protected {
    private Protected() {}

    public static void main(String[] args) throws IOException {
      NativeMpcCore core = NativeMpcCore.load();
      System.out.println(core.protections().contains(Protection.UNREADABLE));
      core.openVault(new byte[32]);
      System.out.println(core.protectProcess().contains(Protection.UNREADABLE));
      System.out.println(core.protections().contains(Protection.NO_CORE));
      System.out.println(
          Files.readAllLines(Path.of("/proc/self/limits")).stream()
              .filter(line -> line.startsWith("Max core file size"))
              .map(line -> line.split(" {2,}")[2])
              .findFirst()
              .orElseThrow());
      boolean locked =
          Files.readAllLines(Path.of("/proc/self/status")).stream()
              .anyMatch(line -> line.matches("VmLck:\\s+[1-9].*"));
      System.out.println(locked == core.protections().contains(Protection.LOCKED));
    }
  }

  @Test
  void what_the_core_says_of_its_protection_is_what_the_kernel_did() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Xmx64m",
                "-cp",
                System.getProperty("java.class.path"),
                Protected.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    List<String> lines;
    try (InputStream out = process.getInputStream()) {
      lines = new String(out.readAllBytes()).lines().toList();
    }
    assertThat(process.waitFor()).isZero();
    assertThat(lines).containsExactly("false", "true", "true", "0", "true");
  }
}
