package io.coterie.cli.profile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.cli.terminal.CliException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.interfaces.EdECPrivateKey;
import java.util.Base64;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SeedFileTest {
  private static final String SEED =
      "d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842";
  private static final String PUBLIC_KEY =
      "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

  @TempDir Path folder;

  private Path write(byte[] content, String permissions) throws IOException {
    Path file = Files.write(folder.resolve("key"), content);
    return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
  }

  private Path pem(byte[] der) throws IOException {
    String base64 = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
    return write(
        ("-----BEGIN PRIVATE KEY-----\n" + base64 + "\n-----END PRIVATE KEY-----\n")
            .getBytes(StandardCharsets.US_ASCII),
        "rw-------");
  }

  private static PrivateKey key(String algorithm) throws Exception {
    return KeyPairGenerator.getInstance(algorithm).generateKeyPair().getPrivate();
  }

  private void refused(Path file, String why) {
    assertThatThrownBy(() -> SeedFile.read(file))
        .isInstanceOf(CliException.class)
        .hasMessageContaining(why);
  }

  @Test
  void a_seed_is_read_from_each_form() throws Exception {
    EdECPrivateKey key = (EdECPrivateKey) key("Ed25519");
    byte[] seed = key.getBytes().orElseThrow();
    assertThat(seedOf(write(seed, "rw-------"))).isEqualTo(seed);
    assertThat(seedOf(pem(key.getEncoded()))).isEqualTo(seed);
    assertThat(seedOf(withPublicKey("812100"))).isEqualTo(HexFormat.of().parseHex(SEED));
  }

  private static byte[] seedOf(Path file) {
    try (SeedFile read = SeedFile.read(file)) {
      return read.seed().clone();
    }
  }

  /** The second key of RFC 8410, section 10.3, without its attributes. */
  private Path withPublicKey(String wrapping) throws IOException {
    String der = "3051020101300506032b657004220420" + SEED + wrapping + PUBLIC_KEY;
    return pem(HexFormat.of().parseHex(der));
  }

  @Test
  void a_public_key_of_another_seed_is_refused() throws Exception {
    byte[] own = HexFormat.of().parseHex(PUBLIC_KEY);
    byte[] other = own.clone();
    other[31] ^= (byte) 0x80;
    try (SeedFile read = SeedFile.read(withPublicKey("812100"))) {
      read.requirePublicKey(own);
      assertThatThrownBy(() -> read.requirePublicKey(other))
          .isInstanceOf(CliException.class)
          .hasMessageContaining("has another public key than the one of its seed: find out")
          .hasMessageNotContaining("\n");
    }
    refused(withPublicKey("a12100"), "no Ed25519 key");
    try (SeedFile silent = SeedFile.read(write(new byte[32], "rw-------"))) {
      silent.requirePublicKey(other);
    }
  }

  @Test
  void a_seed_is_wiped_when_its_file_is_closed() throws Exception {
    SeedFile read = SeedFile.read(withPublicKey("812100"));
    byte[] seed = read.seed();
    read.close();
    assertThat(seed).containsOnly(0);
  }

  @Test
  void what_is_no_ed25519_key_of_its_owner_alone_is_refused() throws Exception {
    refused(write(new byte[32], "rw-r-----"), "chmod 600");
    refused(write(new byte[64], "rw-------"), "neither PEM");
    refused(pem(key("X25519").getEncoded()), "no Ed25519 key");
    refused(pem(key("EC").getEncoded()), "no Ed25519 key");
    refused(folder.resolve("none"), "cannot be read");
  }
}
