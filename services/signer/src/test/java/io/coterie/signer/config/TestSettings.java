package io.coterie.signer.config;

import io.coterie.channel.SendMode;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.util.unit.DataSize;

/** Settings of party alpha, for tests of what reads them. */
final class TestSettings {
  private TestSettings() {}

  /**
   * @param folder of the party's data
   * @param roots fingerprint of the root keys that the operator pins
   */
  static SignerProperties alpha(Path folder, @Nullable String roots) {
    return alpha(folder, roots, 0);
  }

  /**
   * @param minFree bytes on the disk without which the party is not ready
   */
  static SignerProperties alpha(Path folder, @Nullable String roots, long minFree) {
    return new SignerProperties(
        "alpha",
        1,
        "here",
        folder,
        new SignerProperties.Unseal(folder.resolve("none"), null),
        new SignerProperties.Channel(
            URI.create("https://localhost"),
            folder.resolve("ca.pem"),
            null,
            null,
            "",
            "+1",
            null,
            SendMode.GROUP,
            null,
            roots,
            Duration.ofHours(6),
            false,
            false),
        new SignerProperties.Sessions(8, 8, Duration.ofMinutes(1), Duration.ZERO, Duration.ZERO, 1),
        new SignerProperties.Presignatures(8, 8, 1, 4, Duration.ofMinutes(1)),
        Duration.ofSeconds(1),
        new SignerProperties.Records(Duration.ofDays(30), DataSize.ofBytes(minFree)),
        new SignerProperties.Fence(null),
        new SignerProperties.Metrics(null),
        List.of());
  }
}
