package io.coterie.platform.unseal;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.bouncycastle.crypto.generators.Argon2BytesGenerator;
import org.bouncycastle.crypto.params.Argon2Parameters;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PassphraseDataKeySourceTest {
  private static final PassphraseDataKeySource.Cost CHEAP =
      new PassphraseDataKeySource.Cost(64, 1, 1);
  private static final PassphraseDataKeySource.Argon2id ARGON2ID =
      (passphrase, salt, memoryKib, passes, lanes) -> {
        Argon2BytesGenerator argon2 = new Argon2BytesGenerator();
        argon2.init(
            new Argon2Parameters.Builder(Argon2Parameters.ARGON2_id)
                .withVersion(Argon2Parameters.ARGON2_VERSION_13)
                .withMemoryAsKB(memoryKib)
                .withIterations(passes)
                .withParallelism(lanes)
                .withSalt(salt)
                .build());
        byte[] key = new byte[32];
        argon2.generateBytes(passphrase, key);
        return key;
      };
  private static final SecureRandom RANDOM = new SecureRandom();

  @TempDir Path folder;
  private Path keyFile;
  private Path passphraseFile;
  private PassphraseDataKeySource source;

  @BeforeEach
  void passphrase() throws IOException {
    keyFile = folder.resolve("data.key");
    passphraseFile = folder.resolve("passphrase");
    Files.writeString(passphraseFile, "correct horse battery");
    source = new PassphraseDataKeySource(keyFile, passphraseFile, ARGON2ID);
  }

  @Test
  void gives_the_same_key_every_time_whatever_ends_the_line() throws IOException {
    assertThat(source.exists()).isFalse();
    source.create(RANDOM, CHEAP);
    assertThat(source.exists()).isTrue();
    byte[] key = source.dataKey();
    assertThat(key).hasSize(32).isNotEqualTo(new byte[32]);
    for (String end : new String[] {"", "\n", "\r\n"}) {
      Files.writeString(passphraseFile, "correct horse battery" + end);
      assertThat(source.dataKey()).isEqualTo(key);
    }
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(keyFile)))
        .isEqualTo("rw-------");
    try (var files = Files.list(folder)) {
      assertThat(files).containsExactlyInAnyOrder(keyFile, passphraseFile);
    }
  }

  @Test
  void the_standard_cost_works_and_is_stored() throws IOException {
    source.create(RANDOM, PassphraseDataKeySource.Cost.STANDARD);
    assertThat(source.dataKey()).hasSize(32);
    assertThat(Arrays.copyOfRange(Files.readAllBytes(keyFile), 8, 24))
        .isEqualTo(new byte[] {0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4});
  }

  @Test
  void a_passphrase_that_is_in_no_file_is_zeroed_after_each_use() {
    List<byte[]> given = new ArrayList<>();
    PassphraseDataKeySource typed =
        new PassphraseDataKeySource(
            keyFile,
            () -> {
              given.add("correct horse battery".getBytes(US_ASCII));
              return given.getLast();
            },
            ARGON2ID);
    typed.create(RANDOM, CHEAP);
    assertThat(typed.dataKey()).isEqualTo(source.dataKey());
    assertThat(given).hasSize(2).allSatisfy(bytes -> assertThat(bytes).containsOnly(0));
    for (int length : new int[] {0, 11, 1025}) {
      byte[] bad = new byte[length];
      Arrays.fill(bad, (byte) 'x');
      assertThatThrownBy(new PassphraseDataKeySource(keyFile, () -> bad, ARGON2ID)::dataKey)
          .isInstanceOf(UnsealException.class)
          .hasMessage("the passphrase must have 12 to 1024 bytes");
      assertThat(bad).isEqualTo(new byte[length]);
    }
  }

  @Test
  void never_replaces_a_key() {
    source.create(RANDOM, CHEAP);
    byte[] key = source.dataKey();
    assertThatThrownBy(() -> source.create(RANDOM, CHEAP)).isInstanceOf(UnsealException.class);
    assertThat(source.dataKey()).isEqualTo(key);
  }

  @Test
  void a_left_over_draft_does_not_hinder() throws IOException {
    Files.writeString(folder.resolve("data.key.new"), "half");
    source.create(RANDOM, CHEAP);
    assertThat(source.dataKey()).hasSize(32);
  }

  @Test
  void refuses_another_passphrase() throws IOException {
    source.create(RANDOM, CHEAP);
    Files.writeString(passphraseFile, "correct horse batterz");
    assertThatThrownBy(source::dataKey)
        .isInstanceOf(UnsealException.class)
        .hasMessageContaining("wrong passphrase")
        .hasMessageNotContaining("horse");
  }

  @Test
  void refuses_every_altered_truncated_or_extended_file() throws IOException {
    source.create(RANDOM, CHEAP);
    byte[] good = Files.readAllBytes(keyFile);
    for (int i = 0; i < good.length; i++) {
      // A higher cost would only take long; the bounds have their own test.
      if (i >= 12 && i < 24) {
        continue;
      }
      byte[] bad = good.clone();
      bad[i] ^= 0x40;
      refuses(bad);
      refuses(Arrays.copyOf(good, i));
    }
    refuses(Arrays.copyOf(good, good.length + 1));
    refuses(new byte[1 << 20]);
  }

  @Test
  void refuses_a_cost_out_of_range_before_it_allocates() throws IOException {
    source.create(RANDOM, CHEAP);
    byte[] good = Files.readAllBytes(keyFile);
    for (int offset : new int[] {12, 16, 20}) {
      byte[] bad = good.clone();
      bad[offset] = 0x7f;
      refuses(bad);
      bad[offset] = (byte) 0xff;
      refuses(bad);
      Arrays.fill(bad, offset, offset + 4, (byte) 0);
      refuses(bad);
    }
  }

  private void refuses(byte[] content) throws IOException {
    Files.write(keyFile, content);
    assertThatThrownBy(source::dataKey).isInstanceOf(UnsealException.class);
  }

  @Test
  void refuses_a_missing_short_or_endless_passphrase() throws IOException {
    for (byte[] passphrase :
        new byte[][] {{}, "\n".getBytes(), "short".getBytes(), new byte[1025]}) {
      Files.write(passphraseFile, passphrase);
      assertThatThrownBy(() -> source.create(RANDOM, CHEAP)).isInstanceOf(UnsealException.class);
      assertThat(source.exists()).isFalse();
    }
    Files.delete(passphraseFile);
    assertThatThrownBy(() -> source.create(RANDOM, CHEAP)).isInstanceOf(UnsealException.class);
    assertThatThrownBy(source::dataKey).isInstanceOf(UnsealException.class);
  }
}
