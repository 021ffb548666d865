package io.coterie.signer.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.channel.SendMode;
import io.coterie.signer.RootOwner;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.TrustFile;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The trust file that the operator of a party gives it. */
class SignalAccessTest {
  private static final SignedTrust TRUST =
      new RootOwner()
          .first(
              new Roster(
                  "test",
                  1,
                  List.of(
                      new Member(
                          "alpha",
                          Member.Role.PARTY,
                          1,
                          "here",
                          new UUID(1, 1),
                          1,
                          new byte[33],
                          new byte[32]))));

  @TempDir Path folder;

  private SignalAccess access(@Nullable String roots) {
    return new SignalAccess(TestSettings.alpha(folder, roots), new SimpleMeterRegistry());
  }

  @Test
  void a_signed_file_is_taken() throws Exception {
    assertThat(access(null).trust()).isEmpty();
    TRUST.file().write(folder.resolve("trust.json"));
    assertThat(access(null).trust().orElseThrow().digest()).isEqualTo(TRUST.digest());
  }

  @Test
  void a_file_without_signatures_is_refused() throws Exception {
    TrustFile unsigned = TrustFile.first(TRUST.trust(), TRUST.roots());
    unsigned.write(folder.resolve("trust.json"));
    assertThatThrownBy(() -> access(null).trust())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("0 of the 1 signatures");
    Files.writeString(folder.resolve("trust.json"), "{}");
    assertThatThrownBy(() -> access(null).trust()).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void a_file_of_other_root_keys_than_those_that_are_pinned_is_refused() throws Exception {
    TRUST.file().write(folder.resolve("trust.json"));
    assertThat(access(TRUST.roots().fingerprint()).trust()).isPresent();
    assertThatThrownBy(() -> access("0".repeat(32)).trust())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("none of its versions has the expected ones");
  }

  @Test
  void a_party_that_is_not_measured_never_sends_by_name() {
    assertThatThrownBy(() -> SendMode.NAMED_STORED.requireFor(false))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("who sends");
    SendMode.NAMED_STORED.requireFor(true);
    SendMode.GROUP.requireFor(false);
    assertThatThrownBy(() -> channel(SendMode.NAMED_STORED, false, false))
        .hasMessageContaining("channel.measured");
  }

  @Test
  void a_party_that_is_not_measured_shows_its_contributions_to_nobody_else() {
    assertThatThrownBy(() -> channel(SendMode.GROUP, false, true))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("contributions-to-all only where channel.measured");
    assertThat(channel(SendMode.GROUP, true, true).contributionsToAll()).isTrue();
  }

  private SignerProperties.Channel channel(SendMode mode, boolean measured, boolean toAll) {
    return new SignerProperties.Channel(
        URI.create("https://localhost"),
        folder.resolve("ca.pem"),
        null,
        null,
        "",
        "+1",
        null,
        mode,
        null,
        null,
        Duration.ofHours(6),
        measured,
        toAll);
  }
}
