package io.coterie.messaging.certificate;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Clock;
import java.time.Duration;
import java.util.Base64;
import java.util.Optional;
import java.util.Set;
import org.signal.libsignal.metadata.certificate.InvalidCertificateException;
import org.signal.libsignal.metadata.certificate.ServerCertificate;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.ecc.ECPrivateKey;
import org.signal.libsignal.protocol.ecc.ECPublicKey;

/**
 * Issues the certificates with which sealed senders prove to recipients who they are. The service's
 * certificate is signed by a trust root that every client pins.
 */
public final class SenderCertificates {
  /** Ids that libsignal has certificates for built in, or refuses as revoked. */
  private static final Set<Integer> RESERVED_KEY_IDS = Set.of(2, 3, 0x7357C357, 0xDEADC357);

  private static final int MAX_KEY_FILE_BYTES = 4096;

  private final ServerCertificate certificate;
  private final ECPrivateKey privateKey;
  private final Duration lifetime;
  private final Clock clock;

  /**
   * The files that hold the service's certificate, base64 of libsignal's serialisations.
   *
   * @param trustRoot the trust root's public key
   * @param serverCertificate the service's certificate, signed by it
   * @param serverPrivateKey the private key of that certificate
   */
  public record CertificateFiles(Path trustRoot, Path serverCertificate, Path serverPrivateKey) {
    /** The file names that {@link #generate} uses in a folder. */
    public static CertificateFiles in(Path folder) {
      return new CertificateFiles(
          folder.resolve("trust-root.pub"),
          folder.resolve("server-certificate"),
          folder.resolve("server-certificate.key"));
    }
  }

  /**
   * Reads and checks the files.
   *
   * @throws IllegalStateException if they are unreadable, damaged, or do not belong together
   */
  public SenderCertificates(CertificateFiles files, Duration lifetime, Clock clock) {
    this.lifetime = lifetime;
    this.clock = clock;
    try {
      ECPublicKey trustRoot = new ECPublicKey(read(files.trustRoot()));
      this.certificate = new ServerCertificate(read(files.serverCertificate()));
      this.privateKey = new ECPrivateKey(read(files.serverPrivateKey()));
      if (RESERVED_KEY_IDS.contains(certificate.getKeyId())) {
        throw new IllegalStateException(
            files.serverCertificate() + ": key id " + certificate.getKeyId() + " is reserved");
      }
      if (!trustRoot.verifySignature(certificate.getCertificate(), certificate.getSignature())) {
        throw new IllegalStateException(
            files.serverCertificate() + " is not signed by " + files.trustRoot());
      }
      if (!privateKey.publicKey().equals(certificate.getKey())) {
        throw new IllegalStateException(
            files.serverPrivateKey() + " is not the key of " + files.serverCertificate());
      }
    } catch (InvalidKeyException | InvalidCertificateException e) {
      throw new IllegalStateException("the sender certificate files are damaged: " + files, e);
    }
  }

  private static byte[] read(Path file) {
    try {
      if (Files.size(file) > MAX_KEY_FILE_BYTES) {
        throw new IllegalStateException(file + " is larger than " + MAX_KEY_FILE_BYTES + " bytes");
      }
      return Base64.getDecoder().decode(Files.readString(file).strip());
    } catch (IOException | IllegalArgumentException e) {
      throw new IllegalStateException(file + " cannot be read as base64", e);
    }
  }

  /**
   * A certificate for a device, valid from now on for the configured time.
   *
   * @param e164 the number, if the sender wants recipients to see it
   */
  public byte[] issue(String aci, Optional<String> e164, int deviceId, byte[] identityKey) {
    try {
      return certificate
          .issue(
              privateKey,
              aci,
              e164,
              deviceId,
              new ECPublicKey(identityKey),
              clock.instant().plus(lifetime).toEpochMilli())
          .getSerialized();
    } catch (InvalidKeyException e) {
      throw new IllegalStateException("a registered identity key is not a key", e);
    }
  }

  /**
   * Makes a trust root and a server certificate, and writes what {@link CertificateFiles#in} names
   * into a folder; files that exist are never overwritten. The trust root's private key is
   * discarded: a new certificate needs a new root, and clients that pin it.
   *
   * @param keyId names the server certificate; none of libsignal's own
   */
  public static CertificateFiles generate(Path folder, int keyId) throws IOException {
    if (RESERVED_KEY_IDS.contains(keyId)) {
      throw new IllegalArgumentException("key id " + keyId + " is reserved by libsignal");
    }
    if (keyId < 0) {
      throw new IllegalArgumentException("key id " + keyId + " is negative");
    }
    ECKeyPair root = ECKeyPair.generate();
    ECKeyPair server = ECKeyPair.generate();
    ServerCertificate certificate =
        new ServerCertificate(root.getPrivateKey(), keyId, server.getPublicKey());
    CertificateFiles files = CertificateFiles.in(Files.createDirectories(folder));
    write(files.serverPrivateKey(), server.getPrivateKey().serialize());
    write(files.serverCertificate(), certificate.getSerialized());
    write(files.trustRoot(), root.getPublicKey().serialize());
    return files;
  }

  private static void write(Path file, byte[] content) throws IOException {
    Files.createFile(
        file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.writeString(file, Base64.getEncoder().encodeToString(content) + "\n");
  }
}
