package io.coterie.acceptance.cluster;

import io.coterie.acceptance.cluster.InstallationCa.Leaf;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.List;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.ExtendedKeyUsage;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.asn1.x509.KeyUsage;
import org.bouncycastle.cert.CertIOException;
import org.bouncycastle.cert.X509v3CertificateBuilder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509ExtensionUtils;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.openssl.jcajce.JcaPKCS8Generator;
import org.bouncycastle.operator.OperatorCreationException;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;

/** A certificate authority for one purpose. ECDSA P-256 throughout. */
final class Authority {
  /** An installation made for a test or a demo does not live longer. */
  private static final Duration VALIDITY = Duration.ofDays(30);

  /** Certificates count from a little earlier, so that a clock that lags does not refuse them. */
  private static final Duration CLOCK_TOLERANCE = Duration.ofMinutes(5);

  private static final SecureRandom RANDOM = new SecureRandom();

  private final KeyPair keys;
  private final X509Certificate certificate;
  private final Path folder;
  private final Path file;
  private final KeyPurposeId purpose;

  private Authority(
      KeyPair keys, X509Certificate certificate, Path folder, Path file, KeyPurposeId purpose) {
    this.keys = keys;
    this.certificate = certificate;
    this.folder = folder;
    this.file = file;
    this.purpose = purpose;
  }

  /**
   * Makes a new authority and writes its certificate to {@code folder/NAME-ca.pem}.
   *
   * @param purpose of everything that it certifies
   */
  static Authority create(Path folder, String name, KeyPurposeId purpose) {
    try {
      Files.createDirectories(folder);
      KeyPair keys = newKeyPair();
      X500Name subject = new X500Name("CN=Coterie CA for " + name);
      X509Certificate certificate =
          sign(
              builder(subject, subject, keys)
                  .addExtension(Extension.basicConstraints, true, new BasicConstraints(0))
                  .addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.keyCertSign)),
              keys.getPrivate());
      Path file = folder.resolve(name + "-ca.pem");
      writePem(file, certificate);
      return new Authority(keys, certificate, folder, file, purpose);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException("cannot make a CA for " + name, e);
    }
  }

  /** PEM file of its certificate. */
  Path file() {
    return file;
  }

  X509Certificate certificate() {
    return certificate;
  }

  /**
   * Certifies a new key.
   *
   * @param name of its files, and its common name
   */
  Leaf issue(String name, List<GeneralName> names) {
    try {
      KeyPair leafKeys = newKeyPair();
      X509v3CertificateBuilder builder =
          builder(
                  new X500Name(certificate.getSubjectX500Principal().getName()),
                  new X500Name("CN=" + name),
                  leafKeys)
              .addExtension(Extension.basicConstraints, true, new BasicConstraints(false))
              .addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.digitalSignature))
              .addExtension(Extension.extendedKeyUsage, false, new ExtendedKeyUsage(purpose))
              .addExtension(
                  Extension.authorityKeyIdentifier,
                  false,
                  new JcaX509ExtensionUtils().createAuthorityKeyIdentifier(certificate))
              .addExtension(
                  Extension.subjectAlternativeName,
                  false,
                  new GeneralNames(names.toArray(GeneralName[]::new)));
      Leaf leaf = new Leaf(folder.resolve(name + ".pem"), folder.resolve(name + "-key.pem"));
      writePem(leaf.certificate(), sign(builder, keys.getPrivate()));
      Files.deleteIfExists(leaf.key());
      Files.createFile(
          leaf.key(),
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      writePem(leaf.key(), new JcaPKCS8Generator(leafKeys.getPrivate(), null).generate());
      return leaf;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException("cannot issue a certificate for " + name, e);
    }
  }

  private static KeyPair newKeyPair() throws GeneralSecurityException {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    return generator.generateKeyPair();
  }

  private static X509v3CertificateBuilder builder(X500Name issuer, X500Name subject, KeyPair keys)
      throws CertIOException, GeneralSecurityException {
    Instant now = Instant.now();
    return new JcaX509v3CertificateBuilder(
            issuer,
            new BigInteger(127, RANDOM).add(BigInteger.ONE),
            Date.from(now.minus(CLOCK_TOLERANCE)),
            Date.from(now.plus(VALIDITY)),
            subject,
            keys.getPublic())
        .addExtension(
            Extension.subjectKeyIdentifier,
            false,
            new JcaX509ExtensionUtils().createSubjectKeyIdentifier(keys.getPublic()));
  }

  private static X509Certificate sign(X509v3CertificateBuilder builder, PrivateKey key)
      throws OperatorCreationException, GeneralSecurityException {
    return new JcaX509CertificateConverter()
        .getCertificate(builder.build(new JcaContentSignerBuilder("SHA256withECDSA").build(key)));
  }

  private static void writePem(Path file, Object object) throws IOException {
    StringWriter text = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
      writer.writeObject(object);
    }
    Files.writeString(file, text.toString());
  }
}
