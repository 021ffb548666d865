package io.coterie.messaging.certificate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.MessagingApplication;
import io.coterie.messaging.certificate.SenderCertificates.CertificateFiles;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Clock;
import java.time.Duration;
import java.util.Base64;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.metadata.certificate.ServerCertificate;
import org.signal.libsignal.protocol.ecc.ECKeyPair;

class SenderCertificatesTest {
  @TempDir private Path folder;
  private CertificateFiles files;

  @BeforeEach
  void generate() throws Exception {
    MessagingApplication.main(
        new String[] {"generate-certificates", folder.resolve("keys").toString(), "7"});
    files = CertificateFiles.in(folder.resolve("keys"));
  }

  private SenderCertificates read() {
    return new SenderCertificates(files, Duration.ofHours(24), Clock.systemUTC());
  }

  private static void write(Path file, byte[] content) throws Exception {
    Files.writeString(file, Base64.getEncoder().encodeToString(content));
  }

  @Test
  void generates_what_it_can_read_and_nobody_else() throws Exception {
    ECKeyPair identity = ECKeyPair.generate();
    SenderCertificate issued =
        new SenderCertificate(
            read().issue("an aci", Optional.empty(), 3, identity.getPublicKey().serialize()));
    assertThat(issued.getSenderUuid()).isEqualTo("an aci");
    assertThat(issued.getSigner().getKeyId()).isEqualTo(7);
    for (Path file :
        new Path[] {files.trustRoot(), files.serverCertificate(), files.serverPrivateKey()}) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
          .isEqualTo("rw-------");
    }
  }

  @Test
  void never_overwrites_keys() {
    assertThatThrownBy(() -> SenderCertificates.generate(folder.resolve("keys"), 8))
        .isInstanceOf(FileAlreadyExistsException.class);
    assertThat(read()).isNotNull();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 0x7357C357, 0xDEADC357})
  void refuses_key_ids_that_libsignal_has_taken(int id) throws Exception {
    assertThatThrownBy(() -> SenderCertificates.generate(folder.resolve("other"), id))
        .hasMessageContaining("reserved");
    if (id < 0) {
      return; // libsignal for Java cannot even make such a certificate.
    }
    ECKeyPair root = ECKeyPair.generate();
    ECKeyPair server = ECKeyPair.generate();
    write(files.trustRoot(), root.getPublicKey().serialize());
    write(
        files.serverCertificate(),
        new ServerCertificate(root.getPrivateKey(), id, server.getPublicKey()).getSerialized());
    write(files.serverPrivateKey(), server.getPrivateKey().serialize());
    assertThatThrownBy(this::read).hasMessageContaining("reserved");
  }

  @Test
  void refuses_files_that_do_not_belong_together() throws Exception {
    byte[] root = Files.readAllBytes(files.trustRoot());
    write(files.trustRoot(), ECKeyPair.generate().getPublicKey().serialize());
    assertThatThrownBy(this::read).hasMessageContaining("not signed by");
    Files.write(files.trustRoot(), root);
    write(files.serverPrivateKey(), ECKeyPair.generate().getPrivateKey().serialize());
    assertThatThrownBy(this::read).hasMessageContaining("not the key of");
  }

  @Test
  void refuses_damaged_files_without_showing_them() throws Exception {
    for (Path file :
        new Path[] {files.trustRoot(), files.serverCertificate(), files.serverPrivateKey()}) {
      byte[] good = Files.readAllBytes(file);
      for (byte[] bad :
          new byte[][] {new byte[0], "***".getBytes(), "AAAA".getBytes(), new byte[5000]}) {
        Files.write(file, bad);
        assertThatThrownBy(this::read).isInstanceOf(IllegalStateException.class);
      }
      Files.delete(file);
      assertThatThrownBy(this::read).hasMessageContaining(file.toString());
      Files.write(file, good);
    }
  }
}
