package io.coterie.coordinator;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.ServerSocket;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.ApplicationContextException;

class FailedStartTest {
  @TempDir Path folder;

  @Test
  @Timeout(60)
  void a_start_that_finds_its_port_taken_ends() throws Exception {
    TestInstallation installation = new TestInstallation(folder, 3);
    try (ServerSocket taken = new ServerSocket(installation.managementPort)) {
      assertThatThrownBy(() -> installation.start())
          .isInstanceOf(ApplicationContextException.class);
    }
  }
}
