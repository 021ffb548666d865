package io.coterie.coordinator.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.channel.ChannelConfig;
import io.coterie.platform.unseal.PassphraseDataKeySource;
import io.coterie.platform.unseal.UnsealException;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When the data key of a replica is made. */
class SignalChannelOpenerTest {
  @TempDir Path folder;
  private Path keyFile;

  @BeforeEach
  void passphrase() throws IOException {
    keyFile = folder.resolve("data.key");
    Files.writeString(folder.resolve("passphrase"), "a passphrase for tests");
  }

  private SignalChannelOpener opener(Optional<byte[]> sealedAccount) {
    SealedAccounts accounts =
        new SealedAccounts() {
          @Override
          public Optional<byte[]> load(String replica) {
            return sealedAccount;
          }

          @Override
          public void saveOnce(String replica, byte[] sealed, Instant now) {
            throw new AssertionError("no account was made");
          }
        };
    return new SignalChannelOpener(
        new SignalChannelOpener.Replica(
            "coordinator",
            "local",
            "+10000000000",
            folder.resolve("token"),
            folder,
            folder.resolve("trust.json")),
        ChannelConfig.of(URI.create("https://localhost:1"), "", new byte[33]),
        accounts,
        new PassphraseDataKeySource(
            keyFile,
            folder.resolve("passphrase"),
            (passphrase, salt, memoryKib, passes, lanes) -> new byte[32]),
        new SecureRandom(),
        new SimpleMeterRegistry(),
        Clock.systemUTC());
  }

  @Test
  void an_opener_that_is_only_built_makes_no_data_key() {
    opener(Optional.empty());
    assertThat(keyFile).doesNotExist();
  }

  @Test
  void the_first_opening_makes_the_data_key_before_it_spends_the_token() {
    assertThatThrownBy(() -> opener(Optional.empty()).open(message -> {}))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("token");
    assertThat(keyFile).isRegularFile();
  }

  @Test
  void a_lost_data_key_is_not_replaced_while_an_account_is_sealed_under_it() {
    assertThatThrownBy(() -> opener(Optional.of(new byte[256])).open(message -> {}))
        .isInstanceOf(UnsealException.class);
    assertThat(keyFile).doesNotExist();
  }
}
