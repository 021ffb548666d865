package io.coterie.cli.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The owner's key is split by the core, if the file says one key alone. */
class SplitSeedTest {
  /** The second key of RFC 8410, section 10.3. */
  private static final String SEED =
      "d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842";

  private static final String PUBLIC_KEY =
      "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

  @TempDir Path folder;

  private SplitSeed split(String publicKey) throws Exception {
    byte[] der =
        HexFormat.of().parseHex("3051020101300506032b657004220420" + SEED + "812100" + publicKey);
    String base64 = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
    String pem = "-----BEGIN PRIVATE KEY-----\n" + base64 + "\n-----END PRIVATE KEY-----\n";
    Path file = write(pem);
    return SplitSeed.of(
        "keys/main", file, List.of("p2", "p1"), new Roster("test", 1, List.of(party(1), party(2))));
  }

  private Path write(String pem) throws IOException {
    Path file = Files.writeString(folder.resolve("key"), pem);
    return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
  }

  private static Member party(int id) throws GeneralSecurityException {
    byte[] spki =
        KeyPairGenerator.getInstance("Ed25519").generateKeyPair().getPublic().getEncoded();
    return new Member(
        "p" + id,
        Member.Role.PARTY,
        id,
        "local",
        new UUID(1, id),
        1,
        new byte[33],
        Arrays.copyOfRange(spki, spki.length - 32, spki.length));
  }

  @Test
  void a_file_is_split_if_its_public_key_is_that_of_its_seed() throws Exception {
    SplitSeed split = split(PUBLIC_KEY);
    assertThat(split.publicKey()).isEqualTo(ByteString.fromHex(PUBLIC_KEY));
    assertThat(split.shares()).hasSize(2).doesNotHaveDuplicates();
  }

  @Test
  void a_file_with_the_public_key_of_another_seed_is_not_split() {
    String other = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    assertThatThrownBy(() -> split(other))
        .isInstanceOf(CliException.class)
        .hasMessageContaining("has another public key than the one of its seed");
  }
}
