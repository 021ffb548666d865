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
    assertThat(SeedFile.read(write(seed, "rw-------"))).isEqualTo(seed);
    assertThat(SeedFile.read(pem(key.getEncoded()))).isEqualTo(seed);
    // RFC 8410, section 10.3: version 2, with the public key behind the seed.
    String second =
        "3051020101300506032b657004220420"
            + HexFormat.of().formatHex(seed)
            + "812100"
            + "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
    assertThat(SeedFile.read(pem(HexFormat.of().parseHex(second)))).isEqualTo(seed);
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
